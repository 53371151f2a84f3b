//! Which files are linted.

use std::fs;
use std::path::{Path, PathBuf};

use cudock_lint::dockerfiles;

/// Makes files, and returns which of them are linted.
fn found(files: &[(&str, &str)]) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let found = dockerfiles(&[directory.path().to_owned()]).unwrap_or_default();
    let relative = |path: PathBuf| path.strip_prefix(directory.path()).unwrap().display().to_string();
    found.into_iter().map(relative).collect()
}

#[test]
fn dockerfiles_are_found_by_their_names() {
    let names = [
        "Dockerfile",
        "Dockerfile.gpu",
        "dockerfile",
        "Containerfile",
        "Containerfile.arm64",
        "a/gpu.dockerfile",
        "a/b/gpu.Dockerfile",
        ".devcontainer/Dockerfile",
    ];
    for name in names {
        assert_eq!(found(&[(name, "")]), [name]);
    }
    let others = [
        "Dockerfile.dockerignore",
        "Dockerfile.j2",
        "Dockerfile.md",
        "dockerfile.py",
        "MyDockerfile",
        "dockerfiles/readme",
        ".git/Dockerfile",
    ];
    for name in others {
        assert_eq!(found(&[(name, "")]), [""; 0], "{name}");
    }
}

#[test]
fn what_gitignore_excludes_is_skipped() {
    let files = [
        (".gitignore", "build/\n/Dockerfile.tmp\n"),
        ("build/Dockerfile", ""),
        ("Dockerfile.tmp", ""),
        ("a/Dockerfile.tmp", ""),
        ("a/.gitignore", "*\n!Dockerfile.tmp\n"),
        ("a/Dockerfile", ""),
    ];
    assert_eq!(found(&files), ["a/Dockerfile.tmp"]);
}

#[test]
fn compose_and_bake_files_name_others() {
    let compose = "\
services:
  one: {build: {context: .., dockerfile: docker/one.df}}
  two: {build: {dockerfile: two.df}}
  three: {build: ../three}
  four: {image: redis}
  five: {build: {dockerfile: $FILE}}
  six: {build: {context: https://example.com/a.git}}
  seven: {build: {dockerfile: absent.df}}
  eight: {build: {context: /, dockerfile: etc/hostname}}
";
    let json = r#"{"target": {"a": {"context": "docker", "dockerfile": "bake.df"}, "b": {}}}"#;
    let hcl = r#"
variable "TAG" { default = "dockerfile" }
target "a" {
  dockerfile = "hcl.df" # the file
  context = "docker"
}
target "b" { inherits = ["a"] }
target "c" {
  dockerfile = "docker/other.df"
  args = { dockerfile = TAG }
}
"#;
    let texts = [
        "docker/one.df",
        "deploy/two.df",
        "docker/bake.df",
        "docker/hcl.df",
        "docker/other.df",
        "docker/no.df",
    ];
    let mut files: Vec<(&str, &str)> = texts.iter().map(|name| (*name, "FROM a\n")).collect();
    files.extend([
        ("deploy/compose.gpu.yaml", compose),
        ("three/Dockerfile", ""),
        ("docker-bake.json", json),
        ("docker-bake.hcl", hcl),
        ("docker-compose.yml", "services: [not a map"),
    ]);
    assert_eq!(
        found(&files),
        [
            "deploy/two.df",
            "docker/bake.df",
            "docker/hcl.df",
            "docker/one.df",
            "docker/other.df",
            "three/Dockerfile"
        ]
    );
}

#[test]
fn a_file_is_linted_once_and_one_that_is_named_whatever_its_name() {
    let directory = tempfile::tempdir().unwrap();
    let named = directory.path().join("anything");
    fs::write(&named, "FROM a\n").unwrap();
    fs::write(directory.path().join("Dockerfile"), "FROM a\n").unwrap();
    let paths = [named.clone(), directory.path().to_owned(), directory.path().join("Dockerfile"), "-".into()];
    assert_eq!(
        dockerfiles(&paths).unwrap(),
        [named, directory.path().join("Dockerfile"), Path::new("-").to_owned()]
    );
    let empty = tempfile::tempdir().unwrap();
    let error = dockerfiles(&[empty.path().to_owned()]).unwrap_err().to_string();
    assert!(error.starts_with("no Dockerfile found in /"), "{error}");
}
