//! An image: its size from its manifest, and its verdicts from as little of it as decides them.

use std::collections::{BTreeMap, BTreeSet};

use cudock_compat::{Target, judge};
use cudock_facts::Facts;
use cudock_image::{Image, ImageSource, LayerLimits, Origin};

use super::{Answer, ImageSize, Inferred, table_architecture};
use crate::failure::Failure;
use crate::verbs::containers::Wish;
use crate::verbs::opened::OpenedImages;

/// Layers of this size are read once more to count what they hold.
const QUICKLY_READ: u64 = 2_000_000_000;

pub(super) fn look(
    facts: &Facts,
    name: &str,
    source: &ImageSource,
    offline: bool,
    targets: Vec<(String, Target)>,
) -> Result<Inferred, Failure> {
    let environment = BTreeMap::new();
    let mut opened = OpenedImages::open(source, &Wish { platform: None, offline }, name, &environment)?;
    let mut places = Vec::with_capacity(targets.len());
    for (size, target) in targets {
        places.push((opened.for_target(&target)?, size, target));
    }
    let mut answers: Vec<Answer> = Vec::with_capacity(places.len());
    for (index, size, target) in places {
        let Some(one) = opened.at(index) else { continue };
        let start = one.start(&target, facts);
        let judgement = match start {
            Some(judgement) if one.costs_fetching() => Some(judgement),
            _ if offline && one.image.bytes_to_fetch() > 0 => None,
            _ => opened.evidence(index, facts)?.map(|evidence| judge(evidence, &target, facts)),
        };
        answers.push((size, target, judgement));
    }
    let mut inferred = Inferred::of(name, answers);
    if let Some(first) = opened.first() {
        inferred.architecture = Some(architecture(&first.image));
        inferred.image = Some(size(&first.image, name));
        if first.costs_fetching() {
            let value = "its layers were not looked at";
            inferred.note("workload.image", value, "they are not here, and --offline fetches nothing");
        }
    }
    Ok(inferred)
}

/// The one processor it is for; none if it is for several.
fn architecture(image: &Image) -> Option<String> {
    let linux = image.platforms.iter().filter(|platform| platform.os == "linux");
    let names: BTreeSet<&str> = linux.map(|platform| platform.architecture.as_str()).collect();
    match (names.first(), names.len()) {
        (Some(only), 1) => Some(table_architecture(only).to_owned()),
        (None, _) => Some(table_architecture(&image.platform.architecture).to_owned()),
        _ => None,
    }
}

/// What is fetched of it, and what it holds where its layers are at hand and quickly read.
fn size(image: &Image, name: &str) -> ImageSize {
    let mut counted = BTreeSet::new();
    let layers = image.layers.iter().filter(|layer| counted.insert(layer.digest.as_str()));
    let stored: u64 = layers.map(|layer| layer.size).sum();
    let here = image.origin != Origin::Registry || image.bytes_to_fetch() == 0;
    let unpacked = (here && stored <= QUICKLY_READ).then(|| held(image)).flatten();
    // Daemons hand out layers as they lie on disk; what a registry sends is about half.
    let is_plain = match (image.origin, unpacked) {
        (Origin::Daemon, _) => true,
        (Origin::Archive, Some(unpacked)) => stored >= unpacked,
        _ => false,
    };
    if is_plain {
        let source = format!("assumed: half of the layers of {name}, which are not compressed here");
        return ImageSize { compressed: stored / 2, source, unpacked: unpacked.or(Some(stored)) };
    }
    ImageSize { compressed: stored, source: format!("the layers of {name}, as its manifest says"), unpacked }
}

/// Bytes of all files that a container of it would see.
fn held(image: &Image) -> Option<u64> {
    let tree = image.walk(LayerLimits::default(), |_, _| Ok(None::<()>)).ok()?;
    Some(tree.iter().filter_map(|(_, node)| node.size()).sum())
}
