//! Any bytes as an archive, with a layout or of docker's kind: no panic, and every path stays inside the image.
#![no_main]

use std::fs;
use std::sync::LazyLock;

use cudock_image::{LayerLimits, ImageSource, OpenOptions, ResolvedImage};
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

static DIRECTORY: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a temporary directory"));

fuzz_target!(|bytes: &[u8]| {
    // Archives compressed as a whole would fill the disk rather than find anything: the target `layer` has the codecs.
    if matches!(bytes, [0x1f, 0x8b, ..] | [0x28, 0xb5, 0x2f, 0xfd, ..]) {
        return;
    }
    let file = DIRECTORY.path().join("image.tar");
    fs::write(&file, bytes).expect("the image can be written");
    let options = OpenOptions {
        platform: None,
        client: None,
        sockets: Vec::new(),
        progress: None,
        scratch: DIRECTORY.path().join("scratch"),
    };
    let Ok(found) = ResolvedImage::resolve(&ImageSource::Archive { file, name: None }, &options) else { return };
    let _ = found.bundle();
    let Ok(image) = found.open() else { return };
    assert_eq!(image.bytes_to_fetch(), 0);
    image.config.config.command();
    image.config.config.environment();
    let stored: u64 = image.layers.iter().map(|layer| layer.size).max().unwrap_or(0);
    assert!(stored <= bytes.len() as u64);
    let limits = LayerLimits { entries: 10_000, unpacked: 16 << 20, ratio: 400 };
    let walked = image.walk(limits, |_, content| Ok(Some(content.all()?.len() as u64)));
    let Ok(tree) = walked else { return };
    for (path, node) in tree.iter() {
        assert!(
            !path.is_empty()
                && !path.starts_with('/')
                && path.split('/').all(|part| !part.is_empty() && part != "..")
        );
        assert_eq!(node.kept().copied(), node.size());
        let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
        assert!(parent.is_empty() || tree.get(parent).is_some_and(cudock_image::TreeNode::is_directory));
        if let Some((real, _)) = tree.resolve(path) {
            assert!(tree.get(&real).is_some());
        }
    }
});
