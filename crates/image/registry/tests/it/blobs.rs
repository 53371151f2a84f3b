//! Blobs over lines that break, from servers that misbehave.

use std::fs;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use cudock_base::{Digest, Report as _};
use cudock_http::{HttpErrorKind, Progress, RetryPolicy};
use cudock_registry::{Client, Error, Options};
use cudock_testkit::process::{is_reentered, reenter};
use cudock_testkit::test_name;
use tempfile::tempdir;

use crate::support::{self, QUICK, Registry, Reply, Server, Then, client, mirrors, noise, options, refusal};

const SIZE: usize = 400_000;

fn size_of(bytes: &[u8]) -> u64 {
    bytes.len() as u64
}

/// A handler that answers the nth request by `answer`.
fn numbered(
    answer: impl Fn(usize, &support::Request) -> Reply + Send + Sync,
) -> impl Fn(&support::Request) -> Reply + Send + Sync {
    let count = AtomicUsize::new(0);
    move |request| answer(count.fetch_add(1, Ordering::SeqCst), request)
}

#[test]
fn a_blob_lands_in_the_store_and_is_requested_once() {
    let (directory, blob) = (tempdir().unwrap(), noise(SIZE));
    let server = Server::start({
        let blob = blob.clone();
        move |request| Reply::blob(request, &blob)
    });
    let digest = Digest::sha256_of(&blob);
    let client = client(directory.path());
    let path = client.blob(&server.image("a/b"), &digest, size_of(&blob)).unwrap();
    assert_eq!(path, directory.path().join("cache/blobs/sha256").join(digest.hex()));
    assert_eq!(fs::read(&path).unwrap(), blob);
    assert_eq!(client.blob(&server.image("a/b"), &digest, size_of(&blob)).unwrap(), path);
    assert_eq!(server.requests().len(), 1);
    assert_eq!(server.requests()[0].path, format!("/v2/a/b/blobs/{digest}"));
    assert_eq!(fs::read_dir(directory.path().join("cache/partial")).unwrap().count(), 0);
    assert!(matches!(client.blob(&server.image("a/b"), &digest, 7), Err(Error::WrongSize { .. })));
}

#[test]
fn a_body_that_is_cut_is_taken_up_where_it_ended() {
    let (directory, blob) = (tempdir().unwrap(), noise(SIZE));
    let server = Server::start(numbered({
        let blob = blob.clone();
        move |n, request| match n {
            0 => Reply::blob(request, &blob).cut_after(150_000),
            1 => Reply::blob(request, &blob).chunked().cut_after(100_000),
            _ => Reply::blob(request, &blob),
        }
    }));
    let path =
        client(directory.path()).blob(&server.image("a"), &Digest::sha256_of(&blob), size_of(&blob)).unwrap();
    assert_eq!(fs::read(path).unwrap(), blob);
    let from: Vec<_> = server.requests().iter().map(support::Request::first_byte).collect();
    assert_eq!(from, [None, Some(150_000), Some(250_000)]);
}

#[test]
fn a_registry_that_falls_silent_is_retried() {
    let (directory, blob) = (tempdir().unwrap(), noise(SIZE));
    let server = Server::start(numbered({
        let blob = blob.clone();
        move |n, request| match n {
            0 => Reply { then: Then::Stall, ..Reply::blob(request, &blob).cut_after(150_000) },
            _ => Reply::blob(request, &blob),
        }
    }));
    let timeout = Duration::from_millis(300);
    let client = Client::new(Options { timeout, ..options(directory.path()) }).unwrap();
    let path = client.blob(&server.image("a"), &Digest::sha256_of(&blob), size_of(&blob)).unwrap();
    assert_eq!(fs::read(path).unwrap(), blob);
    assert_eq!(server.requests()[1].first_byte(), Some(150_000));
}

#[test]
fn a_server_that_ignores_range_sends_all_anew() {
    let (directory, blob) = (tempdir().unwrap(), noise(SIZE));
    let server = Server::start(numbered({
        let blob = blob.clone();
        move |n, _| if n == 0 { Reply::new(200, &*blob).cut_after(1000) } else { Reply::new(200, &*blob) }
    }));
    let path =
        client(directory.path()).blob(&server.image("a"), &Digest::sha256_of(&blob), size_of(&blob)).unwrap();
    assert_eq!(fs::read(path).unwrap(), blob);
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn a_part_other_than_the_requested_one_is_not_taken() {
    let (directory, blob) = (tempdir().unwrap(), noise(SIZE));
    let server = Server::start(numbered({
        let blob = blob.clone();
        move |n, request| match n {
            0 => Reply::blob(request, &blob).cut_after(1000),
            1 => {
                Reply::new(206, &blob[500..]).with("Content-Range", format!("bytes 500-{}/{SIZE}", SIZE - 1))
            }
            2 => Reply::blob(request, &blob).cut_after(2000),
            3 => Reply::new(416, ""),
            _ => Reply::blob(request, &blob),
        }
    }));
    let retries = RetryPolicy { max_retries: 5, ..QUICK };
    let client = Client::new(Options { retries, ..options(directory.path()) }).unwrap();
    let path = client.blob(&server.image("a"), &Digest::sha256_of(&blob), size_of(&blob)).unwrap();
    assert_eq!(fs::read(path).unwrap(), blob);
}

#[test]
fn a_requested_wait_is_kept() {
    #[derive(Default)]
    struct Waits(Mutex<Vec<Duration>>);
    impl Progress for Waits {
        fn retrying(&self, _: &str, reason: &str, wait: Duration) {
            assert!(!reason.is_empty());
            self.0.lock().unwrap().push(wait);
        }
    }
    let (directory, blob) = (tempdir().unwrap(), noise(10));
    let server = Server::start(numbered({
        let blob = blob.clone();
        move |n, request| match n {
            0 => Reply::new(429, "").with("Retry-After", "1"),
            1 => Reply::new(429, "").with("Retry-After", "86400"),
            _ => Reply::blob(request, &blob),
        }
    }));
    let waits = Arc::new(Waits::default());
    let retries = RetryPolicy { max_delay: Duration::from_millis(1100), ..QUICK };
    let progress: Option<Arc<dyn Progress>> = Some(Arc::clone(&waits) as _);
    let client = Client::new(Options { retries, progress, ..options(directory.path()) }).unwrap();
    let began = Instant::now();
    client.blob(&server.image("a"), &Digest::sha256_of(&blob), 10).unwrap();
    assert!(began.elapsed() >= Duration::from_millis(2100));
    assert_eq!(*waits.0.lock().unwrap(), [Duration::from_secs(1), Duration::from_millis(1100)]);
}

#[test]
fn a_registry_that_keeps_failing_is_given_up() {
    let directory = tempdir().unwrap();
    for (status, requests) in [(500, 4), (503, 4), (429, 4), (403, 1), (404, 1), (501, 1)] {
        let server = Server::start(move |_| refusal(status, "X", "the cellar is full"));
        let error =
            client(directory.path()).blob(&server.image("a/b"), &Digest::sha256_of(b"x"), 1).unwrap_err();
        assert_eq!(server.requests().len(), requests, "{status}");
        let message = error.to_string();
        assert!(
            message.contains(&server.host()) && message.contains("a/b") && message.contains("blob sha256:"),
            "{message}"
        );
        match (status, &error) {
            (403, Error::Forbidden { .. }) | (404, Error::NotFound { .. }) => {}
            (_, Error::Http { error, .. }) => {
                assert_eq!(error.kind, HttpErrorKind::Status(status));
                assert!(message.contains("the cellar is full"), "{message}");
            }
            _ => panic!("{status}: {error:?}"),
        }
        assert_eq!(error.is_outside(), status != 404);
        assert_eq!(error.hints().len(), 1);
    }
}

#[test]
fn bytes_with_another_digest_are_discarded_and_both_digests_reported() {
    let (directory, blob) = (tempdir().unwrap(), noise(SIZE));
    let server = Server::start({
        let mut altered = blob.clone();
        altered[777] ^= 1;
        move |request| Reply::blob(request, &altered)
    });
    let (wanted, client) = (Digest::sha256_of(&blob), client(directory.path()));
    let error = client.blob(&server.image("a"), &wanted, size_of(&blob)).unwrap_err();
    let Error::WrongDigest { actual, .. } = &error else { panic!("{error:?}") };
    assert!(
        error.to_string().contains(&wanted.to_string()) && error.to_string().contains(&actual.to_string())
    );
    assert!(client.store().path_of(&wanted).is_none());
    assert_eq!(fs::read_dir(directory.path().join("cache/partial")).unwrap().count(), 0);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_body_beyond_the_announced_size_is_refused_before_it_is_written() {
    let (directory, blob) = (tempdir().unwrap(), noise(SIZE));
    for chunked in [false, true] {
        let server = Server::start({
            let blob = blob.clone();
            move |_| Reply { chunked, ..Reply::new(200, &*blob) }
        });
        let error =
            client(directory.path()).blob(&server.image("a"), &Digest::sha256_of(&blob), 1000).unwrap_err();
        assert!(matches!(error, Error::WrongSize { .. }), "{error:?}");
        assert_eq!(fs::read_dir(directory.path().join("cache/partial")).unwrap().count(), 0);
    }
}

#[test]
fn a_registry_that_vanishes_in_a_blob_is_gone_on_with_by_another_client() {
    let (directory, blob) = (tempdir().unwrap(), noise(SIZE));
    let digest = Digest::sha256_of(&blob);
    let first = Server::start({
        let blob = blob.clone();
        move |request| Reply::blob(request, &blob).cut_after(123_456)
    });
    let (address, image) = (first.address(), first.image("a"));
    let retries = RetryPolicy { max_retries: 2, initial_delay: Duration::from_millis(400), ..QUICK };
    let retries = RetryPolicy { max_delay: Duration::from_millis(400), ..retries };
    let fetching = thread::spawn({
        let (options, image, digest) = (options(directory.path()), image.clone(), digest.clone());
        let client = Client::new(Options { retries, ..options }).unwrap();
        move || client.blob(&image, &digest, SIZE as u64)
    });
    while first.requests().is_empty() {
        thread::sleep(Duration::from_millis(2));
    }
    thread::sleep(Duration::from_millis(50));
    drop(first);
    let error = fetching.join().unwrap().unwrap_err();
    assert!(matches!(&error, Error::Http { error, .. } if error.reason.contains("refused")), "{error:?}");
    assert!(error.is_outside() && error.hints()[0].contains("reached"));

    let second = Server::start_at(address, {
        let blob = blob.clone();
        move |request| Reply::blob(request, &blob)
    });
    let path = client(directory.path()).blob(&image, &digest, size_of(&blob)).unwrap();
    assert_eq!(fs::read(path).unwrap(), blob);
    assert_eq!(second.requests()[0].first_byte(), Some(123_456));
}

#[test]
fn two_clients_that_want_one_blob_fetch_it_once() {
    let (directory, blob) = (tempdir().unwrap(), noise(SIZE));
    let server = Server::start({
        let blob = blob.clone();
        move |request| {
            thread::sleep(Duration::from_millis(100));
            Reply::blob(request, &blob)
        }
    });
    let (digest, image, together) = (Digest::sha256_of(&blob), server.image("a"), Arc::new(Barrier::new(4)));
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let (client, together) = (client(directory.path()), Arc::clone(&together));
            let (digest, image) = (digest.clone(), image.clone());
            thread::spawn(move || {
                together.wait();
                client.blob(&image, &digest, SIZE as u64).unwrap()
            })
        })
        .collect();
    for client in clients {
        assert_eq!(fs::read(client.join().unwrap()).unwrap(), blob);
    }
    assert_eq!(server.requests().len(), 1);
}

const CHILD_IMAGE: &str = "CUDOCK_TEST_CHILD_IMAGE";
const CHILD_DIRECTORY: &str = "CUDOCK_TEST_CHILD_DIRECTORY";

#[test]
fn a_killed_run_leaves_a_part_that_the_next_run_goes_on_with() {
    let test = test_name!();
    if is_reentered(test) {
        let (image, directory) =
            (std::env::var(CHILD_IMAGE).unwrap(), std::env::var_os(CHILD_DIRECTORY).unwrap());
        let digest = Digest::sha256_of(&noise(SIZE));
        let _ = client(directory.as_ref()).blob(&image.parse().unwrap(), &digest, SIZE as u64);
        return;
    }
    let (directory, blob) = (tempdir().unwrap(), noise(SIZE));
    let server = Server::start(numbered({
        let blob = blob.clone();
        move |n, request| match n {
            0 => Reply { then: Then::Stall, ..Reply::blob(request, &blob).cut_after(200_000) },
            _ => Reply::blob(request, &blob),
        }
    }));
    let mut child = reenter(test)
        .env(CHILD_IMAGE, server.image("a").to_string())
        .env(CHILD_DIRECTORY, directory.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let (digest, began) = (Digest::sha256_of(&blob), Instant::now());
    let partial = directory.path().join("cache/partial").join(digest.hex());
    while fs::metadata(&partial).map_or(0, |meta| meta.len()) < 200_000 {
        assert!(began.elapsed() < Duration::from_secs(20), "the child does not fetch");
        thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!directory.path().join("cache/blobs/sha256").join(digest.hex()).exists());

    let path = client(directory.path()).blob(&server.image("a"), &digest, size_of(&blob)).unwrap();
    assert_eq!(fs::read(path).unwrap(), blob);
    assert_eq!(server.requests()[1].first_byte(), Some(200_000));
}

#[test]
fn a_part_that_is_damaged_is_fetched_anew() {
    let blob = noise(SIZE);
    let digest = Digest::sha256_of(&blob);
    let mut damaged = blob[..1000].to_vec();
    damaged[3] ^= 1;
    for (left, requests) in [(damaged, 2), (noise(SIZE + 1), 1), (vec![0; SIZE], 1)] {
        let directory = tempdir().unwrap();
        let server = Server::start({
            let blob = blob.clone();
            move |request| Reply::blob(request, &blob)
        });
        let client = client(directory.path());
        fs::write(directory.path().join("cache/partial").join(digest.hex()), left).unwrap();
        let path = client.blob(&server.image("a"), &digest, size_of(&blob)).unwrap();
        assert_eq!(fs::read(path).unwrap(), blob);
        assert_eq!(server.requests().len(), requests);
    }
}

#[test]
fn a_part_that_is_whole_needs_no_network() {
    let (directory, blob) = (tempdir().unwrap(), noise(SIZE));
    let server = Server::start(|_| Reply::new(500, ""));
    let (digest, client) = (Digest::sha256_of(&blob), client(directory.path()));
    fs::write(directory.path().join("cache/partial").join(digest.hex()), &blob).unwrap();
    client.blob(&server.image("a"), &digest, size_of(&blob)).unwrap();
    client.blob(&server.image("a"), &Digest::sha256_of(b""), 0).unwrap();
    assert!(server.requests().is_empty());
}

#[test]
fn a_mirror_is_tried_first_and_the_origin_replaces_what_it_spoils() {
    let blob = noise(SIZE);
    let spoiled = noise(SIZE + 1)[1..].to_vec();
    let cases: [(Reply, bool); 5] = [
        (Reply::new(200, &*blob), false),
        (Reply::new(404, ""), true),
        (Reply::new(500, ""), true),
        (Reply::new(200, spoiled), true),
        (Reply::new(200, &*blob).cut_after(5000), true),
    ];
    for (reply, reaches_origin) in cases {
        let directory = tempdir().unwrap();
        let mirror = Server::start(move |_| reply.clone());
        let origin = Server::start({
            let blob = blob.clone();
            move |request| Reply::blob(request, &blob)
        });
        let conf = format!(
            "[[registry]]\nprefix = \"{}\"\n[[registry.mirror]]\nlocation = \"{}/copies\"\n",
            origin.host(),
            mirror.host()
        );
        let client = Client::new(Options { mirrors: mirrors(&conf), ..options(directory.path()) }).unwrap();
        let path = client.blob(&origin.image("a"), &Digest::sha256_of(&blob), size_of(&blob)).unwrap();
        assert_eq!(fs::read(path).unwrap(), blob);
        assert_eq!(mirror.count("/v2/copies/a/blobs/"), mirror.requests().len());
        assert!(!mirror.requests().is_empty());
        assert_eq!(!origin.requests().is_empty(), reaches_origin);
    }
}

#[test]
fn offline_serves_the_cache_and_nothing_else() {
    let (directory, blob) = (tempdir().unwrap(), noise(100));
    let server = Server::start({
        let blob = blob.clone();
        move |request| Reply::blob(request, &blob)
    });
    let offline = Client::new(Options { offline: true, ..options(directory.path()) }).unwrap();
    let (image, digest) = (server.image("a/b"), Digest::sha256_of(&blob));
    let error = offline.blob(&image, &digest, 100).unwrap_err();
    assert!(matches!(error, Error::Offline { .. }), "{error:?}");
    assert!(error.to_string().contains("a/b") && error.hints()[0].contains("online"));
    assert!(server.requests().is_empty());
    client(directory.path()).blob(&image, &digest, 100).unwrap();
    assert!(offline.blob(&image, &digest, 100).is_ok());
}
