//! Downloads into a store. Those of registries, with mirrors and killed processes, are tested with cudock-registry.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use cudock_base::Digest;
use cudock_http::{Blob, BlobStore, Download, DownloadError, HttpError, NoProgress, Request, Response};

use crate::{QUICK, client, url};
use cudock_testkit::http::{Reply, Server, noise};

fn download(
    store: &BlobStore,
    digest: &Digest,
    size: u64,
    server: &Server,
) -> Result<Vec<u8>, DownloadError<HttpError>> {
    let Blob::Partial(mut partial) = store.begin(digest, size, &|| {}).unwrap() else { panic!("complete") };
    let client = client();
    let request = |from: Option<u64>| -> Result<Response, HttpError> {
        let response = client.send(&Request::get(url(server, "/file")).range_from(from))?;
        if from.is_some() && response.status() == 416 { Ok(response) } else { response.error_for_status() }
    };
    let download = Download { name: "file", progress: &NoProgress, retries: QUICK };
    download.run(&mut partial, request).map(|path| fs::read(path).unwrap())
}

#[test]
fn a_download_continues_where_the_connection_broke() {
    let (directory, content) = (tempfile::tempdir().unwrap(), noise(400_000));
    let server = Server::start({
        let (content, count) = (content.clone(), AtomicUsize::new(0));
        move |request| match count.fetch_add(1, Ordering::SeqCst) {
            0 => Reply::blob(request, &content).cut_after(150_000),
            1 => Reply::new(503, ""),
            2 => Reply::blob(request, &content).chunked().cut_after(100_000),
            _ => Reply::blob(request, &content),
        }
    });
    let store = BlobStore::open(directory.path()).unwrap();
    let digest = Digest::sha256_of(&content);
    assert_eq!(download(&store, &digest, 400_000, &server).unwrap(), content);
    let from: Vec<_> = server.requests().iter().map(cudock_testkit::http::Request::first_byte).collect();
    assert_eq!(from, [None, Some(150_000), Some(150_000), Some(250_000)]);
}

#[test]
fn bytes_of_an_earlier_run_are_blamed_before_the_server() {
    let (directory, content) = (tempfile::tempdir().unwrap(), noise(10_000));
    let server = Server::start({
        let content = content.clone();
        move |request| Reply::blob(request, &content)
    });
    let store = BlobStore::open(directory.path()).unwrap();
    let digest = Digest::sha256_of(&content);
    fs::write(directory.path().join("partial").join(digest.hex()), "damaged").unwrap();
    assert_eq!(download(&store, &digest, 10_000, &server).unwrap(), content);
    let from: Vec<_> = server.requests().iter().map(cudock_testkit::http::Request::first_byte).collect();
    assert_eq!(from, [Some(7), None]);
}

#[test]
fn wrong_bytes_and_wrong_sizes_are_not_stored() {
    let directory = tempfile::tempdir().unwrap();
    let store = BlobStore::open(directory.path()).unwrap();
    let digest = Digest::sha256_of(b"right");
    let get = |reply: Reply| {
        let server = Server::start(move |_| reply.clone());
        let result = download(&store, &digest, 5, &server);
        (result.unwrap_err(), server.requests().len())
    };
    assert!(matches!(get(Reply::new(200, "wrong")), (DownloadError::WrongDigest { .. }, 1)));
    assert!(matches!(get(Reply::new(200, "right!")), (DownloadError::WrongSize(_), 1)));
    assert!(matches!(get(Reply::new(200, "right!").chunked()), (DownloadError::WrongSize(_), 1)));
    assert!(matches!(get(Reply::new(200, "rig").chunked()), (DownloadError::Body(_), 4)));
    assert!(matches!(get(Reply::new(404, "")), (DownloadError::Request(_), 1)));
    assert_eq!(store.path_of(&digest), None);
}
