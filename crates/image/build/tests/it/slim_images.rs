use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use cudock_build::slim::{SlimImage, SlimImageError, SlimImageJob, SlimTarget, slim_image};
use cudock_facts::Facts;
use cudock_facts::version::Capability;
use cudock_fatbin::SlimError;
use cudock_http::{BlobStore, NoProgress};
use cudock_image::write::{
    Bundle, Compression, Destination, FileContent, LayerBlob, LayerEntry, NewConfig, WriteOptions,
    write_layer,
};
use cudock_image::{FileKind, ImageSource, LayerLimits, OpenOptions, Platform, ResolvedImage};
use cudock_testkit::process;
use cudock_testkit::random::cases;
use proptest::prelude::*;

/// A fat binary with one cubin for each architecture.
fn fatbin(archs: &[u32]) -> Vec<u8> {
    let mut body = Vec::new();
    for arch in archs {
        let payload = arch.to_le_bytes().repeat(2000);
        body.extend([2, 0, 1, 1]);
        body.extend(64_u32.to_le_bytes());
        body.extend((payload.len() as u64).to_le_bytes());
        body.extend([0; 8]);
        body.extend([7, 0, 1, 0]);
        body.extend(arch.to_le_bytes());
        body.extend([0; 8]);
        body.extend(0x11_u64.to_le_bytes());
        body.extend([0; 16]);
        body.extend(payload);
    }
    let mut bytes = vec![0x50, 0xED, 0x55, 0xBA, 1, 0, 16, 0];
    bytes.extend((body.len() as u64).to_le_bytes());
    bytes.extend(body);
    bytes
}

fn store(directory: &Path) -> BlobStore {
    BlobStore::open(directory.join("cache")).unwrap()
}

fn layer(directory: &Path, compression: Compression, files: &[(&str, Vec<u8>)]) -> LayerBlob {
    let entry = |(path, content): &(&str, Vec<u8>)| {
        let content = FileContent::Bytes(content.clone());
        LayerEntry { mtime: 7, ..LayerEntry::new(*path, FileKind::File(content), 0o644) }
    };
    write_layer(&store(directory), compression, files.iter().map(entry).collect()).unwrap()
}

fn image(layers: &[LayerBlob]) -> Bundle {
    Bundle::image(&NewConfig::new(Platform::linux("amd64")), layers, &BTreeMap::new())
}

fn options(directory: &Path) -> OpenOptions {
    let scratch = directory.join("scratch");
    OpenOptions { platform: None, client: None, sockets: Vec::new(), progress: None, scratch }
}

fn slim(bundle: &Bundle, directory: &Path, targets: &[&str]) -> Result<SlimImage, SlimImageError> {
    slim_with(bundle, directory, targets, false)
}

fn slim_with(
    bundle: &Bundle,
    directory: &Path,
    targets: &[&str],
    remove_unused: bool,
) -> Result<SlimImage, SlimImageError> {
    let facts = Facts::embedded();
    let named = |name: &&str| {
        let number = name.trim_start_matches("sm_").parse().unwrap();
        let capability = Capability::from_number(number).unwrap();
        SlimTarget::named(&facts, name, capability, "2026-11-15".parse().unwrap()).unwrap()
    };
    let targets: Vec<SlimTarget> = targets.iter().map(named).collect();
    let (gpus, compact, compression) = (&[][..], false, None);
    let job = SlimImageJob { facts: &facts, targets: &targets, gpus, compact, compression, remove_unused };
    slim_image(bundle, "image", &job, &store(directory))
}

#[test]
fn only_layers_with_removed_code_change_and_the_configuration_says_what_was_done() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let plain = layer(path, Compression::default(), &[("etc/a", b"text".to_vec())]);
    let fits = layer(path, Compression::None, &[("only.fatbin", fatbin(&[75]))]);
    let code = layer(
        path,
        Compression::Zstd(3),
        &[("lib/x.fatbin", fatbin(&[70, 75, 90])), ("lib/note", b"beside".to_vec())],
    );
    let before = image(&[plain.clone(), fits.clone(), code.clone()]);
    let slimmed = slim(&before, path, &["sm_75"]).unwrap();
    let layers = slimmed.bundle.layers().unwrap();
    assert_eq!(layers[..2], [plain.digest.to_string(), fits.digest.to_string()]);
    assert_ne!(layers[2], code.digest.to_string());
    assert!(slimmed.report.bytes_after < slimmed.report.bytes_before);
    assert_eq!(slimmed.bundle.compression_of(&layers[2]).unwrap(), Compression::Zstd(3));
    let opened = slimmed.bundle.open("image").unwrap();
    let keep = |_: &_, content: &mut cudock_image::Content<'_, '_>| Ok(Some(content.all()?.to_vec()));
    let tree = opened[0].image.walk(LayerLimits::default(), keep).unwrap();
    let content = tree.get("lib/x.fatbin").unwrap().kept().unwrap();
    let lines = cudock_fatbin::read(content).unwrap().lines();
    // The code for sm_70 would run on a T4, and never does beside that for sm_75.
    assert_eq!(lines.iter().map(|line| line.target.to_string()).collect::<Vec<_>>(), ["sm_75"]);
    assert_eq!(content.len(), fatbin(&[70, 75, 90]).len());
    assert_eq!(tree.get("lib/note").unwrap().kept().unwrap(), b"beside");
    let again = slim(&before, path, &["sm_75"]).unwrap();
    assert_eq!(again.bundle.digest(), slimmed.bundle.digest());
    assert_eq!(slim(&slimmed.bundle, path, &["sm_75"]).unwrap().bundle.digest(), slimmed.bundle.digest());
}

#[test]
fn a_target_without_code_stops_before_anything_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let before = image(&[layer(path, Compression::None, &[("x.fatbin", fatbin(&[75]))])]);
    let error = slim(&before, path, &["sm_90"]).err().unwrap();
    assert!(matches!(error, SlimImageError::Slim(SlimError::NoCode { .. })), "{error}");
}

/// An ELF library that is linked to others.
fn library(soname: &str, needed: &[&str], text: &str) -> Vec<u8> {
    let mut strings = vec![0];
    let mut tags = Vec::new();
    for (tag, name) in [(14, soname)].into_iter().chain(needed.iter().map(|name| (1, *name))) {
        tags.push((tag, strings.len() as u64));
        strings.extend([name.as_bytes(), b"\0"].concat());
    }
    let dynamic = 64 + 2 * 56;
    let at = dynamic + 16 * (tags.len() as u64 + 3);
    tags.extend([(5, at), (10, strings.len() as u64), (0, 0)]);
    let mut bytes = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0\x01\0\0\0".to_vec();
    for word in [0_u64, 64, 0] {
        bytes.extend(word.to_le_bytes());
    }
    for half in [0_u16, 0, 64, 56, 2, 64, 0, 0] {
        bytes.extend(half.to_le_bytes());
    }
    let end = at + (strings.len() + text.len()) as u64;
    for (kind, offset, size) in [(1_u64, 0, end), (2, dynamic, at - dynamic)] {
        for word in [kind | 6 << 32, offset, offset, offset, size, size, 8] {
            bytes.extend(word.to_le_bytes());
        }
    }
    for (tag, value) in tags {
        bytes.extend(u64::to_le_bytes(tag));
        bytes.extend(value.to_le_bytes());
    }
    bytes.extend(strings);
    bytes.extend(text.as_bytes());
    bytes
}

#[test]
fn unused_libraries_are_removed_when_requested_and_what_is_linked_opened_or_named_stays() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let cuda = layer(
        path,
        Compression::default(),
        &[
            ("lib/libcublas.so.13", library("libcublas.so.13", &["libcublasLt.so.13"], "")),
            ("lib/libcublasLt.so.13", library("libcublasLt.so.13", &[], "")),
            ("lib/libcudnn.so.9", library("libcudnn.so.9", &[], "")),
            ("lib/libcudnn_ops.so.9", library("libcudnn_ops.so.9", &[], "")),
            ("lib/libcurand.so.10", library("libcurand.so.10", &[], "")),
            ("lib/libnpps.so.13", library("libnpps.so.13", &[], "")),
            ("lib/libnvblas.so.13", library("libnvblas.so.13", &["libcublas.so.13"], "")),
            ("lib/note", b"stays".to_vec()),
        ],
    );
    let program = library("libapp.so", &["libcublas.so.13", "libcudnn.so.9"], "\0libnpps.so.13\0");
    let program = layer(path, Compression::default(), &[("lib/libapp.so", program)]);
    let before = image(&[cuda.clone(), program.clone()]);
    assert_eq!(slim(&before, path, &["sm_75"]).unwrap().bundle.digest(), before.digest());
    let slimmed = slim_with(&before, path, &["sm_75"], true).unwrap();
    let removed: Vec<&String> = slimmed.report.unused_libraries.keys().collect();
    assert_eq!(removed, ["lib/libcurand.so.10", "lib/libnvblas.so.13"]);
    assert_eq!(slimmed.bundle.layers().unwrap()[1], program.digest.to_string());
    let opened = slimmed.bundle.open("image").unwrap();
    let tree = opened[0].image.walk(LayerLimits::default(), |_, _| Ok(Some(()))).unwrap();
    let names: Vec<&str> = tree.names("lib").collect();
    let kept = [
        "libapp.so",
        "libcublas.so.13",
        "libcublasLt.so.13",
        "libcudnn.so.9",
        "libcudnn_ops.so.9",
        "libnpps.so.13",
        "note",
    ];
    assert_eq!(names, kept);
    assert!(cudock_build::slim::lines(&slimmed.report).iter().any(|line| line.contains("libcurand.so.10")));
    let again = slim_with(&slimmed.bundle, path, &["sm_75"], true).unwrap();
    assert_eq!(again.bundle.digest(), slimmed.bundle.digest());
}

/// Where a process of the test below works, and the layout that it writes.
const KILLED: [&str; 2] = ["CUDOCK_TEST_DIRECTORY", "CUDOCK_TEST_LAYOUT"];

#[test]
fn slimming_that_is_killed_leaves_no_image_and_the_next_run_gives_the_same() {
    let write_options = |directory: &Path| WriteOptions {
        platform: None,
        client: None,
        sockets: Vec::new(),
        scratch: directory.join("scratch"),
        progress: Arc::new(NoProgress),
    };
    // Slims an image, and takes a while for it.
    let slim_to = |directory: &Path, layout: &Path| {
        let many = |number: u32| [fatbin(&[70, 75, 90]), number.to_le_bytes().repeat(1 << 20)].concat();
        let layers: Vec<LayerBlob> = (0..3)
            .map(|number| layer(directory, Compression::default(), &[("lib/x.fatbin", many(number))]))
            .collect();
        let slimmed = slim(&image(&layers), directory, &["sm_75"]).unwrap();
        let destination = Destination::Layout { directory: layout.to_owned(), name: None };
        slimmed.bundle.write(&destination, &write_options(directory)).unwrap();
        slimmed.bundle.digest().to_owned()
    };
    let test = cudock_testkit::test_name!();
    if process::is_reentered(test) {
        let [directory, layout] = KILLED.map(|variable| PathBuf::from(std::env::var_os(variable).unwrap()));
        slim_to(&directory, &layout);
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let start = |layout: &str, command: &mut Command| {
        command.env(KILLED[0], path.join("work")).env(KILLED[1], path.join(layout));
    };
    // What is in a layout: a whole image, or nothing.
    let found = |layout: &str| -> Option<String> {
        path.join(layout).join("index.json").is_file().then(|| {
            let source = ImageSource::Layout { directory: path.join(layout), name: None };
            let bundle = ResolvedImage::resolve(&source, &options(path)).unwrap().bundle().unwrap();
            // Copying verifies every byte.
            let copy = tempfile::tempdir().unwrap();
            let destination = Destination::Layout { directory: copy.path().to_owned(), name: None };
            bundle.write(&destination, &write_options(path)).unwrap().digest
        })
    };
    let mut whole = process::reenter(test);
    start("whole", &mut whole);
    let began = Instant::now();
    assert!(whole.output().unwrap().status.success());
    let took = began.elapsed();
    let digest = found("whole").unwrap();
    let layout = |round: u32| format!("round{round}");
    process::kill_at_random(
        cases(5),
        took,
        |round| {
            // Half of the rounds begin with an empty cache.
            if round % 2 == 0 {
                std::fs::remove_dir_all(path.join("work")).unwrap();
            }
            let mut command = process::reenter(test);
            start(&layout(round), &mut command);
            command
        },
        |round| {
            let layout = layout(round);
            assert!(found(&layout).is_none_or(|found| found == digest), "round {round}");
            assert_eq!(slim_to(&path.join("work"), &path.join(&layout)), digest, "round {round}");
            assert_eq!(found(&layout), Some(digest.clone()), "round {round}");
        },
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    #[test]
    fn without_anything_to_remove_the_image_keeps_its_digest(
        contents in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..2000), 1..4),
        compression in prop::sample::select(vec![Compression::None, Compression::Gzip(6), Compression::Zstd(3)]),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let names: Vec<String> = (0..contents.len()).map(|number| format!("d/{number}")).collect();
        let mut files: Vec<(&str, Vec<u8>)> = names.iter().map(String::as_str).zip(contents).collect();
        files.push(("x.fatbin", fatbin(&[75, 90])));
        let before = image(&[layer(path, compression, &files)]);
        let slimmed = slim(&before, path, &["sm_75", "sm_90"]).unwrap();
        prop_assert_eq!(slimmed.bundle.digest(), before.digest());
        prop_assert_eq!(slimmed.bundle.layers().unwrap(), before.layers().unwrap());
    }
}
