//! Walks all layers of an image in parallel.

use std::io;

use cudock_base::{cores, parallel};

use crate::error::ImageError;
use crate::layer::{self, Content, EntryHeader, LayerLimits};
use crate::open::Image;
use crate::tree::Tree;

impl Image {
    /// Reads and merges all layers. `inspect` is called once for each regular file of each layer, from several threads;
    /// what it returns is kept with the file.
    ///
    /// Layers in a registry are fetched first.
    pub fn walk<T: Clone + Send>(
        &self,
        limits: LayerLimits,
        inspect: impl Fn(&EntryHeader, &mut Content<'_, '_>) -> io::Result<Option<T>> + Sync,
    ) -> Result<Tree<T>, ImageError> {
        let layers = self.fetch()?;
        // Largest first, so that no core starts the largest one last.
        let mut order: Vec<usize> = (0..layers.len()).collect();
        order.sort_by_key(|index| std::cmp::Reverse(layers.get(*index).map_or(0, |bytes| bytes.len())));
        let mut results = parallel(&order, cores(), |index| {
            (*index, layers.get(*index).map(|bytes| layer::read(bytes, limits, &inspect)))
        });
        results.sort_by_key(|(index, _)| *index);
        let mut tree = Tree::default();
        for (index, changes) in results {
            let Some(changes) = changes else { continue };
            let invalid = |message: String| self.layer_error(index, message);
            let changes = changes.map_err(|error| invalid(error.to_string()))?;
            tree.apply(changes).map_err(|message| invalid(format!("rejected: {message}")))?;
        }
        Ok(tree)
    }
}
