//! Installing from indexes that answer well, badly and with malice.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use cudock_base::{Arch, Digest, Environment, NamedArch, Report as _};
use cudock_facts::Facts;
use cudock_facts::tables::{RuntimeWheel, WheelMember};
use cudock_http::{BlobStore, NoProgress, RetryPolicy};
use cudock_pypi::runtime::{FoundBy, Installer, Package, SearchContext, ensure, wheel_for};
use cudock_pypi::url::PackageSource;
use cudock_pypi::{Netrc, PypiError, Settings, SourceErrorKind};
use cudock_testkit::http::{Reply, Request, Server, noise, secret};
use zip::write::SimpleFileOptions;

const FILE: &str = "onnxruntime-1.31.1-cp312-cp312-manylinux_2_28_x86_64.whl";
const LIBRARY: &str = "onnxruntime/capi/libonnxruntime.so.1.31.1";
const LICENSE: &str = "onnxruntime/LICENSE";

/// A wheel of these members, packed.
fn packed(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, content) in members {
        zip.start_file(*name, SimpleFileOptions::default()).unwrap();
        zip.write_all(content).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// The row that pins these bytes, with this library in them.
fn pinned(bytes: &[u8], library: &[u8]) -> RuntimeWheel {
    let facts = Facts::embedded();
    let row = facts.runtimes().newest("onnxruntime", Arch::X86_64).unwrap();
    let member =
        |path: &str, size: usize| WheelMember { path: path.to_owned(), size: size.try_into().unwrap() };
    RuntimeWheel {
        size: bytes.len().try_into().unwrap(),
        sha256: Digest::sha256_of(bytes).hex().to_owned(),
        members: vec![member(LIBRARY, library.len()), member(LICENSE, 4)],
        ..row.clone()
    }
}

/// An honest wheel with its row.
fn honest() -> (Vec<u8>, RuntimeWheel) {
    let library = noise(300_000);
    let bytes = packed(&[("onnxruntime/__init__.py", b"import os"), (LIBRARY, &library), (LICENSE, b"free")]);
    let row = pinned(&bytes, &library);
    (bytes, row)
}

fn quick() -> RetryPolicy {
    let (initial_delay, max_delay) = (Duration::from_millis(2), Duration::from_millis(20));
    RetryPolicy { max_retries: 3, initial_delay, max_delay }
}

fn installer(directory: &Path, indexes: &[&str]) -> Installer {
    let indexes = indexes.iter().map(|index| PackageSource::parse(index, None).unwrap()).collect();
    Installer {
        settings: Settings { indexes, ..Settings::public() },
        store: BlobStore::open(directory.join("cache")).unwrap(),
        offline: false,
        progress: Arc::new(NoProgress),
        retries: quick(),
    }
}

fn index_of(server: &Server) -> String {
    format!("http://{}/simple", server.host())
}

fn json_page(url: &str, sha256: &str) -> Reply {
    let page = format!(
        r#"{{"meta":{{"api-version":"1.1"}},"name":"onnxruntime","files":[{{"filename":"x.tar.gz","url":"x.tar.gz","hashes":{{}}}},{{"filename":"{FILE}","url":"{url}","hashes":{{"sha256":"{sha256}"}}}}]}}"#
    );
    Reply::new(200, page).with("Content-Type", "application/vnd.pypi.simple.v1+json")
}

/// An index with this wheel, in JSON.
fn server_with(bytes: Vec<u8>, sha256: String) -> Server {
    Server::start(move |request: &Request| match request.path.as_str() {
        "/simple/onnxruntime/" => json_page(&format!("../../files/{FILE}"), &sha256),
        path if path == format!("/files/{FILE}") => Reply::blob(request, &bytes),
        _ => Reply::new(404, ""),
    })
}

/// What lies below the directory of installations, by name.
fn names(directory: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn tried(error: &PypiError) -> Vec<(SourceErrorKind, String)> {
    let PypiError::Unavailable { tried, .. } = error else { panic!("{error:?}") };
    tried.iter().map(|tried| (tried.kind, tried.reason.clone())).collect()
}

#[test]
fn a_wheel_is_installed_from_a_json_index_once() {
    let directory = tempfile::tempdir().unwrap();
    let (bytes, row) = honest();
    let server = server_with(bytes, row.sha256.clone());
    let installer = installer(directory.path(), &[&index_of(&server)]);
    let first = installer.install(&row).unwrap();
    assert!(first.fresh);
    assert_eq!(first.found.package, Package::Onnxruntime);
    assert_eq!(first.found.version.as_deref(), Some("1.31.1"));
    assert_eq!(first.found.found_by, FoundBy::Cache);
    assert_eq!(fs::read(&first.found.library).unwrap(), noise(300_000));
    let home = first.found.library.parent().unwrap();
    assert_eq!(names(home), ["LICENSE", "libonnxruntime.so.1.31.1"], "nothing but what the row names");
    assert_eq!(names(&directory.path().join("cache/blobs/sha256")), [""; 0], "the wheel itself is not kept");
    let request_count = server.requests().len();
    let again = installer.install(&row).unwrap();
    assert_eq!((again.fresh, &again.found), (false, &first.found));
    assert_eq!(server.requests().len(), request_count, "what is there is not requested");
    let accept = server.requests()[0].header("accept").unwrap().to_owned();
    assert!(accept.starts_with("application/vnd.pypi.simple.v1+json, "), "{accept}");
}

#[test]
fn a_wheel_is_installed_from_an_html_index() {
    let directory = tempfile::tempdir().unwrap();
    let (bytes, row) = honest();
    let sha256 = row.sha256.clone();
    let server = Server::start(move |request: &Request| {
        match request.path.as_str() {
        "/simple/onnxruntime/" => Reply::new(302, "").with("Location", "/mirror/onnxruntime/index.html"),
        "/mirror/onnxruntime/index.html" => Reply::new(
            200,
            format!("<html><a href=\"old.whl\">old</a><br/><a href=\"files/{FILE}?v=1&amp;x=2#sha256={sha256}\">{FILE}</a></html>"),
        )
        .with("Content-Type", "text/html; charset=utf-8"),
        path if path == format!("/mirror/onnxruntime/files/{FILE}?v=1&x=2") => Reply::blob(request, &bytes),
        _ => Reply::new(404, ""),
    }
    });
    assert!(installer(directory.path(), &[&index_of(&server)]).install(&row).unwrap().fresh);
}

#[test]
fn a_cut_connection_is_taken_up_where_it_ended() {
    let directory = tempfile::tempdir().unwrap();
    let (bytes, row) = honest();
    let sha256 = row.sha256.clone();
    let server = Server::start(move |request: &Request| match request.path.as_str() {
        "/simple/onnxruntime/" => json_page(&format!("/files/{FILE}"), &sha256),
        // Whoever asks for the whole gets a part of it.
        _ if request.first_byte().is_none() => Reply::blob(request, &bytes).cut_after(100_000),
        _ => Reply::blob(request, &bytes),
    });
    let mut installer = installer(directory.path(), &[&index_of(&server)]);
    installer.retries.max_retries = 0;
    let error = installer.install(&row).unwrap_err();
    assert_eq!(tried(&error)[0].0, SourceErrorKind::Unreachable, "{error}");
    assert!(error.hints()[0].contains("the downloaded part is kept"));
    // Another run, as after a kill.
    assert!(installer.install(&row).unwrap().fresh);
    let ranges: Vec<usize> = server.requests().iter().filter_map(Request::first_byte).collect();
    assert!(matches!(ranges.as_slice(), [from] if *from > 0 && *from <= 100_000), "{ranges:?}");
}

#[test]
fn bytes_with_another_hash_are_never_installed() {
    let directory = tempfile::tempdir().unwrap();
    let (mut bytes, row) = honest();
    bytes[5000] ^= 1;
    let lying = server_with(bytes.clone(), row.sha256.clone());
    let error = installer(directory.path(), &[&index_of(&lying)]).install(&row).unwrap_err();
    let (why, reason) = tried(&error).remove(0);
    assert_eq!(why, SourceErrorKind::WrongBytes, "{error}");
    assert!(reason.contains(&row.sha256) && error.hints()[0].contains("another index"), "{error}");
    // An index that lists another hash is not asked for the file.
    let open = server_with(bytes.clone(), Digest::sha256_of(&bytes).hex().to_owned());
    let error = installer(directory.path(), &[&index_of(&open)]).install(&row).unwrap_err();
    assert_eq!((tried(&error)[0].0, open.count("/files/")), (SourceErrorKind::WrongBytes, 0));
    let runtimes = directory.path().join("cache/runtimes");
    assert!(names(&runtimes).iter().all(|name| name.starts_with('.')), "{:?}", names(&runtimes));
}

#[test]
fn every_index_that_fails_is_reported_with_its_error() {
    let directory = tempfile::tempdir().unwrap();
    let (_, row) = honest();
    let empty = Server::start(|_: &Request| Reply::new(404, ""));
    let other = Server::start(|_: &Request| {
        Reply::new(200, "<a href='other.whl'>other.whl</a>").with("Content-Type", "text/html")
    });
    let broken = Server::start(|_: &Request| {
        Reply::new(200, "{\"files\":7}").with("Content-Type", "application/vnd.pypi.simple.v1+json")
    });
    let dead = {
        let gone = Server::start(|_: &Request| Reply::new(404, ""));
        index_of(&gone)
    };
    let bad = [index_of(&empty), index_of(&other), index_of(&broken), dead];
    let bad: Vec<&str> = bad.iter().map(String::as_str).collect();
    let error = installer(directory.path(), &bad).install(&row).unwrap_err();
    let whys: Vec<SourceErrorKind> = tried(&error).into_iter().map(|(why, _)| why).collect();
    assert_eq!(
        whys,
        [
            SourceErrorKind::NotListed,
            SourceErrorKind::NotListed,
            SourceErrorKind::Protocol,
            SourceErrorKind::Unreachable
        ],
        "{error}"
    );
    assert!(error.is_outside());
}

#[test]
fn the_second_index_serves_where_the_first_does_not() {
    let directory = tempfile::tempdir().unwrap();
    let (bytes, row) = honest();
    let empty = Server::start(|_: &Request| Reply::new(404, ""));
    let good = server_with(bytes, row.sha256.clone());
    assert!(installer(directory.path(), &[&index_of(&empty), &index_of(&good)]).install(&row).unwrap().fresh);
    assert_eq!(empty.count("/simple/onnxruntime/"), 1);
}

#[test]
fn an_overloaded_index_is_retried() {
    let directory = tempfile::tempdir().unwrap();
    let (bytes, row) = honest();
    let sha256 = row.sha256.clone();
    let attempts = std::sync::atomic::AtomicUsize::new(0);
    let server = Server::start(move |request: &Request| {
        if attempts.fetch_add(1, std::sync::atomic::Ordering::SeqCst).is_multiple_of(2) {
            return Reply::new(503, "").with("Retry-After", "0");
        }
        match request.path.as_str() {
            "/simple/onnxruntime/" => json_page(&format!("/files/{FILE}"), &sha256),
            _ => Reply::blob(request, &bytes),
        }
    });
    assert!(installer(directory.path(), &[&index_of(&server)]).install(&row).unwrap().fresh);
    assert_eq!(server.requests().len(), 4);
}

#[test]
fn a_sign_in_goes_to_its_own_origin_and_into_no_error() {
    let directory = tempfile::tempdir().unwrap();
    let (bytes, row) = honest();
    let elsewhere = {
        let bytes = bytes.clone();
        Server::start(move |request: &Request| Reply::blob(request, &bytes))
    };
    let (address, sha256) = (elsewhere.host(), row.sha256.clone());
    let server = Server::start(move |request: &Request| match request.header("authorization") {
        Some(_) => json_page(&format!("http://{address}/{FILE}"), &sha256),
        None => Reply::new(401, "").with("WWW-Authenticate", "Basic realm=\"x\""),
    });
    let error = installer(directory.path(), &[&index_of(&server)]).install(&row).unwrap_err();
    assert_eq!(tried(&error)[0], (SourceErrorKind::SignIn, "requires credentials".to_owned()));
    assert!(error.hints()[0].contains("~/.netrc"));

    let password = secret();
    let with_user = index_of(&server).replace("http://", &format!("http://me:{password}@"));
    installer(directory.path(), &[&with_user]).install(&row).unwrap();
    assert!(elsewhere.requests().iter().all(|request| request.header("authorization").is_none()));
    assert!(elsewhere.requests().len() == 1);

    let refusing = Server::start(|_: &Request| Reply::new(401, ""));
    let with_user = index_of(&refusing).replace("http://", &format!("http://me:{password}@"));
    let other = tempfile::tempdir().unwrap();
    let error = installer(other.path(), &[&with_user]).install(&row).unwrap_err();
    assert!(!format!("{error} {error:?} {:?}", error.hints()).contains(&password));
    assert_eq!(tried(&error)[0].1, "does not accept the credentials");
}

#[test]
fn netrc_signs_in_where_the_address_does_not() {
    let directory = tempfile::tempdir().unwrap();
    let (bytes, row) = honest();
    let sha256 = row.sha256.clone();
    let server = Server::start(move |request: &Request| {
        match (request.header("authorization"), request.path.as_str()) {
            // me:word
            (Some("Basic bWU6d29yZA=="), "/simple/onnxruntime/") => {
                json_page(&format!("/files/{FILE}"), &sha256)
            }
            (Some("Basic bWU6d29yZA=="), _) => Reply::blob(request, &bytes),
            _ => Reply::new(403, ""),
        }
    });
    let mut installer = installer(directory.path(), &[&index_of(&server)]);
    let error = installer.install(&row).unwrap_err();
    assert_eq!(tried(&error)[0].0, SourceErrorKind::SignIn);
    installer.settings.netrc = Netrc::parse("machine 127.0.0.1 login me password word");
    assert!(installer.install(&row).unwrap().fresh);
}

#[test]
fn plain_http_to_another_machine_is_refused_before_anything_is_sent() {
    let directory = tempfile::tempdir().unwrap();
    let (_, row) = honest();
    let error = installer(directory.path(), &["http://index.invalid/simple"]).install(&row).unwrap_err();
    assert_eq!(tried(&error)[0].0, SourceErrorKind::Insecure, "{error}");
    assert!(error.hints()[0].contains("PIP_TRUSTED_HOST"));
}

#[test]
fn offline_uses_directories_and_gives_a_hint_where_there_is_none() {
    let directory = tempfile::tempdir().unwrap();
    let (bytes, row) = honest();
    let server = server_with(bytes.clone(), row.sha256.clone());
    let mut installer = installer(directory.path(), &[&index_of(&server)]);
    installer.offline = true;
    let error = installer.install(&row).unwrap_err();
    assert_eq!(error.to_string(), format!("{FILE} is not in the cache, and --offline is set"));
    let hint = error.hints().remove(0);
    for part in [
        "`pip install onnxruntime==1.31.1`",
        "--platform manylinux_2_28_x86_64 onnxruntime==1.31.1 -d DIR",
        "PIP_FIND_LINKS",
        "CUDOCK_ONNXRUNTIME",
    ] {
        assert!(hint.contains(part), "{part}: {hint}");
    }
    let wheels = directory.path().join("wheels");
    fs::create_dir(&wheels).unwrap();
    fs::write(wheels.join(FILE), &bytes).unwrap();
    installer.settings.find_links = vec![PackageSource::Local(wheels.clone())];
    assert!(installer.install(&row).unwrap().fresh);
    assert!(wheels.join(FILE).exists(), "the user's own file stays");
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn the_hash_of_a_file_in_a_directory_is_checked_too() {
    let directory = tempfile::tempdir().unwrap();
    let (bytes, row) = honest();
    let wheels = directory.path().join("wheels");
    fs::create_dir(&wheels).unwrap();
    let mut installer = installer(directory.path(), &[]);
    installer.settings.find_links = vec![PackageSource::Local(wheels.clone())];
    assert_eq!(tried(&installer.install(&row).unwrap_err())[0].0, SourceErrorKind::NotListed);
    for damaged in [&bytes[..bytes.len() - 1], &[&bytes[..], b"x"].concat(), b""] {
        fs::write(wheels.join(FILE), damaged).unwrap();
        assert_eq!(tried(&installer.install(&row).unwrap_err())[0].0, SourceErrorKind::WrongBytes);
    }
    installer.settings.find_links.clear();
    assert!(matches!(installer.install(&row).unwrap_err(), PypiError::NoSource { .. }));
}

#[test]
fn a_page_of_links_serves_as_an_index_does() {
    let directory = tempfile::tempdir().unwrap();
    let (bytes, row) = honest();
    let server = Server::start(move |request: &Request| match request.path.as_str() {
        "/wheels.html" => Reply::new(200, format!("<a href='{FILE}'>wheel</a>")),
        _ => Reply::blob(request, &bytes),
    });
    let mut installer = installer(directory.path(), &[]);
    installer.settings.find_links =
        vec![PackageSource::parse(&format!("http://{}/wheels.html", server.host()), None).unwrap()];
    assert!(installer.install(&row).unwrap().fresh);
}

/// Installs a wheel that is pinned, and hostile all the same; gives the error.
fn refused(bytes: &[u8], library: &[u8]) -> String {
    let directory = tempfile::tempdir().unwrap();
    let row = pinned(bytes, library);
    let server = server_with(bytes.to_vec(), row.sha256.clone());
    let error = installer(directory.path(), &[&index_of(&server)]).install(&row).unwrap_err();
    assert!(matches!(error, PypiError::Archive { .. }), "{error:?}");
    let left = names(&directory.path().join("cache/runtimes"));
    assert!(left.iter().all(|name| name == ".onnxruntime-1.31.1-x86_64.lock"), "{left:?}");
    error.to_string().replace(&format!("{FILE}: "), "")
}

#[test]
fn a_hostile_archive_is_refused_and_leaves_nothing() {
    let library = noise(1000);
    assert!(refused(b"no zip at all", &library).starts_with("is not a zip file"));
    assert_eq!(refused(&packed(&[(LICENSE, b"free")]), &library), format!("has no {LIBRARY}"));
    // More than the row allows, packed small.
    let bomb = packed(&[(LIBRARY, &vec![0; 5_000_000]), (LICENSE, b"free")]);
    assert!(bomb.len() < 10_000);
    assert_eq!(refused(&bomb, &library), format!("{LIBRARY} has 5000000 bytes, not 1000"));
    // The same with headers that claim the right size.
    let mut lying = bomb.clone();
    replace_all(&mut lying, 5_000_000_u32.to_le_bytes(), 1000_u32.to_le_bytes());
    assert_ne!(lying, bomb);
    assert!(refused(&lying, &library).starts_with(LIBRARY), "{}", refused(&lying, &library));
    // A link where a library should be.
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    zip.add_symlink(LIBRARY, "/etc/passwd", SimpleFileOptions::default()).unwrap();
    let link = zip.finish().unwrap().into_inner();
    assert_eq!(refused(&link, b"/etc/passwd"), format!("{LIBRARY} is not a regular file"));
    // Damaged inside: the checksum tells.
    let mut damaged = packed(&[(LIBRARY, &library), (LICENSE, b"free")]);
    let at = damaged.windows(4).position(|window| library.starts_with(window)).unwrap_or(200);
    damaged[at + 100] ^= 1;
    assert!(refused(&damaged, &library).starts_with(LIBRARY));
}

#[test]
fn names_that_lead_out_of_the_directory_lead_nowhere() {
    let directory = tempfile::tempdir().unwrap();
    let library = noise(1000);
    let bytes = packed(&[
        ("../../../evil", b"x"),
        ("/evil", b"x"),
        ("onnxruntime/capi/../../evil", b"x"),
        (LIBRARY, &library),
        (LICENSE, b"free"),
    ]);
    let row = pinned(&bytes, &library);
    let server = server_with(bytes, row.sha256.clone());
    let installed = installer(&directory.path().join("a/b"), &[&index_of(&server)]).install(&row).unwrap();
    assert_eq!(names(installed.found.library.parent().unwrap()), ["LICENSE", "libonnxruntime.so.1.31.1"]);
    for place in ["evil", "a/evil", "a/b/evil", "a/b/cache/evil", "a/b/cache/runtimes/evil"] {
        assert!(!directory.path().join(place).exists(), "{place}");
    }
}

#[test]
fn several_at_once_fetch_it_once() {
    let directory = tempfile::tempdir().unwrap();
    let (bytes, row) = honest();
    let server = server_with(bytes, row.sha256.clone());
    let installer = installer(directory.path(), &[&index_of(&server)]);
    let fresh = thread::scope(|scope| {
        let runs: Vec<_> = (0..4).map(|_| scope.spawn(|| installer.install(&row).unwrap().fresh)).collect();
        runs.into_iter().map(|run| usize::from(run.join().unwrap())).sum::<usize>()
    });
    assert_eq!((fresh, server.count("/files/")), (1, 1));
}

#[test]
fn an_installation_that_lost_a_part_is_made_anew() {
    let directory = tempfile::tempdir().unwrap();
    let (bytes, row) = honest();
    let server = server_with(bytes, row.sha256.clone());
    let installer = installer(directory.path(), &[&index_of(&server)]);
    let library = installer.install(&row).unwrap().found.library;
    fs::write(&library, "short").unwrap();
    // What a killed run leaves.
    let unfinished = installer.directory().join(".onnxruntime-1.31.1-x86_64.new");
    fs::create_dir_all(unfinished.join("below")).unwrap();
    assert!(installer.install(&row).unwrap().fresh);
    assert_eq!(fs::read(&library).unwrap(), noise(300_000));
    assert!(!unfinished.exists());
}

#[test]
fn a_wheel_larger_than_the_disk_is_reported_beforehand() {
    let directory = tempfile::tempdir().unwrap();
    let (bytes, mut row) = honest();
    let server = server_with(bytes, row.sha256.clone());
    row.members[0].size = 1 << 60;
    let error = installer(directory.path(), &[&index_of(&server)]).install(&row).unwrap_err();
    assert!(matches!(error, PypiError::Space { .. }), "{error:?}");
    assert!(error.hints()[0].contains("CUDOCK_CACHE"));
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn a_processor_that_nobody_builds_for_is_named() {
    let error =
        wheel_for(Package::OnnxruntimeGpu, NamedArch::new("riscv64"), &Facts::embedded()).unwrap_err();
    assert_eq!(error.to_string(), "no known wheel of onnxruntime-gpu for riscv64");
    for cpu in Arch::ALL {
        for package in [Package::Onnxruntime, Package::OnnxruntimeGpu] {
            assert_eq!(wheel_for(package, cpu, &Facts::embedded()).unwrap().cpu, cpu);
        }
    }
}

#[test]
fn the_real_index_has_what_the_tables_pin() {
    if std::env::var_os("CUDOCK_TEST_INDEX").is_none_or(|value| value != "1") {
        cudock_testkit::missing("pypi-index", "CUDOCK_TEST_INDEX is not 1");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let environment = Environment::of_process();
    let installer = Installer {
        store: BlobStore::open(directory.path()).unwrap(),
        ..Installer::from_environment(&environment).unwrap()
    };
    let none = Environment::of(directory.path(), [("HOME", directory.path())]);
    let machine = SearchContext {
        root: cudock_host::Root::tree(directory.path()).unwrap(),
        ..SearchContext::of_process(none, None, None)
    };
    let done = ensure(Package::Onnxruntime, &machine, &Facts::embedded(), || Ok(installer)).unwrap();
    assert!(done.fresh && done.found.usable && done.found.library.is_file());
}

fn replace_all(bytes: &mut [u8], from: [u8; 4], to: [u8; 4]) {
    for at in 0..bytes.len() - 4 {
        if bytes[at..at + 4] == from {
            bytes[at..at + 4].copy_from_slice(&to);
        }
    }
}
