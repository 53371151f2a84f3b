use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use cudock_facts::Facts;
use cudock_facts::version::Capability;
use cudock_fatbin::SlimError;
use cudock_http::{BlobStore, NoProgress};
use cudock_image::write::{
    Bundle, Compression, Destination, FileContent, LayerBlob, LayerEntry, LayerEntryKind, NewConfig,
    WriteOptions, write_layer,
};
use cudock_image::{ImageSource, LayerLimits, OpenOptions, Platform};
use cudock_slim::{SlimImage, SlimImageError, SlimImageJob, SlimTarget, slim_image};
use cudock_testkit::process;
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
        LayerEntry { mtime: 7, ..LayerEntry::new(*path, LayerEntryKind::File(content), 0o644) }
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
    let facts = Facts::embedded();
    let named = |name: &&str| {
        let number = name.trim_start_matches("sm_").parse().unwrap();
        let capability = Capability::from_number(number).unwrap();
        SlimTarget::named(&facts, name, capability, "2026-11-15".parse().unwrap()).unwrap()
    };
    let targets: Vec<SlimTarget> = targets.iter().map(named).collect();
    let job = SlimImageJob { facts: &facts, targets: &targets, gpus: &[], compact: false, compression: None };
    slim_image(bundle, "image", &job, &store(directory), &options(directory))
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
    let opened = slimmed.bundle.open("image", &options(path)).unwrap();
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
            let bundle = Bundle::read(&source, &options(path)).unwrap();
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
        test,
        8,
        took,
        |round, command| {
            // Half of the rounds begin with an empty cache.
            if round % 2 == 0 {
                std::fs::remove_dir_all(path.join("work")).unwrap();
            }
            start(&layout(round), command);
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
