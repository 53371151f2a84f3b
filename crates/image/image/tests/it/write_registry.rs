//! Images that are pushed, to a real registry and to one that fails.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use cudock_image::write::{
    Artifact, ArtifactBlob, Bundle, Compression, Destination, FileContent, LayerBlob, LayerEntry, Written,
    write_layer,
};
use cudock_image::{FileKind, ImageSource, OpenOptions};
use cudock_testkit::http::{Reply, Request, Server, noise};
use cudock_testkit::random::cases;
use cudock_testkit::registry::start_registry;
use cudock_testkit::{process, require_program};

use crate::support::{options, read_bundle, referrers};
use crate::write::{bundle, one_layer, run, store, write_options};

fn push(image: &Bundle, name: &str, directory: &Path) -> Written {
    image.write(&Destination::parse(name).unwrap(), &write_options(directory)).unwrap()
}

fn remote(directory: &Path) -> OpenOptions {
    OpenOptions { client: write_options(directory).client, ..options(directory) }
}

#[test]
fn an_image_is_pushed_once_mounted_elsewhere_and_pulled_by_other_tools() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let Some((_running, port)) = start_registry(path) else { return };
    let host = format!("127.0.0.1:{port}");
    let mut image = bundle(path, &[one_layer(path, Compression::default())]);
    image.attach(None, &proof());
    let name = format!("{host}/team/app:1");
    let first = push(&image, &name, path);
    assert_eq!((first.bytes_present, first.bytes_mounted, first.bytes_sent), (0, 0, image.size()));
    let again = push(&image, &name, path);
    assert_eq!((again.bytes_sent, again.bytes_present), (0, image.size()));
    // Another machine with an empty cache copies it to another repository: nothing passes through it.
    let other = tempfile::tempdir().unwrap();
    let source = ImageSource::parse(&name).unwrap();
    let read = read_bundle(&source, &remote(other.path())).unwrap();
    assert_eq!(read.digest(), image.digest());
    let copy = format!("{host}/other/app:2");
    let layer_size = read.layer_size(&read.layers().unwrap()[0]).unwrap();
    assert!(push(&read, &copy, other.path()).bytes_mounted >= layer_size);
    for name in [&name, &copy] {
        let source = ImageSource::parse(name).unwrap();
        let found = referrers(&source, image.digest(), Some("text/proof"), &remote(other.path())).unwrap();
        assert_eq!(found.len(), 1, "{name}");
    }
    let Some(skopeo) = require_program("skopeo") else { return };
    let mut pull = Command::new(skopeo);
    pull.args(["--insecure-policy", "copy", "--src-tls-verify=false", &format!("docker://{copy}")]);
    run(pull.arg(format!("oci:{}:x", path.join("pulled").display())));
    let pulled = ImageSource::parse(&format!("oci:{}:x", path.join("pulled").display())).unwrap();
    assert_eq!(read_bundle(&pulled, &options(path)).unwrap().digest(), image.digest());
}

/// A registry in memory that takes uploads.
fn stub(fail: impl Fn(&Request, usize) -> Option<Reply> + Send + Sync + 'static) -> Server {
    let count = Arc::new(AtomicUsize::new(0));
    Server::start(move |request| {
        if let Some(reply) = fail(request, count.fetch_add(1, Ordering::SeqCst)) {
            return reply;
        }
        match request.method.as_str() {
            "POST" => Reply::new(202, "").with("Location", "/v2/upload/1"),
            "PATCH" => {
                let end = request.header("content-range").unwrap().rsplit('-').next().unwrap().to_owned();
                Reply::new(202, "").with("Location", "/v2/upload/1").with("Range", format!("0-{end}"))
            }
            "PUT" => Reply::new(201, ""),
            _ => Reply::new(404, ""),
        }
    })
}

#[test]
fn a_registry_that_fails_for_a_while_is_retried() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let server = stub(|request, number| {
        let fails = number < 3 && request.method != "HEAD";
        fails.then(|| Reply::new(503, "").with("Retry-After", "0"))
    });
    let image = bundle(path, &[one_layer(path, Compression::default())]);
    push(&image, &format!("{}/team/app:1", server.host()), path);
    let last = server.requests().last().unwrap().clone();
    assert_eq!((last.method.as_str(), last.path.as_str()), ("PUT", "/v2/team/app/manifests/1"));
}

#[test]
fn a_push_that_fails_writes_no_manifest_and_says_why() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let image = bundle(path, &[one_layer(path, Compression::default())]);
    for (status, says) in [(403, "denied"), (413, "413"), (507, "507")] {
        let server = stub(move |request, _| (request.method == "PATCH").then(|| Reply::new(status, "")));
        let destination = Destination::parse(&format!("{}/team/app:1", server.host())).unwrap();
        let mut options = write_options(path);
        let mut registry = cudock_registry::Options::new(crate::write::store(path));
        registry.retries.max_retries = 0;
        options.client = Some(Arc::new(cudock_registry::Client::new(registry).unwrap()));
        let error = image.write(&destination, &options).unwrap_err().to_string();
        assert!(error.contains(says) || error.contains(&status.to_string()), "{error}");
        assert_eq!(server.count("/manifests/"), 0, "{status}");
    }
}

#[test]
fn the_tag_comes_after_what_refers_to_the_image() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let server = stub(|_, _| None);
    let mut image = bundle(path, &[one_layer(path, Compression::default())]);
    let referrer = image.attach(None, &proof()).digest;
    push(&image, &format!("{}/team/app:1", server.host()), path);
    let requests = server.requests();
    let puts =
        requests.iter().filter(|request| request.method == "PUT" && request.path.contains("/manifests/"));
    let names: Vec<&str> = puts.filter_map(|request| request.path.rsplit('/').next()).collect();
    let fallback = image.digest().replace(':', "-");
    assert_eq!(names, [image.digest(), referrer.as_str(), fallback.as_str(), "1"]);
}

fn proof() -> Artifact {
    let (media_type, bytes) = ("text/plain".to_owned(), b"proof".to_vec());
    let layers = vec![ArtifactBlob { media_type, bytes, annotations: BTreeMap::new() }];
    Artifact { artifact_type: "text/proof".to_owned(), layers, annotations: BTreeMap::new() }
}

/// An image that takes a while to push, with something that refers to it.
fn large_image(directory: &Path) -> Bundle {
    let layers: Vec<LayerBlob> = (0_u8..3)
        .map(|number| {
            let content = FileContent::Bytes([vec![number], noise(2 << 20)].concat());
            let entry = LayerEntry::new(format!("data/{number}"), FileKind::File(content), 0o644);
            write_layer(&store(directory), Compression::default(), vec![entry]).unwrap()
        })
        .collect();
    let mut image = bundle(directory, &layers);
    image.attach(None, &proof());
    image
}

/// The place and the name that a process of the test below pushes to.
const KILLED: [&str; 2] = ["CUDOCK_TEST_DIRECTORY", "CUDOCK_TEST_NAME"];

#[test]
fn a_push_that_is_killed_has_no_tag_and_the_next_one_completes_it() {
    let test = cudock_testkit::test_name!();
    if process::is_reentered(test) {
        let [directory, name] = KILLED.map(|variable| std::env::var(variable).unwrap());
        push(&large_image(Path::new(&directory)), &name, Path::new(&directory));
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let Some((_running, port)) = start_registry(path) else { return };
    let host = format!("127.0.0.1:{port}");
    let start = |name: &str, command: &mut Command| {
        command.env(KILLED[0], path.join("pusher")).env(KILLED[1], format!("{host}/{name}"));
    };
    let mut whole = process::reenter(test);
    start("whole:1", &mut whole);
    let began = Instant::now();
    run(&mut whole);
    let took = began.elapsed();
    // What is at a name: a whole image, which another machine with an empty cache copies, or nothing.
    let pulled = |name: &str| -> Option<String> {
        let other = tempfile::tempdir().unwrap();
        let read = read_bundle(&ImageSource::parse(name).unwrap(), &remote(other.path()));
        let image = match read {
            Ok(image) => image,
            Err(error) => {
                assert!(error.to_string().contains("not found"), "{error}");
                return None;
            }
        };
        let copy = Destination::parse(&format!("oci:{}", other.path().join("copy").display())).unwrap();
        image.write(&copy, &write_options(other.path())).unwrap();
        let source = ImageSource::parse(&copy.to_string()).unwrap();
        let found = referrers(&source, image.digest(), Some("text/proof"), &options(other.path())).unwrap();
        assert_eq!(found.len(), 1, "{name}");
        Some(image.digest().to_owned())
    };
    let digest = pulled(&format!("{host}/whole:1")).unwrap();
    // Each to a repository of its own, with the cache that the killed ones left behind.
    let name = |round: u32| format!("round{round}/app:1");
    process::kill_at_random(
        cases(5),
        took,
        |round| {
            let mut command = process::reenter(test);
            start(&name(round), &mut command);
            command
        },
        |round| {
            let name = format!("{host}/{}", name(round));
            assert!(pulled(&name).is_none_or(|found| found == digest), "round {round}");
            push(&large_image(&path.join("pusher")), &name, &path.join("pusher"));
            assert_eq!(pulled(&name), Some(digest.clone()), "round {round}");
        },
    );
}
