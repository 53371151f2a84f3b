//! Opens the same image from every kind of source.

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use cudock_base::{Digest, Report as _};
use cudock_http::{BlobStore, RetryPolicy};
use cudock_image::{Image, ImageError, ImageSource, OpenOptions, Platform};
use cudock_registry::{Client, Reference};
use cudock_testkit::http::{Reply, Request, Server, read_request};
use serde_json::{Value, json};

use crate::support::{
    Blobs, CONFIG, INDEX, LAYER, MANIFEST, Tar, archive, configuration, contents, gzip, index, layout, lines,
    named, open, options, zstd,
};

/// The layers of the test image.
fn layers() -> [Vec<u8>; 2] {
    let lower = Tar::default().file("etc/os", "old").file("bin/run", "1");
    [gzip(&lower.end()), zstd(&Tar::default().file("etc/os", "new").end())]
}

const MERGED: [&str; 4] = ["bin/", "bin/run=1", "etc/", "etc/os=new"];

#[track_caller]
fn assert_is_the_image(image: &Image, source: &ImageSource) {
    assert_eq!(image.source.as_ref(), Some(source));
    assert_eq!(lines(&contents(image).unwrap()), MERGED);
    assert_eq!(image.platform, Platform::linux("amd64"));
    assert_eq!(image.platforms, [Platform::linux("amd64")]);
    assert_eq!(image.config.config.command(), ["/run"]);
    assert_eq!(image.config.config.environment()["PATH"], "/usr/bin");
}

#[track_caller]
fn error_of(opened: Result<Image, ImageError>) -> ImageError {
    opened.err().expect("it was opened")
}

/// The blobs of the image, and an index with its name.
fn blobs() -> (Blobs, Value) {
    let mut blobs = Blobs::default();
    let manifest = blobs.image("amd64", &layers());
    (blobs, index(&[named(manifest, "app:1.0")]))
}

fn write(directory: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    fs::write(directory.join(name), bytes).unwrap();
    directory.join(name)
}

#[test]
fn a_layout_directory_opens_with_and_without_a_name() {
    let directory = tempfile::tempdir().unwrap();
    let (blobs, top) = blobs();
    blobs.write(directory.path(), &top);
    for name in [None, Some("app:1.0".to_owned())] {
        let source = ImageSource::Layout { directory: directory.path().to_owned(), name };
        let image = open(&source, &options(directory.path())).unwrap();
        assert_is_the_image(&image, &source);
        assert_eq!(image.bytes_to_fetch(), 0);
        assert_eq!(
            image.layers.iter().map(|layer| layer.size).collect::<Vec<_>>(),
            layers().map(|layer| layer.len() as u64)
        );
    }
    let source =
        ImageSource::Layout { directory: directory.path().to_owned(), name: Some("other".to_owned()) };
    let error = error_of(open(&source, &options(directory.path())));
    let ImageError::NoName { requested, names, .. } = &error else { panic!("{error}") };
    assert_eq!((requested.as_str(), names.as_slice()), ("other", ["app:1.0".to_owned()].as_slice()));
    let missing = error_of(open(&layout(&directory.path().join("none")), &options(directory.path())));
    assert!(matches!(missing, ImageError::Io { .. }) && !missing.is_outside());
}

#[test]
fn an_archive_is_opened_plain_or_compressed_as_a_whole() {
    let directory = tempfile::tempdir().unwrap();
    let (blobs, top) = blobs();
    let plain = blobs.archive(&top);
    let options = options(directory.path());
    for (name, bytes) in [("a.tar", plain.clone()), ("a.tar.gz", gzip(&plain)), ("a.tar.zst", zstd(&plain))] {
        let source = archive(&write(directory.path(), name, &bytes));
        assert_is_the_image(&open(&source, &options).unwrap(), &source);
    }
    // The decompressed archive is removed from the scratch directory with the image.
    assert_eq!(fs::read_dir(&options.scratch).unwrap().count(), 0);
    for cut in [gzip(&plain), zstd(&plain)] {
        let file = write(directory.path(), "cut", &cut[..cut.len() / 2]);
        assert!(matches!(error_of(open(&archive(&file), &options)), ImageError::NotAnImage { .. }));
    }
}

#[test]
fn an_archive_with_dot_slash_names_opens() {
    let directory = tempfile::tempdir().unwrap();
    let (blobs, top) = blobs();
    let mut tar = Tar::default().directory(".").file("./index.json", top.to_string());
    for (digest, bytes) in &blobs.0 {
        tar = tar.entry(format!("./blobs/{}", digest.replace(':', "/")), b'0', "", bytes);
    }
    let file = write(directory.path(), "a.tar", &tar.end());
    let source = archive(&file);
    assert_is_the_image(&open(&source, &options(directory.path())).unwrap(), &source);
}

#[test]
fn a_tar_file_that_is_not_an_image_is_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(directory.path());
    for bytes in [Tar::default().file("etc/passwd", "x").end(), b"hello".to_vec(), Vec::new(), gzip(b"hello")]
    {
        let file = write(directory.path(), "x", &bytes);
        let error = error_of(open(&archive(&file), &options));
        assert!(
            matches!(&error, ImageError::NotAnImage { subject, .. } if subject.ends_with("/x")),
            "{error}"
        );
        assert!(error.hints()[0].contains("OCI layout"));
    }
    let (mut blobs, top) = blobs();
    let last = blobs.0.keys().next_back().unwrap().clone();
    blobs.0.remove(&last);
    let file = write(directory.path(), "y", &blobs.archive(&top));
    assert!(error_of(open(&archive(&file), &options)).to_string().contains("not found in the archive"));
}

/// The old format of `docker save`, in which identical layers are links to the first one.
fn docker_archive() -> Vec<u8> {
    let [lower, upper] = layers();
    let manifest = json!([{
        "Config": "c0ffee.json",
        "RepoTags": ["app:1.0", "app:latest"],
        "Layers": ["aa/layer.tar", "bb/layer.tar", "cc/layer.tar", "dd/layer.tar"],
    }]);
    Tar::default()
        .directory("aa")
        .entry("aa/layer.tar", b'0', "", &lower)
        .entry("aa/json", b'0', "", b"{}")
        .symlink("bb/layer.tar", "../aa/layer.tar")
        .hard_link("cc/layer.tar", "aa/layer.tar")
        .entry("dd/layer.tar", b'0', "", &upper)
        .file("c0ffee.json", configuration("amd64", 4).to_string())
        .file("manifest.json", manifest.to_string())
        .end()
}

#[test]
fn an_old_docker_archive_opens() {
    let directory = tempfile::tempdir().unwrap();
    let file = write(directory.path(), "app.tar", &docker_archive());
    let image = open(&archive(&file), &options(directory.path())).unwrap();
    assert_is_the_image(&image, &archive(&file));
    let names: Vec<&str> = image.layers.iter().map(|layer| layer.digest.as_str()).collect();
    assert_eq!(names, ["aa/layer.tar", "bb/layer.tar", "cc/layer.tar", "dd/layer.tar"]);
    for (name, opens) in [("app:1.0", true), ("app:latest", true), ("app", false), ("other:1", false)] {
        let source = ImageSource::Archive { file: file.clone(), name: Some(name.to_owned()) };
        assert_eq!(open(&source, &options(directory.path())).is_ok(), opens, "{name}");
    }
    let wanted = OpenOptions { platform: Some(Platform::linux("arm64")), ..options(directory.path()) };
    assert!(matches!(error_of(open(&archive(&file), &wanted)), ImageError::NoPlatform { .. }));
}

#[test]
fn a_new_docker_archive_opens_by_its_manifest() {
    let directory = tempfile::tempdir().unwrap();
    let (mut blobs, _) = blobs();
    let path =
        |descriptor: &Value| format!("blobs/{}", descriptor["digest"].as_str().unwrap().replace(':', "/"));
    let layers = layers().map(|layer| blobs.add(LAYER, layer));
    let config = blobs.document(CONFIG, &configuration("amd64", 2));
    let manifest =
        json!([{"Config": path(&config), "RepoTags": null, "Layers": layers.each_ref().map(path)}]);
    let mut tar = Tar::default().file("manifest.json", manifest.to_string()).file("index.json", "{}");
    for (digest, bytes) in &blobs.0 {
        tar = tar.entry(format!("blobs/{}", digest.replace(':', "/")), b'0', "", bytes);
    }
    let file = write(directory.path(), "app.tar", &tar.end());
    let image = open(&archive(&file), &options(directory.path())).unwrap();
    assert_is_the_image(&image, &archive(&file));
    assert_eq!(image.layers[0].digest, layers[0]["digest"]);
}

#[test]
fn one_of_several_images_in_a_docker_archive_must_be_selected() {
    let directory = tempfile::tempdir().unwrap();
    let one = |tag: &str| json!({"Config": "c.json", "RepoTags": [tag], "Layers": []});
    let tar = Tar::default().file("c.json", configuration("amd64", 0).to_string());
    let file = |manifests: Value| {
        write(directory.path(), "app.tar", &tar.clone().file("manifest.json", manifests.to_string()).end())
    };
    let error = error_of(open(&archive(&file(json!([one("a:1"), one("b:2")]))), &options(directory.path())));
    assert!(matches!(&error, ImageError::Several { names, .. } if names == &["a:1", "b:2"]), "{error}");
    for (manifests, part) in [
        (json!([]), "lists no image"),
        (json!({}), "manifest.json"),
        (json!([{"Config": "none", "Layers": []}]), "`none` not found in the archive"),
        (json!([{"Config": "c.json", "Layers": ["../c.json"]}]), "not found in the archive"),
    ] {
        let error = error_of(open(&archive(&file(manifests)), &options(directory.path()))).to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn the_requested_platform_is_selected_and_the_hosts_by_default() {
    let directory = tempfile::tempdir().unwrap();
    let mut blobs = Blobs::default();
    let mut attestation = blobs.image("amd64", &[]);
    attestation["annotations"] = json!({"vnd.docker.reference.type": "attestation-manifest"});
    let mut unknown = blobs.image("amd64", &[]);
    unknown["platform"] = json!({"os": "unknown", "architecture": "unknown"});
    let images =
        ["s390x", "arm64", "amd64"].map(|name| blobs.image(name, &[Tar::default().file(name, "").end()]));
    let all = [&[attestation.clone(), unknown.clone()], images.as_slice()].concat();
    // As in registries, and as in layouts, where one name points to the index.
    let nested = index(&[named(blobs.document(INDEX, &index(&all)), "app:1.0")]);
    for top in [index(&all), nested] {
        blobs.write(directory.path(), &top);
        let opened = |platform: Option<&str>| {
            let platform = platform.map(|text| text.parse().unwrap());
            open(&layout(directory.path()), &OpenOptions { platform, ..options(directory.path()) }).unwrap()
        };
        for (wanted, name) in [("linux/arm64", "arm64"), ("linux/s390x", "s390x"), ("linux/x86_64", "amd64")]
        {
            let image = opened(Some(wanted));
            assert_eq!(lines(&contents(&image).unwrap()), [format!("{name}=")]);
            assert_eq!(image.platform, Platform::linux(name));
            assert_eq!(image.platforms, ["s390x", "arm64", "amd64"].map(Platform::linux));
        }
        let own = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
        assert_eq!(opened(None).platform, Platform::linux(own));
    }
    // Attestations do not count as images.
    blobs.write(directory.path(), &index(&[attestation, unknown, images[0].clone()]));
    let image = open(&layout(directory.path()), &options(directory.path())).unwrap();
    assert_eq!(image.platform, Platform::linux("s390x"));
}

#[test]
fn a_variant_matters_only_if_requested() {
    let directory = tempfile::tempdir().unwrap();
    let mut blobs = Blobs::default();
    let mut images = Vec::new();
    for variant in ["v6", "v7"] {
        let layer = blobs.add(LAYER, Tar::default().file(variant, "").end());
        let mut configured = configuration("arm", 1);
        configured["variant"] = json!(variant);
        let config = blobs.document(CONFIG, &configured);
        let mut descriptor = blobs.manifest(&config, &[layer], "arm");
        descriptor["platform"]["variant"] = json!(variant);
        images.push(descriptor);
    }
    blobs.write(directory.path(), &index(&images));
    for (wanted, found) in [("linux/arm", "linux/arm/v6"), ("linux/arm/v7", "linux/arm/v7")] {
        let platform = Some(wanted.parse().unwrap());
        let image =
            open(&layout(directory.path()), &OpenOptions { platform, ..options(directory.path()) }).unwrap();
        assert_eq!(image.platform.to_string(), found);
    }
}

#[test]
fn transports_are_parsed() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).display().to_string();
    let given = |text: &str| ImageSource::with_transport(text).unwrap().unwrap();
    let in_directory = |directory: &str, name: Option<&str>| ImageSource::Layout {
        directory: directory.into(),
        name: name.map(str::to_owned),
    };
    let in_file = |file: &str, name: Option<&str>| ImageSource::Archive {
        file: file.into(),
        name: name.map(str::to_owned),
    };
    assert_eq!(given("oci:some/dir"), in_directory("some/dir", None));
    assert_eq!(given("oci:some/dir:app"), in_directory("some/dir", Some("app")));
    assert_eq!(given("oci:some/dir:host:5000/app:1.0"), in_directory("some/dir", Some("host:5000/app:1.0")));
    assert_eq!(given("oci:some/dir:"), in_directory("some/dir:", None));
    assert_eq!(given("oci-archive:a.tar:v1"), in_file("a.tar", Some("v1")));
    assert_eq!(given("docker-archive:a.tar:app:1.0"), in_file("a.tar", Some("app:1.0")));
    assert_eq!(given("docker-daemon:app:1.0"), ImageSource::Daemon { name: "app:1.0".to_owned() });
    let reference: Reference = "host:5000/app:1.0".parse().unwrap();
    assert_eq!(given("docker://host:5000/app:1.0"), ImageSource::Registry(reference.clone()));
    assert_eq!(ImageSource::reference("host:5000/app:1.0").unwrap(), ImageSource::Registry(reference));
    assert!(ImageSource::with_transport("docker://UPPER").unwrap().is_err());
    // An existing path wins over a name.
    fs::create_dir(directory.path().join("with:colon")).unwrap();
    assert_eq!(given(&format!("oci:{}", at("with:colon"))), in_directory(&at("with:colon"), None));
    for none in ["app", "app:1.0", "host:5000/app", "rootfs:dir", "./oci", ""] {
        assert!(ImageSource::with_transport(none).is_none(), "{none}");
    }
}

#[test]
fn images_at_a_path_are_detected_by_magic_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let (blobs, top) = blobs();
    assert_eq!(ImageSource::at(directory.path()), None);
    blobs.write(directory.path(), &top);
    assert_eq!(ImageSource::at(directory.path()), Some(layout(directory.path())));
    let plain = blobs.archive(&top);
    for bytes in [gzip(&plain), zstd(&plain), plain] {
        let file = write(directory.path(), "no-extension", &bytes);
        assert_eq!(ImageSource::at(&file), Some(archive(&file)));
    }
    assert_eq!(ImageSource::at(&write(directory.path(), "a.tar", b"not a tar file")), None);
    assert_eq!(ImageSource::at(&directory.path().join("missing")), None);
}

/// A registry with these blobs; the tag refers to `top`.
fn registry(blobs: &Blobs, top: &Value) -> Server {
    let (blobs, top) = (blobs.clone(), top.to_string());
    Server::start(move |request| answer(&blobs, &top, request))
}

fn answer(blobs: &Blobs, top: &str, request: &Request) -> Reply {
    let name = request.path.rsplit('/').next().unwrap();
    if name == "1.0" {
        return Reply::new(200, top).with("Content-Type", INDEX);
    }
    match blobs.0.get(name) {
        Some(bytes) if request.path.contains("/manifests/") => {
            Reply::new(200, bytes.as_slice()).with("Content-Type", MANIFEST)
        }
        Some(bytes) => Reply::blob(request, bytes),
        None => Reply::new(404, r#"{"errors":[{"code":"BLOB_UNKNOWN","message":"not here"}]}"#),
    }
}

/// An image on this server.
fn reference(server: &Server, rest: &str) -> Reference {
    format!("{}/{rest}", server.host()).parse().unwrap()
}

/// A client's options with a store below this directory and quick retries.
fn client_options(directory: &Path) -> cudock_registry::Options {
    let retries = RetryPolicy {
        max_retries: 3,
        initial_delay: Duration::from_millis(2),
        max_delay: Duration::from_millis(20),
    };
    let store = BlobStore::open(directory.join("cache")).unwrap();
    cudock_registry::Options { retries, ..cudock_registry::Options::new(store) }
}

fn asking(directory: &Path) -> OpenOptions {
    let client = Client::new(client_options(directory)).unwrap();
    OpenOptions { client: Some(Arc::new(client)), ..options(directory) }
}

fn stored_size(layers: &[Vec<u8>]) -> u64 {
    layers.iter().map(|layer| layer.len() as u64).sum()
}

#[test]
fn a_registry_image_is_fetched_once_and_then_cached() {
    let directory = tempfile::tempdir().unwrap();
    let (blobs, top) = blobs();
    let server = registry(&blobs, &top);
    let options = asking(directory.path());
    let source = ImageSource::Registry(reference(&server, "team/app:1.0"));
    let image = open(&source, &options).unwrap();
    assert_eq!(image.bytes_to_fetch(), stored_size(&layers()));
    let fetches = |layer: &Vec<u8>| server.count(&Digest::sha256_of(layer).to_string());
    assert_eq!(layers().iter().map(fetches).sum::<usize>(), 0, "layers are fetched when they are walked");
    assert_is_the_image(&image, &source);
    assert_eq!(image.bytes_to_fetch(), 0);
    assert_is_the_image(&image, &source);
    assert_eq!(layers().iter().map(fetches).collect::<Vec<_>>(), [1, 1]);
    // By digest, no request is sent at all.
    let digest: Digest = top["manifests"][0]["digest"].as_str().unwrap().parse().unwrap();
    let mut by_digest = reference(&server, "team/app");
    by_digest.digest = Some(digest);
    drop(server);
    assert_is_the_image(&image, &source);
    let by_digest = ImageSource::Registry(by_digest);
    let again = open(&by_digest, &options).unwrap();
    assert_eq!(again.bytes_to_fetch(), 0);
    assert_is_the_image(&again, &by_digest);
}

#[test]
fn a_duplicate_layer_is_fetched_and_counted_once() {
    let directory = tempfile::tempdir().unwrap();
    let mut blobs = Blobs::default();
    let layer = gzip(&Tar::default().file("a", "1").end());
    let top = index(&[blobs.image("amd64", &[layer.clone(), layer.clone()])]);
    let server = registry(&blobs, &top);
    let image =
        open(&ImageSource::Registry(reference(&server, "app:1.0")), &asking(directory.path())).unwrap();
    let counted = image.bytes_to_fetch();
    assert_eq!(lines(&contents(&image).unwrap()), ["a=1"]);
    assert_eq!(server.count(&Digest::sha256_of(&layer).to_string()), 1);
    assert_eq!(counted, layer.len() as u64);
}

#[test]
fn a_layer_with_a_wrong_digest_is_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let (mut blobs, top) = blobs();
    let digest = Digest::sha256_of(&layers()[1]).to_string();
    blobs.0.get_mut(&digest).unwrap()[20] ^= 1;
    let server = registry(&blobs, &top);
    let image =
        open(&ImageSource::Registry(reference(&server, "app:1.0")), &asking(directory.path())).unwrap();
    let error = contents(&image).unwrap_err();
    assert!(
        matches!(&error, ImageError::Registry(_)) && error.to_string().contains("digest mismatch"),
        "{error}"
    );
    assert!(error.to_string().contains(&digest), "{error}");
    assert!(image.bytes_to_fetch() >= layers()[1].len() as u64, "it is not kept");
}

#[test]
fn replaced_registry_documents_are_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let (blobs, top) = blobs();
    for (digest, bytes) in blobs.0.iter().filter(|(_, bytes)| bytes.starts_with(b"{")) {
        let mut swapped = blobs.clone();
        let other =
            String::from_utf8(bytes.clone()).unwrap().replace("amd64", "AMD64").replace("sha256", "SHA256");
        swapped.0.insert(digest.clone(), other.into_bytes());
        let server = registry(&swapped, &top);
        let options = asking(&directory.path().join(Digest::sha256_of(digest.as_bytes()).hex()));
        let error = error_of(open(&ImageSource::Registry(reference(&server, "app:1.0")), &options));
        assert!(
            matches!(&error, ImageError::Registry(_)) && error.to_string().contains("digest mismatch"),
            "{error}"
        );
    }
}

#[test]
fn a_registry_that_goes_away_is_an_outside_failure() {
    let directory = tempfile::tempdir().unwrap();
    let (blobs, top) = blobs();
    let server = registry(&blobs, &top);
    let image =
        open(&ImageSource::Registry(reference(&server, "app:1.0")), &asking(directory.path())).unwrap();
    drop(server);
    let error = contents(&image).unwrap_err();
    assert!(error.is_outside(), "{error}");
    assert!(error.to_string().contains("blob sha256:"), "{error}");
    assert_eq!(image.bytes_to_fetch(), stored_size(&layers()));
}

#[test]
fn an_image_missing_in_a_registry_is_not_an_outside_failure() {
    let directory = tempfile::tempdir().unwrap();
    let server = registry(&Blobs::default(), &json!({}));
    let error =
        error_of(open(&ImageSource::Registry(reference(&server, "app:2.0")), &asking(directory.path())));
    assert!(matches!(&error, ImageError::Registry(_)) && error.to_string().contains("not found"), "{error}");
    assert!(!error.is_outside());
}

#[test]
fn without_a_client_no_registry_is_contacted() {
    let directory = tempfile::tempdir().unwrap();
    let source = ImageSource::reference("app:1.0").unwrap();
    let error = error_of(open(&source, &options(directory.path())));
    assert!(matches!(&error, ImageError::NotAnImage { .. }), "{error}");
    let client =
        Client::new(cudock_registry::Options { offline: true, ..client_options(directory.path()) }).unwrap();
    let offline = OpenOptions { client: Some(Arc::new(client)), ..options(directory.path()) };
    let error = error_of(open(&source, &offline));
    assert!(matches!(&error, ImageError::Registry(_)) && error.to_string().contains("offline"), "{error}");
}

#[test]
fn a_daemon_image_is_read_from_the_exported_archive() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("d.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let Some(request) = read_request(&stream) else { continue };
            let reply = match request.path.as_str() {
                "/images/app%3A1.0/json" => Reply::new(200, "{}"),
                "/images/app%3A1.0/get" => Reply::new(200, docker_archive()).chunked(),
                _ => Reply::new(404, r#"{"message":"no such image"}"#),
            };
            let _ = reply.send(&mut stream);
        }
    });
    let options = OpenOptions { sockets: vec![socket], ..options(directory.path()) };
    let source = ImageSource::Daemon { name: "app:1.0".to_owned() };
    let image = open(&source, &options).unwrap();
    assert_is_the_image(&image, &source);
    assert_eq!(image.name, "app:1.0");
    assert_eq!(
        fs::read_dir(&options.scratch).unwrap().count(),
        0,
        "what the daemon gave has no name while it is used, so that nothing is left if this process is killed"
    );
    let error = error_of(open(&ImageSource::Daemon { name: "other".to_owned() }, &options));
    assert!(
        matches!(&error, ImageError::Registry(_)) && error.to_string().contains("not found on the daemon"),
        "{error}"
    );
    assert_eq!(fs::read_dir(&options.scratch).unwrap().count(), 0);
}
