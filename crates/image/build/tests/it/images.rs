//! Whole images from a lock, with packages that are in the cache.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use cudock_base::Environment;
use cudock_base::text::error_chain;
use cudock_build::{BuildError, BuildReport, BuildRequest, build};
use cudock_facts::Facts;
use cudock_http::NoProgress;
use cudock_image::write::{Destination, WriteOptions};
use cudock_image::{ImageSource, OpenOptions, ResolvedImage};
use cudock_lock::LockFile;
use cudock_project::Project;
use cudock_testkit::disk::{fill, on_small_disk};
use cudock_testkit::http::noise;
use cudock_testkit::packages::LockedProject;
use cudock_testkit::process;
use cudock_testkit::random::cases;
use cudock_testkit::tar::Tar;
use serde_json::Value;

/// A Python project with a file of this size in each package, and its lock beside it.
fn project(size: usize) -> LockedProject {
    let image = "entrypoint = [\"/app/main\"]\nfiles = { \"/app/main\" = \"main\" }\n";
    let library = Tar::default().file("./usr/lib/x86_64-linux-gnu/libnoise.so.1", noise(size)).end();
    let project = LockedProject::new(image, "python = \"3.13\"").deb("libnoise1", "1.0-1", &library).wheel(
        "noise",
        "2.0",
        "dependencies",
        &[("noise/data", &noise(size)[1..])],
    );
    project.write("main", "#!/usr/bin/python3\n");
    std::fs::write(project.beside("lock"), project.lock()).unwrap();
    project
}

/// Builds the project below a directory, with the cache beside it.
fn build_in(directory: &Path, destination: &Destination) -> BuildReport {
    try_build_in(directory, destination).unwrap()
}

fn try_build_in(directory: &Path, destination: &Destination) -> Result<BuildReport, BuildError> {
    build_project(&directory.join("project"), directory, destination)
}

/// Builds a project with the lock and the cache of a directory.
fn build_project(
    project: &Path,
    directory: &Path,
    destination: &Destination,
) -> Result<BuildReport, BuildError> {
    let text = std::fs::read_to_string(directory.join("lock")).unwrap();
    let lock = LockFile::parse(Path::new("cudock.lock"), &text).unwrap();
    let project = Project::open(project).unwrap();
    let environment = Environment::of(directory, [("CUDOCK_CACHE", directory.join("cache"))]);
    let request = BuildRequest {
        project: &project,
        lock: &lock,
        facts: &Facts::embedded(),
        environment: &environment,
        targets: &[],
        destination: Some(destination),
        compression: None,
        program: PathBuf::new(),
        explain: false,
        today: "2026-11-15".parse().unwrap(),
        progress: Arc::new(NoProgress),
    };
    Ok(build(&request)?.report)
}

fn options(scratch: &Path) -> OpenOptions {
    let scratch = scratch.to_owned();
    OpenOptions { platform: None, client: None, sockets: Vec::new(), progress: None, scratch }
}

fn layout(directory: PathBuf) -> Destination {
    Destination::Layout { directory, name: None }
}

#[test]
fn an_image_has_its_documents_and_they_are_the_same_each_time() {
    let build_once = || {
        let project = project(1000);
        let at = project.beside("layout");
        let report = build_in(&project.beside(""), &layout(at.clone()));
        (project, std::fs::read_to_string(at.join("index.json")).unwrap(), report)
    };
    let (project, index, report) = build_once();
    let (_other, other_index, other_report) = build_once();
    assert_eq!(index, other_index, "another directory and another cache change nothing");
    assert_eq!(report.images[0].documents, other_report.images[0].documents);

    let source = ImageSource::Layout { directory: project.beside("layout"), name: None };
    let image = ResolvedImage::resolve(&source, &options(&project.beside("scratch"))).unwrap();
    let found = image.referrers(&image.digest().unwrap(), None).unwrap().found;
    let digests: Vec<&str> = found.iter().map(|one| one.descriptor.digest.as_str()).collect();
    let reported: Vec<&str> = report.images[0].documents.iter().map(|one| one.digest.as_str()).collect();
    assert_eq!(digests, reported);
    let document = |kind: &str| -> Value {
        let one = found.iter().find(|one| one.artifact_type.as_deref() == Some(kind)).unwrap();
        serde_json::from_slice(&image.part(&one.layers[0]).unwrap()).unwrap()
    };
    for kind in ["application/spdx+json", "application/vnd.cyclonedx+json"] {
        let text = document(kind).to_string();
        assert!(text.contains("libnoise1") && text.contains("noise@2.0"), "{text}");
    }
    let provenance = document("application/vnd.in-toto+json");
    let subject = &provenance["subject"][0]["digest"]["sha256"];
    assert_eq!(report.digest, format!("sha256:{}", subject.as_str().unwrap()));
    assert_eq!(provenance["predicateType"], "https://slsa.dev/provenance/v1");
    assert_eq!(found.len(), 3, "no targets, no report of check");
}

#[test]
fn an_image_is_the_same_whatever_the_directory_of_its_project_is_called() {
    let digest_in = |name: &str| {
        let project = project(1000);
        // Without a name of its own.
        let manifest = std::fs::read_to_string(project.path().join("cudock.toml")).unwrap();
        project.write("cudock.toml", manifest.replace("name = \"app\"\n", ""));
        let directory = project.beside(name);
        std::fs::create_dir(&directory).unwrap();
        for part in ["project", "lock", "cache"] {
            std::fs::rename(project.beside(part), directory.join(part)).unwrap();
        }
        std::fs::rename(directory.join("project"), directory.join(name)).unwrap();
        let report =
            build_project(&directory.join(name), &directory, &layout(directory.join("out"))).unwrap();
        (report.digest, report.images.into_iter().map(|image| image.documents).collect::<Vec<_>>())
    };
    assert_eq!(digest_in("one"), digest_in("another name"));
}

#[test]
fn a_package_with_a_file_and_a_directory_of_one_name_is_refused() {
    let project = LockedProject::new("python = \"3.13\"\nentrypoint = [\"/a\"]\n", "python = \"3.13\"")
        .wheel("broken", "1.0", "dependencies", &[("a/__init__.py", b""), ("a/__init__.py/x", b"")]);
    std::fs::write(project.beside("lock"), project.lock()).unwrap();
    let error = try_build_in(&project.beside(""), &layout(project.beside("out"))).unwrap_err().to_string();
    assert!(
        error.starts_with("refused broken 1.0: it has /") && error.ends_with("/a/__init__.py/x below it"),
        "{error}"
    );
    assert!(!project.beside("out").exists());
}

#[test]
fn a_build_on_a_full_disk_leaves_no_image_and_the_next_one_gives_the_same() {
    const STEP: u64 = 256 << 10;
    let project = project(1 << 20);
    let expected = build_in(&project.beside(""), &layout(project.beside("out"))).digest;
    on_small_disk(16 << 10, |disk| {
        for name in ["project", "lock", "cache/packages"] {
            std::fs::create_dir_all(disk.join(name).parent().unwrap()).unwrap();
            let copied = Command::new("cp").arg("-r").arg(project.beside(name)).arg(disk.join(name)).status();
            assert!(copied.unwrap().success());
        }
        let (filler, destination) = (fill(disk), layout(disk.join("out")));
        let mut errors = Vec::new();
        // With a little more room each time it fails later.
        let built = loop {
            match try_build_in(disk, &destination) {
                Ok(built) => break built,
                Err(error) => {
                    let text = error_chain(&error);
                    assert!(text.to_lowercase().contains("no space left on device"), "{text}");
                    errors.push(text);
                }
            }
            assert!(!disk.join("out/index.json").exists(), "half an image after {errors:?}");
            filler.set_len(filler.metadata().unwrap().len() - STEP).unwrap();
        };
        for place in ["cache/unpacked/", "cache/scratch/", "out/blobs/"] {
            assert!(errors.iter().any(|error| error.contains(place)), "{place}: {errors:?}");
        }
        assert_eq!(built.digest, expected);
    });
}

/// Where a process of the test below builds, and what it writes.
const KILLED: [&str; 2] = ["CUDOCK_TEST_DIRECTORY", "CUDOCK_TEST_DESTINATION"];

#[test]
fn a_build_that_is_killed_leaves_no_image_and_the_next_one_gives_the_same() {
    let test = cudock_testkit::test_name!();
    if process::is_reentered(test) {
        let [directory, destination] = KILLED.map(|variable| std::env::var(variable).unwrap());
        build_in(Path::new(&directory), &Destination::parse(&destination).unwrap());
        return;
    }
    let start = |project: &LockedProject, destination: &Destination, command: &mut Command| {
        command.env(KILLED[0], project.beside("")).env(KILLED[1], destination.to_string());
    };
    // What is at a destination: a whole image, or nothing.
    let found = |destination: &Destination| -> Option<String> {
        let is_there = match destination {
            Destination::Layout { directory, .. } => directory.join("index.json").is_file(),
            Destination::OciArchive { file, .. } => file.is_file(),
            _ => panic!("{destination}"),
        };
        is_there.then(|| {
            if let Destination::Layout { directory, .. } = destination {
                // Other tools take every file there for a blob.
                let blobs = std::fs::read_dir(directory.join("blobs/sha256")).unwrap();
                let names: Vec<_> = blobs.map(|entry| entry.unwrap().file_name()).collect();
                assert!(names.iter().all(|name| name.len() == 64), "{names:?}");
            }
            let copy = tempfile::tempdir().unwrap();
            let source = ImageSource::parse(&destination.to_string()).unwrap();
            let found = ResolvedImage::resolve(&source, &options(copy.path())).unwrap();
            let scratch = copy.path().join("scratch");
            let write = WriteOptions {
                platform: None,
                client: None,
                sockets: Vec::new(),
                scratch,
                progress: Arc::new(NoProgress),
            };
            // Copying verifies every byte.
            let digest =
                found.bundle().unwrap().write(&layout(copy.path().join("copy")), &write).unwrap().digest;
            assert_eq!(found.referrers(&found.digest().unwrap(), None).unwrap().found.len(), 3);
            digest
        })
    };
    let whole = project(4 << 20);
    let destination = layout(whole.beside("out"));
    let mut command = process::reenter(test);
    start(&whole, &destination, &mut command);
    let began = Instant::now();
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let took = began.elapsed();
    let digest = found(&destination).unwrap();
    let killed = RefCell::new(None);
    let place = |round: u32, project: &LockedProject| {
        let file = project.beside("out.tar");
        if round.is_multiple_of(2) {
            layout(project.beside("out"))
        } else {
            Destination::OciArchive { file, name: None }
        }
    };
    process::kill_at_random(
        cases(5),
        took,
        |round| {
            let fresh = project(4 << 20);
            let mut command = process::reenter(test);
            start(&fresh, &place(round, &fresh), &mut command);
            killed.replace(Some(fresh));
            command
        },
        |round| {
            let project = killed.take().unwrap();
            let destination = place(round, &project);
            assert!(found(&destination).is_none_or(|found| found == digest), "round {round}");
            // The cache that the killed one left behind is usable.
            assert_eq!(build_in(&project.beside(""), &destination).digest, digest, "round {round}");
            let scratch = std::fs::read_dir(project.beside("cache/scratch")).unwrap();
            assert_eq!(scratch.count(), 0, "round {round}");
            assert_eq!(found(&destination), Some(digest.clone()), "round {round}");
        },
    );
}
