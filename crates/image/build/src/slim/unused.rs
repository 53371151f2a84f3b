//! CUDA libraries that nothing in an image links to or opens.

use std::collections::{BTreeMap, BTreeSet};

use cudock_facts::Facts;
use cudock_fatbin::{KeptLibraries, KnownUse, LinkedFile, is_cuda_library};
use cudock_image::LayerLimits;
use cudock_image::write::{Bundle, WriteError};

use crate::slim::SlimImageError;

/// The paths of unused libraries by the digest of the layer that they may be in. A layer of several images loses only what none of
/// them uses.
pub(crate) fn by_layer(
    bundle: &Bundle,
    name: &str,
    facts: &Facts,
) -> Result<BTreeMap<String, BTreeSet<String>>, SlimImageError> {
    let mut by_layer: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for opened in bundle.open(name)? {
        let tree = opened.image.walk(LayerLimits::default(), |header, content| {
            if header.size() < 64 || !content.start()?.starts_with(b"\x7fELF") {
                return Ok(None);
            }
            let file_name = header.path.rsplit('/').next().unwrap_or_default();
            Ok(LinkedFile::read(&header.path, content.all()?, is_cuda_library(file_name), false))
        });
        let tree = tree.map_err(WriteError::from)?;
        // A hard link has what was kept of its target, under another path. Neither of them is removed.
        let links = tree.iter().filter_map(|(path, node)| {
            let target = &node.kept()?.path;
            (target != path).then(|| [path.to_owned(), target.clone()])
        });
        let links: BTreeSet<String> = links.flatten().collect();
        let files = tree.iter().filter_map(|(path, node)| {
            node.kept().map(|file| LinkedFile { path: path.to_owned(), ..file.clone() })
        });
        let files: Vec<LinkedFile> = files.collect();
        let mut unused = KeptLibraries::of(&files, facts.opened_libraries(), KnownUse::default()).unused;
        unused.retain(|path| !links.contains(path));
        for layer in opened.layers {
            let known = by_layer.entry(layer).or_insert_with(|| unused.clone());
            known.retain(|path| unused.contains(path));
        }
    }
    Ok(by_layer)
}
