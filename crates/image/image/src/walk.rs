//! Walks all layers of an image in parallel.

use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

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
        let next = AtomicUsize::new(0);
        let results = Mutex::new(Vec::with_capacity(layers.len()));
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        std::thread::scope(|scope| {
            for _ in 0..cores.min(layers.len()) {
                scope.spawn(|| {
                    while let Some(index) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let Some(bytes) = layers.get(*index) else { break };
                        let read = layer::read(bytes, limits, &inspect);
                        if let Ok(mut results) = results.lock() {
                            results.push((*index, read));
                        }
                    }
                });
            }
        });
        let mut results = results.into_inner().unwrap_or_default();
        results.sort_by_key(|(index, _)| *index);
        let mut tree = Tree::default();
        for (index, changes) in results {
            let invalid = |message: String| self.layer_error(index, message);
            let changes = changes.map_err(|error| invalid(error.to_string()))?;
            tree.apply(changes).map_err(|message| invalid(format!("rejected: {message}")))?;
        }
        Ok(tree)
    }
}
