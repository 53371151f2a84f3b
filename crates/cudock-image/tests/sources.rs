//! The same image from every place it can be in.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail loudly"
)]

#[path = "../../cudock-registry/tests/support/mod.rs"]
mod server;
mod support;

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use cudock_base::{Digest, Report as _};
use cudock_image::{Image, ImageError, OpenOptions, Origin, Platform, Source, open};
use cudock_registry::{Client, Reference};
use serde_json::{Value, json};
use server::{Reply, Request, Server, read_request};
use support::{
    Blobs, CONFIG, INDEX, LAYER, MANIFEST, Tar, archive, configuration, contents, gzip, index, layout, lines,
    named, options, zstd,
};

/// The layers of the image that all places hold, and what comes of them.
fn layers() -> [Vec<u8>; 2] {
    let lower = Tar::default().file("etc/os", "old").file("bin/run", "1");
    [gzip(&lower.end()), zstd(&Tar::default().file("etc/os", "new").end())]
}

const MERGED: [&str; 4] = ["bin/", "bin/run=1", "etc/", "etc/os=new"];

#[track_caller]
fn assert_is_the_image(image: &Image, origin: Origin) {
    assert_eq!(image.origin, origin);
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

/// The image's blobs, and an index that names it.
fn blobs() -> (Blobs, Value) {
    let mut blobs = Blobs::default();
    let manifest = blobs.image("amd64", &layers());
    (blobs, index(&[named(manifest, "app:1.0")]))
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    fs::write(folder.join(name), bytes).unwrap();
    folder.join(name)
}

#[test]
fn a_layout_in_a_folder_is_opened_with_and_without_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let (blobs, top) = blobs();
    blobs.write(folder.path(), &top);
    for name in [None, Some("app:1.0".to_owned())] {
        let source = Source::Layout { folder: folder.path().to_owned(), name };
        let image = open(&source, &options(folder.path())).unwrap();
        assert_is_the_image(&image, Origin::Layout);
        assert_eq!(image.to_fetch(), 0);
        assert_eq!(
            image.layers.iter().map(|layer| layer.size).collect::<Vec<_>>(),
            layers().map(|layer| layer.len() as u64)
        );
    }
    let source = Source::Layout { folder: folder.path().to_owned(), name: Some("other".to_owned()) };
    let error = error_of(open(&source, &options(folder.path())));
    let ImageError::NoName { wanted, names, .. } = &error else { panic!("{error}") };
    assert_eq!((wanted.as_str(), names.as_slice()), ("other", ["app:1.0".to_owned()].as_slice()));
    let missing = error_of(open(&layout(&folder.path().join("none")), &options(folder.path())));
    assert!(matches!(missing, ImageError::Io { .. }) && !missing.is_outside());
}

#[test]
fn an_archive_is_opened_plain_or_compressed_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let (blobs, top) = blobs();
    let plain = blobs.archive(&top);
    let options = options(folder.path());
    for (name, bytes) in [("a.tar", plain.clone()), ("a.tar.gz", gzip(&plain)), ("a.tar.zst", zstd(&plain))] {
        let image = open(&archive(&write(folder.path(), name, &bytes)), &options).unwrap();
        assert_is_the_image(&image, Origin::Archive);
    }
    // What was decompressed lay in the scratch folder, and is gone with the image.
    assert_eq!(fs::read_dir(&options.scratch).unwrap().count(), 0);
    for cut in [gzip(&plain), zstd(&plain)] {
        let file = write(folder.path(), "cut", &cut[..cut.len() / 2]);
        assert!(matches!(error_of(open(&archive(&file), &options)), ImageError::NotAnImage { .. }));
    }
}

#[test]
fn an_archive_whose_names_begin_with_a_dot_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let (blobs, top) = blobs();
    let mut tar = Tar::default().directory(".").file("./index.json", &top.to_string());
    for (digest, bytes) in &blobs.0 {
        tar = tar.entry(format!("./blobs/{}", digest.replace(':', "/")), b'0', "", bytes);
    }
    let file = write(folder.path(), "a.tar", &tar.end());
    assert_is_the_image(&open(&archive(&file), &options(folder.path())).unwrap(), Origin::Archive);
}

#[test]
fn a_tar_file_that_is_no_image_is_told_from_one() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path());
    for bytes in [Tar::default().file("etc/passwd", "x").end(), b"hello".to_vec(), Vec::new(), gzip(b"hello")]
    {
        let file = write(folder.path(), "x", &bytes);
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
    let file = write(folder.path(), "y", &blobs.archive(&top));
    assert!(error_of(open(&archive(&file), &options)).to_string().contains("is not in the archive"));
}

/// What `docker save` wrote before it kept layouts; layers that are alike are links to the first.
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
        .file("c0ffee.json", &configuration("amd64", 4).to_string())
        .file("manifest.json", &manifest.to_string())
        .end()
}

#[test]
fn a_docker_archive_of_the_old_kind_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "app.tar", &docker_archive());
    let image = open(&archive(&file), &options(folder.path())).unwrap();
    assert_is_the_image(&image, Origin::Archive);
    let names: Vec<&str> = image.layers.iter().map(|layer| layer.digest.as_str()).collect();
    assert_eq!(names, ["aa/layer.tar", "bb/layer.tar", "cc/layer.tar", "dd/layer.tar"]);
    for (name, opens) in [("app:1.0", true), ("app:latest", true), ("app", false), ("other:1", false)] {
        let source = Source::Archive { file: file.clone(), name: Some(name.to_owned()) };
        assert_eq!(open(&source, &options(folder.path())).is_ok(), opens, "{name}");
    }
    let wanted = OpenOptions { platform: Some(Platform::linux("arm64")), ..options(folder.path()) };
    assert!(matches!(error_of(open(&archive(&file), &wanted)), ImageError::NoPlatform { .. }));
}

#[test]
fn a_docker_archive_of_the_new_kind_is_opened_by_its_manifest() {
    let folder = tempfile::tempdir().unwrap();
    let (mut blobs, _) = blobs();
    let path =
        |descriptor: &Value| format!("blobs/{}", descriptor["digest"].as_str().unwrap().replace(':', "/"));
    let layers = layers().map(|layer| blobs.add(LAYER, layer));
    let config = blobs.document(CONFIG, &configuration("amd64", 2));
    let manifest =
        json!([{"Config": path(&config), "RepoTags": null, "Layers": layers.each_ref().map(path)}]);
    let mut tar = Tar::default().file("manifest.json", &manifest.to_string()).file("index.json", "{}");
    for (digest, bytes) in &blobs.0 {
        tar = tar.entry(format!("blobs/{}", digest.replace(':', "/")), b'0', "", bytes);
    }
    let file = write(folder.path(), "app.tar", &tar.end());
    let image = open(&archive(&file), &options(folder.path())).unwrap();
    assert_is_the_image(&image, Origin::Archive);
    assert_eq!(image.layers[0].digest, layers[0]["digest"]);
}

#[test]
fn several_images_in_a_docker_archive_have_to_be_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let one = |tag: &str| json!({"Config": "c.json", "RepoTags": [tag], "Layers": []});
    let tar = Tar::default().file("c.json", &configuration("amd64", 0).to_string());
    let file = |manifests: Value| {
        write(folder.path(), "app.tar", &tar.clone().file("manifest.json", &manifests.to_string()).end())
    };
    let error = error_of(open(&archive(&file(json!([one("a:1"), one("b:2")]))), &options(folder.path())));
    assert!(matches!(&error, ImageError::Several { names, .. } if names == &["a:1", "b:2"]), "{error}");
    for (manifests, part) in [
        (json!([]), "names no image"),
        (json!({}), "manifest.json"),
        (json!([{"Config": "none", "Layers": []}]), "`none` is not in the archive"),
        (json!([{"Config": "c.json", "Layers": ["../c.json"]}]), "is not in the archive"),
    ] {
        let error = error_of(open(&archive(&file(manifests)), &options(folder.path()))).to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn of_several_platforms_the_wanted_is_taken_and_this_machines_without_a_wish() {
    let folder = tempfile::tempdir().unwrap();
    let mut blobs = Blobs::default();
    let mut attestation = blobs.image("amd64", &[]);
    attestation["annotations"] = json!({"vnd.docker.reference.type": "attestation-manifest"});
    let mut unknown = blobs.image("amd64", &[]);
    unknown["platform"] = json!({"os": "unknown", "architecture": "unknown"});
    let images =
        ["s390x", "arm64", "amd64"].map(|name| blobs.image(name, &[Tar::default().file(name, "").end()]));
    let all = [&[attestation.clone(), unknown.clone()], images.as_slice()].concat();
    // As engines push it, and as layouts keep it: one name that leads to the index.
    let nested = index(&[named(blobs.document(INDEX, &index(&all)), "app:1.0")]);
    for top in [index(&all), nested] {
        blobs.write(folder.path(), &top);
        let opened = |platform: Option<&str>| {
            let platform = platform.map(|text| text.parse().unwrap());
            open(&layout(folder.path()), &OpenOptions { platform, ..options(folder.path()) }).unwrap()
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
    // Beside attestations, an image for another machine is still the only image.
    blobs.write(folder.path(), &index(&[attestation, unknown, images[0].clone()]));
    let image = open(&layout(folder.path()), &options(folder.path())).unwrap();
    assert_eq!(image.platform, Platform::linux("s390x"));
}

#[test]
fn a_variant_is_looked_at_only_where_it_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
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
    blobs.write(folder.path(), &index(&images));
    for (wanted, found) in [("linux/arm", "linux/arm/v6"), ("linux/arm/v7", "linux/arm/v7")] {
        let platform = Some(wanted.parse().unwrap());
        let image =
            open(&layout(folder.path()), &OpenOptions { platform, ..options(folder.path()) }).unwrap();
        assert_eq!(image.platform.to_string(), found);
    }
}

#[test]
fn words_before_a_colon_say_where_an_image_is() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let given = |text: &str| Source::with_transport(text).unwrap().unwrap();
    let in_folder = |folder: &str, name: Option<&str>| Source::Layout {
        folder: folder.into(),
        name: name.map(str::to_owned),
    };
    let in_file =
        |file: &str, name: Option<&str>| Source::Archive { file: file.into(), name: name.map(str::to_owned) };
    assert_eq!(given("oci:some/dir"), in_folder("some/dir", None));
    assert_eq!(given("oci:some/dir:app"), in_folder("some/dir", Some("app")));
    assert_eq!(given("oci:some/dir:host:5000/app:1.0"), in_folder("some/dir", Some("host:5000/app:1.0")));
    assert_eq!(given("oci:some/dir:"), in_folder("some/dir:", None));
    assert_eq!(given("oci-archive:a.tar:v1"), in_file("a.tar", Some("v1")));
    assert_eq!(given("docker-archive:a.tar:app:1.0"), in_file("a.tar", Some("app:1.0")));
    assert_eq!(given("docker-daemon:app:1.0"), Source::Daemon { name: "app:1.0".to_owned() });
    let reference: Reference = "host:5000/app:1.0".parse().unwrap();
    assert_eq!(given("docker://host:5000/app:1.0"), Source::Registry(reference.clone()));
    assert_eq!(Source::reference("host:5000/app:1.0").unwrap(), Source::Registry(reference));
    assert!(Source::with_transport("docker://UPPER").unwrap().is_err());
    // A path that is there wins over a name in it.
    fs::create_dir(folder.path().join("with:colon")).unwrap();
    assert_eq!(given(&format!("oci:{}", at("with:colon"))), in_folder(&at("with:colon"), None));
    for none in ["app", "app:1.0", "host:5000/app", "rootfs:dir", "./oci", ""] {
        assert!(Source::with_transport(none).is_none(), "{none}");
    }
}

#[test]
fn what_lies_at_a_path_is_told_by_its_first_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let (blobs, top) = blobs();
    assert_eq!(Source::at(folder.path()), None);
    blobs.write(folder.path(), &top);
    assert_eq!(Source::at(folder.path()), Some(layout(folder.path())));
    let plain = blobs.archive(&top);
    for bytes in [gzip(&plain), zstd(&plain), plain] {
        let file = write(folder.path(), "no-extension", &bytes);
        assert_eq!(Source::at(&file), Some(archive(&file)));
    }
    assert_eq!(Source::at(&write(folder.path(), "a.tar", b"no tar at all")), None);
    assert_eq!(Source::at(&folder.path().join("missing")), None);
}

/// A registry that holds these blobs; `top` is what the tag stands for.
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
        None => Reply::refusal(404, "BLOB_UNKNOWN", "not here"),
    }
}

fn asking(folder: &Path) -> OpenOptions {
    OpenOptions { client: Some(Arc::new(server::client(folder))), ..options(folder) }
}

fn stored_size(layers: &[Vec<u8>]) -> u64 {
    layers.iter().map(|layer| layer.len() as u64).sum()
}

#[test]
fn an_image_of_a_registry_is_fetched_once_and_then_walked_from_the_cache() {
    let folder = tempfile::tempdir().unwrap();
    let (blobs, top) = blobs();
    let server = registry(&blobs, &top);
    let options = asking(folder.path());
    let image = open(&Source::Registry(server.image("team/app:1.0")), &options).unwrap();
    assert_eq!(image.to_fetch(), stored_size(&layers()));
    let asked = |layer: &Vec<u8>| server.count(&Digest::sha256_of(layer).to_string());
    assert_eq!(layers().iter().map(asked).sum::<usize>(), 0, "layers are fetched when they are walked");
    assert_is_the_image(&image, Origin::Registry);
    assert_eq!(image.to_fetch(), 0);
    assert_is_the_image(&image, Origin::Registry);
    assert_eq!(layers().iter().map(asked).collect::<Vec<_>>(), [1, 1]);
    // By digest nothing is asked at all any more.
    let digest: Digest = top["manifests"][0]["digest"].as_str().unwrap().parse().unwrap();
    let mut by_digest = server.image("team/app");
    by_digest.digest = Some(digest);
    drop(server);
    assert_is_the_image(&image, Origin::Registry);
    let again = open(&Source::Registry(by_digest), &options).unwrap();
    assert_eq!(again.to_fetch(), 0);
    assert_is_the_image(&again, Origin::Registry);
}

#[test]
fn a_layer_that_an_image_has_twice_is_fetched_and_counted_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut blobs = Blobs::default();
    let layer = gzip(&Tar::default().file("a", "1").end());
    let top = index(&[blobs.image("amd64", &[layer.clone(), layer.clone()])]);
    let server = registry(&blobs, &top);
    let image = open(&Source::Registry(server.image("app:1.0")), &asking(folder.path())).unwrap();
    let counted = image.to_fetch();
    assert_eq!(lines(&contents(&image).unwrap()), ["a=1"]);
    assert_eq!(server.count(&Digest::sha256_of(&layer).to_string()), 1);
    assert_eq!(counted, layer.len() as u64);
}

#[test]
fn a_layer_with_other_bytes_than_its_digest_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (mut blobs, top) = blobs();
    let digest = Digest::sha256_of(&layers()[1]).to_string();
    blobs.0.get_mut(&digest).unwrap()[20] ^= 1;
    let server = registry(&blobs, &top);
    let image = open(&Source::Registry(server.image("app:1.0")), &asking(folder.path())).unwrap();
    let error = contents(&image).unwrap_err();
    assert!(
        matches!(&error, ImageError::Registry(_)) && error.to_string().contains("digest mismatch"),
        "{error}"
    );
    assert!(error.to_string().contains(&digest), "{error}");
    assert!(image.to_fetch() >= layers()[1].len() as u64, "it is not kept");
}

#[test]
fn documents_of_a_registry_that_were_swapped_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (blobs, top) = blobs();
    for (digest, bytes) in blobs.0.iter().filter(|(_, bytes)| bytes.starts_with(b"{")) {
        let mut swapped = blobs.clone();
        let other =
            String::from_utf8(bytes.clone()).unwrap().replace("amd64", "AMD64").replace("sha256", "SHA256");
        swapped.0.insert(digest.clone(), other.into_bytes());
        let server = registry(&swapped, &top);
        let options = asking(&folder.path().join(Digest::sha256_of(digest.as_bytes()).hex()));
        let error = error_of(open(&Source::Registry(server.image("app:1.0")), &options));
        assert!(
            matches!(&error, ImageError::Registry(_)) && error.to_string().contains("digest mismatch"),
            "{error}"
        );
    }
}

#[test]
fn a_registry_that_vanishes_between_manifest_and_layer_is_a_failure_outside() {
    let folder = tempfile::tempdir().unwrap();
    let (blobs, top) = blobs();
    let server = registry(&blobs, &top);
    let image = open(&Source::Registry(server.image("app:1.0")), &asking(folder.path())).unwrap();
    drop(server);
    let error = contents(&image).unwrap_err();
    assert!(error.is_outside(), "{error}");
    assert!(error.to_string().contains("blob sha256:"), "{error}");
    assert_eq!(image.to_fetch(), stored_size(&layers()));
}

#[test]
fn an_image_that_a_registry_does_not_have_is_no_failure_outside() {
    let folder = tempfile::tempdir().unwrap();
    let server = registry(&Blobs::default(), &json!({}));
    let error = error_of(open(&Source::Registry(server.image("app:2.0")), &asking(folder.path())));
    assert!(matches!(&error, ImageError::Registry(_)) && error.to_string().contains("not found"), "{error}");
    assert!(!error.is_outside());
}

#[test]
fn without_a_client_no_registry_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let source = Source::reference("app:1.0").unwrap();
    let error = error_of(open(&source, &options(folder.path())));
    assert!(matches!(&error, ImageError::NotAnImage { .. }), "{error}");
    let client =
        Client::new(cudock_registry::Options { offline: true, ..server::options(folder.path()) }).unwrap();
    let offline = OpenOptions { client: Some(Arc::new(client)), ..options(folder.path()) };
    let error = error_of(open(&source, &offline));
    assert!(matches!(&error, ImageError::Registry(_)) && error.to_string().contains("offline"), "{error}");
}

#[test]
fn an_image_of_a_daemon_is_read_from_what_the_daemon_streams() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("d.sock");
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
    let options = OpenOptions { sockets: vec![socket], ..options(folder.path()) };
    let image = open(&Source::Daemon { name: "app:1.0".to_owned() }, &options).unwrap();
    assert_is_the_image(&image, Origin::Daemon);
    assert_eq!(image.name, "app:1.0");
    assert_eq!(fs::read_dir(&options.scratch).unwrap().count(), 1);
    drop(image);
    assert_eq!(
        fs::read_dir(&options.scratch).unwrap().count(),
        0,
        "what the daemon gave is gone with the image"
    );
    let error = error_of(open(&Source::Daemon { name: "other".to_owned() }, &options));
    assert!(
        matches!(&error, ImageError::Registry(_)) && error.to_string().contains("not found on the daemon"),
        "{error}"
    );
    assert_eq!(fs::read_dir(&options.scratch).unwrap().count(), 0);
}
