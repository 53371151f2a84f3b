//! Layers and images that are written, and read by us and by other tools.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use cudock_base::Digest;
use cudock_http::{BlobStore, NoProgress};
use cudock_image::write::{
    Artifact, ArtifactBlob, Bundle, Compression, Destination, Edit, FileContent, HardLink, LayerBlob,
    LayerEntry, NewConfig, WriteError, WriteOptions, write_layer,
};
use cudock_image::{Descriptor, FileKind, ImageSource, Platform};
use cudock_testkit::require_program;

use crate::support::{Tar, contents, gzip, image_of, open, options, read_bundle, referrer_blob, referrers};

pub(crate) fn store(directory: &Path) -> BlobStore {
    BlobStore::open(directory.join("cache")).unwrap()
}

pub(crate) fn write_options(directory: &Path) -> WriteOptions {
    let client = cudock_registry::Client::new(cudock_registry::Options::new(store(directory))).unwrap();
    WriteOptions {
        platform: None,
        client: Some(Arc::new(client)),
        sockets: Vec::new(),
        scratch: directory.join("scratch"),
        progress: Arc::new(NoProgress),
    }
}

fn file(path: &str, content: &[u8]) -> LayerEntry {
    LayerEntry::new(path, FileKind::File(FileContent::Bytes(content.to_vec())), 0o644)
}

/// Every kind of entry, with names and numbers that do not fit into a header.
fn entries(directory: &Path) -> Vec<LayerEntry> {
    let on_disk = directory.join("on-disk");
    fs::write(&on_disk, "from disk").unwrap();
    let long = format!("opt/{}/{}", "d".repeat(120), "é".repeat(60));
    let mut owned = file("srv/owned", b"mine");
    (owned.uid, owned.gid, owned.mtime) = (3_000_000, 4_000_000_000, 1_700_000_000);
    owned.xattrs.insert("user.note".to_owned(), b"a=b\n\0".to_vec());
    vec![
        file(&long, b"long"),
        LayerEntry::new("usr/bin/run", FileKind::File(FileContent::File(on_disk)), 0o755),
        LayerEntry::new("bin", FileKind::Symlink("usr/bin".to_owned()), 0o777),
        LayerEntry::new("a-link", FileKind::Other(HardLink("srv/owned".to_owned())), 0o644),
        LayerEntry::new("far", FileKind::Symlink("/".to_owned() + &"x/".repeat(90)), 0o777),
        owned,
    ]
}

fn config() -> NewConfig {
    let mut config = NewConfig::new(Platform::linux("amd64"));
    config.env = vec![("PATH".to_owned(), "/usr/bin".to_owned())];
    config.entrypoint = vec!["/usr/bin/run".to_owned()];
    config.exposed_ports.insert("8000/tcp".to_owned());
    config.labels.insert("io.cudock.test".to_owned(), "yes".to_owned());
    config
}

pub(crate) fn bundle(directory: &Path, layers: &[LayerBlob]) -> Bundle {
    fs::create_dir_all(directory).unwrap();
    Bundle::image(&config(), layers, &BTreeMap::new())
}

pub(crate) fn one_layer(directory: &Path, compression: Compression) -> LayerBlob {
    write_layer(&store(directory), compression, entries(directory)).unwrap()
}

pub(crate) fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

fn source(text: &str) -> ImageSource {
    ImageSource::parse(text).unwrap()
}

#[test]
fn the_same_entries_in_any_order_give_the_same_bytes_and_gnu_tar_reads_them() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let layer = one_layer(path, Compression::None);
    let mut reversed = entries(path);
    reversed.reverse();
    assert_eq!(write_layer(&store(path), Compression::None, reversed).unwrap(), layer);
    let bytes = fs::read(&layer.path).unwrap();
    assert_eq!((Digest::sha256_of(&bytes), bytes.len() as u64), (layer.digest.clone(), layer.size));
    assert_eq!((&layer.diff_id, layer.unpacked), (&layer.digest, layer.size));
    let (_image_dir, image) = image_of(&[bytes]);
    let tree = contents(&image).unwrap();
    assert_eq!(tree.get("usr/bin/run").unwrap().kept().unwrap(), b"from disk");
    assert_eq!(tree.get("a-link").unwrap().kept().unwrap(), b"mine");
    assert!(tree.get("srv").unwrap().is_directory());
    let listed = run(Command::new("tar").arg("--numeric-owner").arg("-tvf").arg(&layer.path));
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(listed.contains("3000000/4000000000") && listed.contains("2023-11-14"), "{listed}");
    assert!(listed.contains("a-link link to srv/owned"), "{listed}");
}

#[test]
fn compressed_layers_open_to_the_same_tar_and_are_the_same_each_time() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let noise = cudock_testkit::http::noise(9 << 20);
    let layer = |compression| write_layer(&store(path), compression, vec![file("noise", &noise)]).unwrap();
    let plain = layer(Compression::None);
    for (compression, program) in [(Compression::default(), "gzip"), (Compression::Zstd(3), "zstd")] {
        let packed = layer(compression);
        assert_eq!((&packed.diff_id, packed.unpacked), (&plain.diff_id, plain.unpacked));
        assert_eq!(layer(compression), packed);
        let Some(program) = require_program(program) else { continue };
        let opened = run(Command::new(program).arg("-dc").stdin(fs::File::open(&packed.path).unwrap()));
        assert_eq!(Digest::sha256_of(&opened.stdout), plain.diff_id, "{compression}");
    }
}

#[test]
fn paths_that_leave_the_image_and_duplicates_are_rejected() {
    let directory = tempfile::tempdir().unwrap();
    for path in ["", "/etc/passwd", "../x", "a/../b", "a//b", "a/.", "a\0b"] {
        let written = write_layer(&store(directory.path()), Compression::None, vec![file(path, b"")]);
        assert!(matches!(written, Err(WriteError::Entry { .. })), "{path:?}");
    }
    let twice = vec![file("a", b"1"), file("a", b"2")];
    assert!(write_layer(&store(directory.path()), Compression::None, twice).is_err());
    let outside = LayerEntry::new("x", FileKind::Other(HardLink("../../etc/passwd".to_owned())), 0o644);
    assert!(write_layer(&store(directory.path()), Compression::None, vec![outside]).is_err());
    assert!(fs::read_dir(directory.path().join("cache/blobs/sha256")).unwrap().next().is_none());
}

#[test]
fn squashfs_has_the_merged_files_in_the_same_bytes_each_time_and_unsquashfs_reads_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let big = cudock_testkit::http::noise(300_000);
    let middle = vec![file("big", &big), LayerEntry::new("var/tmp", FileKind::Directory, 0o1777)];
    let middle = write_layer(&store(path), Compression::default(), middle).unwrap();
    let [lower, middle] =
        [one_layer(path, Compression::Zstd(3)), middle].map(|layer| fs::read(layer.path).unwrap());
    let upper = Tar::default().whiteout("usr/bin/run").file("bin/added", "through a link").end();
    let (layout, _image) = image_of(&[lower, middle, gzip(&upper)]);
    let image = read_bundle(&source(&format!("oci:{}", layout.path().display())), &options(path)).unwrap();
    let write = |name: &str| {
        let file = path.join(name);
        let destination = Destination::parse(&file.display().to_string()).unwrap();
        assert_eq!(destination, Destination::Squashfs { file: file.clone() });
        assert_eq!(image.write(&destination, &write_options(path)).unwrap().digest, image.digest());
        file
    };
    let file = write("image.sqsh");
    assert_eq!(fs::read(&file).unwrap(), fs::read(write("again.sqfs")).unwrap());
    let Some(unsquashfs) = require_program("unsquashfs") else { return };
    let listed = run(Command::new(&unsquashfs).args(["-lln", "-d", ""]).arg(&file));
    let listed = String::from_utf8(listed.stdout).unwrap();
    let line = |end: &str| listed.lines().find(|line| line.ends_with(end)).unwrap_or_default().to_owned();
    assert!(line("/srv/owned").contains("3000000/4000000000"), "{listed}");
    assert!(line("/srv/owned").contains("2023-11-14"), "{listed}");
    assert!(line("/var/tmp").starts_with("drwxrwxrwt"), "{listed}");
    assert!(line("bin -> usr/bin").starts_with('l') && line("/usr/bin/run").is_empty(), "{listed}");
    for (name, content) in [("usr/bin/added", &b"through a link"[..]), ("a-link", b"mine"), ("big", &big)] {
        let read = run(Command::new(&unsquashfs).arg("-cat").arg(&file).arg(name));
        assert_eq!(read.stdout, content, "{name}");
    }
}

#[test]
fn an_image_keeps_its_digest_through_layouts_and_archives_and_other_tools_read_them() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let image = bundle(
        path,
        &[one_layer(path, Compression::Zstd(3)), {
            write_layer(&store(path), Compression::default(), vec![file("top", b"2")]).unwrap()
        }],
    );
    let options_of = write_options(path);
    let at = |name: &str| path.join(name).display().to_string();
    let layout = format!("oci:{}:one", at("layout"));
    let archive = format!("oci-archive:{}", at("image.tar"));
    let mut digests = Vec::new();
    for destination in [&layout, &archive] {
        let written = image.write(&Destination::parse(destination).unwrap(), &options_of).unwrap();
        digests.push(written.digest);
        let read = read_bundle(&source(destination), &options(path)).unwrap();
        digests.push(read.digest().to_owned());
    }
    assert!(digests.iter().all(|digest| digest == image.digest()), "{digests:?}");
    let docker = format!("docker-archive:{}:team/app:1", at("docker.tar"));
    image.write(&Destination::parse(&docker).unwrap(), &options_of).unwrap();
    let tree = contents(&open(&source(&docker), &options(path)).unwrap()).unwrap();
    assert_eq!(tree.get("top").unwrap().kept().unwrap(), b"2");
    // A second image in the layout leaves the first.
    let second = bundle(path, &[one_layer(path, Compression::None)]);
    second.write(&Destination::parse(&format!("oci:{}:two", at("layout"))).unwrap(), &options_of).unwrap();
    assert_eq!(read_bundle(&source(&layout), &options(path)).unwrap().digest(), image.digest());
    let Some(skopeo) = require_program("skopeo") else { return };
    let inspected = run(Command::new(&skopeo).args(["inspect", "--format", "{{.Digest}}", &layout]));
    assert_eq!(String::from_utf8(inspected.stdout).unwrap().trim(), image.digest());
    for (from, to) in [(&layout, "a"), (&archive, "b"), (&docker, "c")] {
        let to = format!("oci:{}", at(to));
        run(Command::new(&skopeo).args(["--insecure-policy", "copy", from, &to]));
        let tree = contents(&open(&source(&to), &options(path)).unwrap()).unwrap();
        assert_eq!(tree.get("usr/bin/run").unwrap().kept().unwrap(), b"from disk", "{from}");
    }
    // docker has no name for zstd.
    let gzipped = image.recompress(&store(path), Compression::default()).unwrap();
    gzipped.write(&Destination::parse(&format!("oci:{}:gz", at("layout"))).unwrap(), &options_of).unwrap();
    let back = format!("docker-archive:{}:example.com/team/app:2", at("skopeo.tar"));
    run(Command::new(&skopeo).args([
        "--insecure-policy",
        "copy",
        &format!("oci:{}:gz", at("layout")),
        &back,
    ]));
    assert_eq!(read_bundle(&source(&back), &options(path)).unwrap().layers().unwrap().len(), 2);
    let Some(umoci) = require_program("umoci") else { return };
    run(Command::new(umoci).args([
        "unpack",
        "--rootless",
        "--image",
        &format!("{}:gz", at("layout")),
        &at("rootfs"),
    ]));
    assert_eq!(fs::read(path.join("rootfs/rootfs/a-link")).unwrap(), b"mine");
}

#[test]
fn an_index_is_kept_whole_and_recompressing_changes_only_layers() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let layer = one_layer(path, Compression::default());
    let mut arm = NewConfig::new(Platform::linux("arm64"));
    arm.user = "1000".to_owned();
    let mut first = bundle(path, std::slice::from_ref(&layer));
    first.describe("io.cudock.gpu", "sm_75");
    let index = Bundle::index(vec![first, Bundle::image(&arm, &[layer], &BTreeMap::new())], &BTreeMap::new());
    let to = |name: &str| Destination::parse(&format!("oci:{}", path.join(name).display())).unwrap();
    index.write(&to("index"), &write_options(path)).unwrap();
    let read = read_bundle(&source(&to("index").to_string()), &options(path)).unwrap();
    assert_eq!((read.digest(), read.image_count().unwrap()), (index.digest(), 2));
    let packed = read.recompress(&store(path), Compression::Zstd(3)).unwrap();
    assert_ne!(packed.digest(), index.digest());
    let images = packed.open("image").unwrap();
    let [one, other] = images.as_slice() else { panic!("two platforms") };
    assert_eq!(one.layers, other.layers);
    let trees = [&one.image, &other.image].map(|image| contents(image).unwrap());
    assert!(trees.iter().all(|tree| tree.get("srv/owned").unwrap().kept().unwrap() == b"mine"));
    // The content is the same: back again there are the same layers.
    let back = packed.recompress(&store(path), Compression::default()).unwrap();
    assert_eq!(back.layers().unwrap(), index.layers().unwrap());
    assert_eq!(back.recompress(&store(path), Compression::default()).unwrap().digest(), back.digest());
}

#[test]
fn referrers_are_found_in_a_layout_and_stay_with_their_image() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let mut image = bundle(path, &[one_layer(path, Compression::default())]);
    let layers = vec![ArtifactBlob {
        media_type: "application/spdx+json".to_owned(),
        bytes: b"{}\n".to_vec(),
        annotations: BTreeMap::new(),
    }];
    let artifact = Artifact { artifact_type: "text/test".to_owned(), layers, annotations: BTreeMap::new() };
    image.attach(None, &artifact);
    let layout = format!("oci:{}:x", path.join("layout").display());
    image.write(&Destination::parse(&layout).unwrap(), &write_options(path)).unwrap();
    let archive = format!("oci-archive:{}:x", path.join("image.tar").display());
    let read = read_bundle(&source(&layout), &options(path)).unwrap();
    read.write(&Destination::parse(&archive).unwrap(), &write_options(path)).unwrap();
    for place in [&layout, &archive] {
        let found = referrers(&source(place), image.digest(), Some("text/test"), &options(path)).unwrap();
        let [one] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(referrer_blob(&source(place), &one.layers[0], &options(path)).unwrap(), b"{}\n");
        assert!(
            referrers(&source(place), image.digest(), Some("text/other"), &options(path)).unwrap().is_empty()
        );
    }
    // What is attached later is added to what is there, also under another name, and writing the image again keeps it.
    let (kind, annotations) = ("text/later".to_owned(), BTreeMap::new());
    let later =
        Bundle::referrer(image.descriptor(), &Artifact { artifact_type: kind, annotations, ..artifact });
    let other = format!("oci:{}:y", path.join("layout").display());
    for destination in [&other, &layout] {
        read.write(&Destination::parse(destination).unwrap(), &write_options(path)).unwrap();
        later.write(&Destination::parse(destination).unwrap(), &write_options(path)).unwrap();
        image.write(&Destination::parse(destination).unwrap(), &write_options(path)).unwrap();
    }
    for place in [&layout, &other] {
        let found = referrers(&source(place), image.digest(), None, &options(path)).unwrap();
        assert_eq!(found.len(), 2, "{place}: {found:?}");
    }
    let refused = later.write(&Destination::parse(&archive).unwrap(), &write_options(path)).unwrap_err();
    assert!(refused.to_string().contains("archives cannot be added to"), "{refused}");
    let stray = Bundle::referrer(&Descriptor::of("text/plain", b"not there"), &artifact_of("text/test"));
    let refused = stray.write(&Destination::parse(&layout).unwrap(), &write_options(path)).unwrap_err();
    assert!(refused.to_string().contains("index.json does not list it"), "{refused}");
}

#[test]
fn other_tools_see_a_single_image_in_a_layout_with_referrers() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let mut image = bundle(path, &[one_layer(path, Compression::default())]);
    image.attach(None, &artifact_of("text/test"));
    let at = |name: &str| path.join(name).display().to_string();
    let (nameless, archive) = (format!("oci:{}", at("nameless")), format!("oci-archive:{}", at("image.tar")));
    let named = format!("oci:{}:x", at("named"));
    for destination in [&nameless, &archive, &named] {
        image.write(&Destination::parse(destination).unwrap(), &write_options(path)).unwrap();
    }
    let later = Bundle::referrer(image.descriptor(), &artifact_of("text/later"));
    later.write(&Destination::parse(&nameless).unwrap(), &write_options(path)).unwrap();
    let index: serde_json::Value =
        serde_json::from_slice(&fs::read(path.join("nameless/index.json")).unwrap()).unwrap();
    assert_eq!(index["manifests"].as_array().unwrap().len(), 1, "{index}");
    let Some(skopeo) = require_program("skopeo") else { return };
    for (number, from) in [&nameless, &archive, &named].into_iter().enumerate() {
        let inspected = run(Command::new(&skopeo).args(["inspect", "--format", "{{.Digest}}", from]));
        assert_eq!(String::from_utf8(inspected.stdout).unwrap().trim(), image.digest(), "{from}");
        let copy = format!("oci:{}", at(&number.to_string()));
        run(Command::new(&skopeo).args(["--insecure-policy", "copy", from, &copy]));
        assert_eq!(read_bundle(&source(&copy), &options(path)).unwrap().digest(), image.digest());
    }
    let Some(umoci) = require_program("umoci") else { return };
    let listed = run(Command::new(&umoci).args(["list", "--layout", &at("named")]));
    assert_eq!(String::from_utf8(listed.stdout).unwrap(), "x\n");
    let image_name = format!("{}:x", at("named"));
    run(Command::new(&umoci).args(["unpack", "--rootless", "--image", &image_name, &at("rootfs")]));
    assert_eq!(fs::read(path.join("rootfs/rootfs/a-link")).unwrap(), b"mine");
    // Its cleaning fails with a file that a killed process left, which the next write removes. It removes what the index
    // does not list, and leaves the image.
    fs::write(path.join("named/blobs/sha256").join("0.1-1.new"), "half").unwrap();
    image.write(&Destination::parse(&named).unwrap(), &write_options(path)).unwrap();
    assert_eq!(referrers(&source(&named), image.digest(), None, &options(path)).unwrap().len(), 1);
    run(Command::new(&umoci).args(["gc", "--layout", &at("named")]));
    assert_eq!(read_bundle(&source(&named), &options(path)).unwrap().digest(), image.digest());
    assert!(referrers(&source(&named), image.digest(), None, &options(path)).unwrap().is_empty());
}

/// An artifact of a type.
fn artifact_of(kind: &str) -> Artifact {
    let blob = ArtifactBlob {
        media_type: "text/plain".to_owned(),
        bytes: b"proof".to_vec(),
        annotations: BTreeMap::new(),
    };
    Artifact { artifact_type: kind.to_owned(), layers: vec![blob], annotations: BTreeMap::new() }
}

#[test]
fn editing_a_layer_copies_every_other_byte_and_no_edit_keeps_the_layer() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let tar = Tar::default()
        .pax(&[("SCHILY.xattr.user.a", b"1"), ("mtime", b"1700000000.25")])
        .file("lib/a.so", "old content")
        .whiteout("gone")
        .hard_link("lib/b.so", "lib/a.so")
        .opaque("dir")
        .device("dev/null", b'3', 1, 3)
        .file("drop", "dropped")
        .file("keep", "kept")
        .end();
    let (layout, _image) = image_of(&[gzip(&tar)]);
    let read = read_bundle(&source(&format!("oci:{}", layout.path().display())), &options(path)).unwrap();
    let [digest] = read.layers().unwrap().try_into().unwrap();
    let store = store(path);
    let none = read.edit_layer(&digest, &store, Compression::None, &mut |_, _| Ok(Edit::Keep)).unwrap();
    assert!(none.is_none());
    let removed = read.edit_layer(&digest, &store, Compression::None, &mut |header, _| {
        Ok(if header.path == "lib/a.so" { Edit::Remove } else { Edit::Keep })
    });
    assert!(removed.unwrap().is_none(), "a hard link leads to it");
    let edit = |replacement: &'static [u8]| {
        let edited = read.edit_layer(&digest, &store, Compression::None, &mut |header, content| {
            Ok(match header.path.as_str() {
                "lib/a.so" => {
                    assert_eq!(content, b"old content");
                    Edit::Replace(replacement.to_vec())
                }
                "drop" if replacement.len() < 11 => Edit::Remove,
                _ => Edit::Keep,
            })
        });
        fs::read(edited.unwrap().unwrap().path).unwrap()
    };
    let same_size = edit(b"new content");
    let differing: Vec<usize> = (0..tar.len()).filter(|at| tar[*at] != same_size[*at]).collect();
    assert_eq!((same_size.len(), differing.len()), (tar.len(), 3));
    let shorter = edit(b"new");
    assert_eq!(shorter.len(), tar.len() - 1024, "the dropped file had a header and a block");
    let (_directory, image) = image_of(&[gzip(b""), shorter]);
    let tree = contents(&image).unwrap();
    assert_eq!(tree.get("lib/b.so").unwrap().kept().unwrap(), b"new");
    assert_eq!(tree.get("keep").unwrap().kept().unwrap(), b"kept");
    assert!(tree.get("drop").is_none());
}
