use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use cudock_base::Environment;
use cudock_host::Root;

use super::*;

const SITE: &str = "lib/python3.12/site-packages/onnxruntime/capi";
const GPU: [&str; 3] =
    ["libonnxruntime.so.1.31.1", "libonnxruntime_providers_cuda.so", "libonnxruntime_providers_shared.so"];

fn put(folder: &Path, below: &str, names: &[&str]) {
    fs::create_dir_all(folder.join(below)).unwrap();
    for name in names {
        fs::write(folder.join(below).join(name), "x").unwrap();
    }
}

fn machine(folder: &Path, variables: &[(&str, &str)]) -> Machine {
    Machine {
        environment: Environment::of(folder, variables.iter().copied()),
        root: Root::tree(folder).unwrap(),
        project: Some(PathBuf::from("/project")),
        cache: Some(PathBuf::from("/cache/runtimes")),
        cpu: "x86_64".to_owned(),
    }
}

fn library(found: Option<Found>) -> Option<String> {
    found.map(|found| found.library.display().to_string())
}

#[test]
fn places_are_searched_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let variables = [
        ("HOME", "/her"),
        ("VIRTUAL_ENV", "/venv"),
        ("CONDA_PREFIX", "/conda"),
        ("CUDOCK_ONNXRUNTIME", "/a/libonnxruntime.so"),
    ];
    // From the weakest to the strongest: each is found once it is there.
    for (below, path) in [
        ("usr/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu/libonnxruntime.so.1.31.1".to_owned()),
        (&format!("her/.local/{SITE}"), format!("/her/.local/{SITE}/libonnxruntime.so.1.31.1")),
        (&format!("usr/{SITE}"), format!("/usr/{SITE}/libonnxruntime.so.1.31.1")),
        (&format!("project/.venv/{SITE}"), format!("/project/.venv/{SITE}/libonnxruntime.so.1.31.1")),
        ("conda/lib", "/conda/lib/libonnxruntime.so.1.31.1".to_owned()),
        (&format!("venv/{SITE}"), format!("/venv/{SITE}/libonnxruntime.so.1.31.1")),
        (
            "cache/runtimes/onnxruntime-1.31.1-x86_64",
            "/cache/runtimes/onnxruntime-1.31.1-x86_64/libonnxruntime.so.1.31.1".to_owned(),
        ),
    ] {
        if below.starts_with("usr/lib/python3") {
            put(folder.path(), "usr/bin", &["python3"]);
            let program = folder.path().join("usr/bin/python3");
            fs::set_permissions(program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        }
        put(folder.path(), below, &["libonnxruntime.so.1.31.1"]);
        let found = find(Package::Onnxruntime, &machine(folder.path(), &variables[..3])).unwrap();
        assert_eq!(library(found), Some(path));
    }
    put(folder.path(), "a", &["libonnxruntime.so"]);
    let found = find(Package::Onnxruntime, &machine(folder.path(), &variables)).unwrap();
    assert_eq!(library(found), Some("/a/libonnxruntime.so".to_owned()));
    let all = find_all(&machine(folder.path(), &variables)).unwrap();
    assert_eq!(all.len(), 8, "{all:#?}");
}

#[test]
fn the_gpu_build_serves_both_and_the_other_only_the_cpu() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), &format!("venv/{SITE}"), &["libonnxruntime.so.1.31.1"]);
    let variables = [("VIRTUAL_ENV", "/venv")];
    assert_eq!(find(Package::OnnxruntimeGpu, &machine(folder.path(), &variables)).unwrap(), None);
    put(folder.path(), &format!("venv/{SITE}"), &GPU);
    let found = find(Package::OnnxruntimeGpu, &machine(folder.path(), &variables)).unwrap().unwrap();
    assert_eq!((found.package, found.providers.clone()), (Package::OnnxruntimeGpu, vec!["cuda".to_owned()]));
    assert_eq!(find(Package::Onnxruntime, &machine(folder.path(), &variables)).unwrap(), Some(found));
}

#[test]
fn a_library_that_is_too_old_is_told_and_not_taken() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), &format!("venv/{SITE}"), &["libonnxruntime.so.1.16.3"]);
    let machine = machine(folder.path(), &[("VIRTUAL_ENV", "/venv")]);
    assert_eq!(find(Package::Onnxruntime, &machine).unwrap(), None);
    let all = find_all(&machine).unwrap();
    assert_eq!((all.len(), all[0].usable, all[0].version.as_deref()), (1, false, Some("1.16.3")));
}

#[test]
fn the_newest_of_our_own_is_taken_and_unfinished_ones_are_not() {
    let folder = tempfile::tempdir().unwrap();
    for version in ["1.9.0", "1.31.1", "1.30.2"] {
        let below = format!("cache/runtimes/onnxruntime-{version}-x86_64");
        put(folder.path(), &below, &[&format!("libonnxruntime.so.{version}")]);
    }
    put(folder.path(), "cache/runtimes/.onnxruntime-1.99.0-x86_64.new", &["libonnxruntime.so.1.99.0"]);
    let found = find(Package::Onnxruntime, &machine(folder.path(), &[])).unwrap().unwrap();
    assert_eq!(found.version.as_deref(), Some("1.31.1"));
}

#[test]
fn a_version_comes_from_the_name_the_link_or_the_metadata() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), "opt/ort", &["libonnxruntime.so.1.20.1", "libonnxruntime_providers_cuda.so"]);
    symlink("libonnxruntime.so.1.20.1", folder.path().join("opt/ort/libonnxruntime.so")).unwrap();
    for named in ["/opt/ort", "/opt/ort/libonnxruntime.so"] {
        let found = find(Package::Onnxruntime, &machine(folder.path(), &[("ORT_DYLIB_PATH", named)]))
            .unwrap()
            .unwrap();
        assert_eq!(found.version.as_deref(), Some("1.20.1"), "{named}");
        assert_eq!(found.package, Package::OnnxruntimeGpu);
        assert_eq!(found.found_by, FoundBy::Variable { name: "ORT_DYLIB_PATH" });
    }
    put(folder.path(), &format!("venv/{SITE}"), &["libonnxruntime.so"]);
    put(folder.path(), "venv/lib/python3.12/site-packages/onnxruntime-1.18.0.dist-info", &[]);
    let found =
        find(Package::Onnxruntime, &machine(folder.path(), &[("VIRTUAL_ENV", "/venv")])).unwrap().unwrap();
    assert_eq!(found.version.as_deref(), Some("1.18.0"));
}

#[test]
fn a_variable_that_names_no_library_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), "empty", &["other.so", "libonnxruntime.so.old"]);
    for (path, error) in [
        (
            "/nowhere/libonnxruntime.so",
            "CUDOCK_ONNXRUNTIME names /nowhere/libonnxruntime.so, which is not there",
        ),
        ("/empty", "CUDOCK_ONNXRUNTIME names /empty, which has no libonnxruntime.so in it"),
    ] {
        let machine = machine(folder.path(), &[("CUDOCK_ONNXRUNTIME", path)]);
        assert_eq!(find(Package::Onnxruntime, &machine).unwrap_err().to_string(), error);
    }
}
