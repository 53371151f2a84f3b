//! Inspects an image: its size from its manifest, and its verdicts from as few layers as possible.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cudock_base::{Codec, NamedArch};
use cudock_compat::{GatherError, ImageSet, Target};
use cudock_facts::Facts;
use cudock_image::{Access, Image, ImageSource, LayerLimits};
use cudock_plan::{Assumption, ImageLayer};

use super::{ImageSize, Inspection, Processor};
use crate::Notify;

/// Layers up to this size are read once more to count what they hold.
const MAX_COUNTED: u64 = 2_000_000_000;

pub(super) fn inspect(
    facts: &Facts,
    name: &str,
    source: &ImageSource,
    offline: bool,
    targets: Vec<Target>,
    notify: &Notify<'_>,
) -> Result<Inspection, GatherError> {
    let environment = BTreeMap::new();
    let access = Access { platform: None, offline, pull: None, progress: Arc::clone(&notify.progress) };
    let mut images = ImageSet::open(source, &access, name, &environment, notify.on_read)?;
    let mut inspection = Inspection::of(name, images.judge(targets, facts, offline)?);
    if let Some((first, costs_fetching)) = images.first() {
        inspection.architecture = Some(architecture(first));
        inspection.image = Some(size(first, name));
        if costs_fetching {
            let source = "they are not cached, and --offline prevents fetching";
            let note = Assumption::new("workload.image", "its layers were not inspected", source);
            inspection.assumptions.push(note);
        }
    }
    Ok(inspection)
}

fn architecture(image: &Image) -> Processor {
    let linux = image.platforms.iter().filter(|platform| platform.os == "linux");
    let names: BTreeSet<&str> = linux.map(|platform| platform.architecture.as_str()).collect();
    match (names.first(), names.len()) {
        (Some(only), 1) => Processor::One(NamedArch::new(*only).with_kernel_name()),
        (None, _) => Processor::One(NamedArch::new(&image.platform.architecture).with_kernel_name()),
        _ => Processor::Any,
    }
}

/// The size of its layers to fetch, and of their contents if the layers are on this machine and
/// quickly read.
fn size(image: &Image, name: &str) -> ImageSize {
    let mut counted = BTreeSet::new();
    let distinct = image.layers.iter().filter(|layer| counted.insert(layer.digest.as_str()));
    let mut layers: Vec<ImageLayer> =
        distinct.map(|layer| ImageLayer { compressed: layer.size, codec: layer.codec() }).collect();
    let stored: u64 = layers.iter().map(|layer| layer.compressed).sum();
    let is_local = !matches!(image.source, Some(ImageSource::Registry(_))) || image.bytes_to_fetch() == 0;
    let unpacked = (is_local && stored <= MAX_COUNTED).then(|| unpacked_bytes(image)).flatten();
    // Daemons export layers uncompressed; those of registries are about half the size.
    let is_plain = match (&image.source, unpacked) {
        (Some(ImageSource::Daemon { .. }), _) => true,
        (Some(ImageSource::Archive { .. }), Some(unpacked)) => stored >= unpacked,
        _ => false,
    };
    if is_plain {
        let source = format!("assumed: half of the layers of {name}, which are stored uncompressed");
        for layer in &mut layers {
            *layer = ImageLayer { compressed: layer.compressed / 2, codec: Codec::Gzip };
        }
        return ImageSize { compressed: stored / 2, source, unpacked: unpacked.or(Some(stored)), layers };
    }
    ImageSize {
        compressed: stored,
        source: format!("the layers of {name}, according to its manifest"),
        unpacked,
        layers,
    }
}

/// Bytes of all files that a container of it would see.
fn unpacked_bytes(image: &Image) -> Option<u64> {
    let tree = image.walk(LayerLimits::default(), |_, _| Ok(None::<()>)).ok()?;
    Some(tree.iter().filter_map(|(_, node)| node.size()).sum())
}
