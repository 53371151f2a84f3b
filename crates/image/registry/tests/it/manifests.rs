//! Manifests: by tag and by digest, verified, bounded and kept.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use cudock_base::{Algorithm, Digest, Report as _};
use cudock_http::HttpErrorKind;
use cudock_registry::{Client, Error, MAX_DOCUMENT, Options};
use tempfile::tempdir;

use crate::support::{Registry, Reply, Server, client, mirrors, options, refusal};

const MANIFEST: &str = "{\"schemaVersion\": 2}\n";
const INDEX_TYPE: &str = "application/vnd.oci.image.index.v1+json";

fn manifest() -> Reply {
    Reply::new(200, MANIFEST).with("Content-Type", format!("{INDEX_TYPE}; charset=utf-8"))
}

#[test]
fn a_tag_gives_the_bytes_their_digest_and_their_type() {
    let directory = tempdir().unwrap();
    let digest = Digest::sha256_of(MANIFEST.as_bytes());
    let server = Server::start({
        let digest = digest.to_string();
        move |_| manifest().with("Docker-Content-Digest", digest.clone())
    });
    let client = client(directory.path());
    let document = client.manifest(&server.image("a/b:1.0")).unwrap();
    assert_eq!((document.digest, document.media_type.as_str()), (digest, INDEX_TYPE));
    assert_eq!(document.bytes, MANIFEST.as_bytes());
    client.manifest(&server.image("a/b")).unwrap();
    let requests = server.requests();
    assert_eq!(requests[0].path, "/v2/a/b/manifests/1.0");
    assert_eq!(requests[1].path, "/v2/a/b/manifests/latest");
    for kind in
        ["oci.image.index.v1", "oci.image.manifest.v1", "manifest.list.v2", "distribution.manifest.v2"]
    {
        assert!(requests[0].header("accept").unwrap().contains(kind), "{kind}");
    }
}

#[test]
fn a_document_requested_by_digest_is_kept_and_found_offline() {
    let directory = tempdir().unwrap();
    let server = Server::start(|_| manifest());
    for algorithm in [Algorithm::Sha256, Algorithm::Sha512] {
        let image = server.image("a/b:1.0").at(Digest::of(algorithm, MANIFEST.as_bytes()));
        let offline = Client::new(Options { offline: true, ..options(directory.path()) }).unwrap();
        assert!(matches!(offline.manifest(&image), Err(Error::Offline { .. })));
        let before = server.requests().len();
        let document = client(directory.path()).manifest(&image).unwrap();
        assert_eq!(offline.manifest(&image).unwrap(), document);
        assert_eq!(client(directory.path()).manifest(&image).unwrap(), document);
        assert_eq!(server.requests().len(), before + 1);
    }
    let offline = Client::new(Options { offline: true, ..options(directory.path()) }).unwrap();
    assert!(matches!(offline.manifest(&server.image("a/b:1.0")), Err(Error::Offline { .. })));
}

#[test]
fn a_kept_document_that_is_damaged_is_fetched_anew() {
    let directory = tempdir().unwrap();
    let server = Server::start(|_| manifest());
    let digest = Digest::sha256_of(MANIFEST.as_bytes());
    let image = server.image("a").at(digest.clone());
    let client = client(directory.path());
    client.manifest(&image).unwrap();
    fs::write(client.store().path_of(&digest).unwrap(), "{}").unwrap();
    assert_eq!(client.manifest(&image).unwrap().bytes, MANIFEST.as_bytes());
    assert_eq!(fs::read(client.store().path_of(&digest).unwrap()).unwrap(), MANIFEST.as_bytes());
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn a_document_that_came_as_a_blob_is_kept_as_a_document_and_stays_where_it_is() {
    let directory = tempdir().unwrap();
    let server = Server::start(|_| manifest());
    let digest = Digest::sha256_of(MANIFEST.as_bytes());
    let (image, client) = (server.image("a").at(digest.clone()), client(directory.path()));
    let path = client.blob(&image, &digest, MANIFEST.len() as u64).unwrap();
    let before = fs::metadata(&path).unwrap().ino();
    assert_eq!(client.manifest(&image).unwrap().media_type, INDEX_TYPE);
    assert_eq!(fs::metadata(&path).unwrap().ino(), before);
    client.manifest(&image).unwrap();
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn a_client_is_shared_by_threads() {
    let directory = tempdir().unwrap();
    let server = Server::start(|_| manifest());
    let (client, image) =
        (client(directory.path()), server.image("a").at(Digest::sha256_of(MANIFEST.as_bytes())));
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_eq!(client.manifest(&image).unwrap().bytes, MANIFEST.as_bytes()));
        }
    });
    assert_eq!(fs::read_dir(directory.path().join("cache/media-types/sha256")).unwrap().count(), 1);
}

#[test]
fn a_document_that_is_not_the_one_promised_is_refused() {
    let directory = tempdir().unwrap();
    let other = Digest::sha256_of(b"other");
    let server = Server::start({
        let other = other.to_string();
        move |_| manifest().with("Docker-Content-Digest", other.clone())
    });
    for image in [server.image("a:tag"), server.image("a").at(other.clone())] {
        let error = client(directory.path()).manifest(&image).unwrap_err();
        let message = error.to_string();
        assert!(matches!(error, Error::WrongDigest { .. }), "{error:?}");
        assert!(message.contains(&other.to_string()), "{message}");
        assert!(message.contains(&Digest::sha256_of(MANIFEST.as_bytes()).to_string()), "{message}");
    }
    assert!(client(directory.path()).store().path_of(&other).is_none());
}

#[test]
fn a_document_beyond_four_mebibytes_is_refused_however_it_is_sent() {
    let directory = tempdir().unwrap();
    let largest = usize::try_from(MAX_DOCUMENT).unwrap();
    for (length, chunked, is_taken) in
        [(largest, true, true), (largest + 1, true, false), (largest + 1, false, false)]
    {
        let server = Server::start(move |_| Reply { chunked, ..Reply::new(200, vec![b' '; length]) });
        let result = client(directory.path()).manifest(&server.image("a"));
        assert_eq!(result.is_ok(), is_taken, "{length} {chunked}");
        let too_large = |error: &Error| matches!(error, Error::Http { error, .. } if error.kind == HttpErrorKind::TooLarge);
        assert!(result.as_ref().err().is_none_or(too_large), "{result:?}");
    }
}

#[test]
fn a_truncated_document_is_requested_again() {
    let directory = tempdir().unwrap();
    let count = AtomicUsize::new(0);
    let server = Server::start(move |_| match count.fetch_add(1, Ordering::SeqCst) {
        0 => manifest().cut_after(5),
        1 => manifest().chunked().cut_after(5),
        2 => Reply::new(503, ""),
        _ => manifest(),
    });
    assert_eq!(client(directory.path()).manifest(&server.image("a")).unwrap().bytes, MANIFEST.as_bytes());
    assert_eq!(server.requests().len(), 4);
}

#[test]
fn missing_names_missing_tags_and_web_pages_are_distinguished() {
    let directory = tempdir().unwrap();
    let server = Server::start(|request| {
        if request.path.contains("unknown") {
            refusal(404, "NAME_UNKNOWN", "repository name not known to registry")
        } else if request.path.contains("page") {
            Reply::new(200, "<html>").with("Content-Type", "text/html")
        } else {
            refusal(404, "MANIFEST_UNKNOWN", "manifest\\u001b[31m unknown")
        }
    });
    let client = client(directory.path());
    let name = client.manifest(&server.image("unknown:1")).unwrap_err();
    assert!(matches!(name, Error::NameUnknown { .. }), "{name:?}");
    assert!(name.hints()[0].contains("unknown"));
    let tag = client.manifest(&server.image("known:9")).unwrap_err();
    assert!(matches!(tag, Error::NotFound { .. }), "{tag:?}");
    assert!(
        tag.to_string().contains("manifest 9 of known on") && !tag.to_string().contains('\u{1b}'),
        "{tag}"
    );
    assert!(tag.hints()[0].contains("tag"));
    assert!(!name.is_outside() && !tag.is_outside());
    let page = client.manifest(&server.image("page")).unwrap_err();
    assert!(page.to_string().contains("HTML page") && page.is_outside(), "{page}");
}

#[test]
fn an_image_exists_or_not_unless_the_registry_does_not_say() {
    let directory = tempdir().unwrap();
    let server = Server::start(|request| match request.path.rsplit('/').next() {
        Some("there") => Reply::new(200, ""),
        Some("missing") => Reply::new(404, ""),
        _ => Reply::new(403, ""),
    });
    let client = client(directory.path());
    assert!(client.exists(&server.image("a/b:there")).unwrap());
    assert!(!client.exists(&server.image("a/b:missing")).unwrap());
    assert!(matches!(client.exists(&server.image("a/b:private")), Err(Error::Forbidden { .. })));
    assert!(server.requests().iter().all(|request| request.method == "HEAD"));
}

#[test]
fn a_mirror_that_does_not_answer_is_skipped_and_the_error_of_the_origin_is_reported() {
    let directory = tempdir().unwrap();
    let gone = Server::start(|_| Reply::new(200, "")).host();
    let origin =
        Server::start(
            |request| {
                if request.path.contains("missing") { Reply::new(404, "") } else { manifest() }
            },
        );
    let conf =
        format!("[[registry]]\nprefix = \"{}\"\n[[registry.mirror]]\nlocation = \"{gone}\"\n", origin.host());
    let client = Client::new(Options { mirrors: mirrors(&conf), ..options(directory.path()) }).unwrap();
    assert!(client.manifest(&origin.image("a")).is_ok());
    let error = client.manifest(&origin.image("missing")).unwrap_err();
    assert!(
        matches!(&error, Error::NotFound { resource, .. } if resource.registry == origin.host()),
        "{error:?}"
    );
}

#[test]
fn a_registry_that_is_not_there_is_outside_trouble() {
    let directory = tempdir().unwrap();
    let gone = Server::start(|_| Reply::new(200, "")).image("a/b:1");
    let error = client(directory.path()).manifest(&gone).unwrap_err();
    assert!(error.to_string().ends_with("connection refused") && error.is_outside(), "{error}");
}
