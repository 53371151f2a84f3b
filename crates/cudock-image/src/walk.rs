//! One pass over all layers, on all cores.

use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::ImageError;
use crate::layer::{self, Content, Header, Limits};
use crate::open::Image;
use crate::tree::Tree;

impl Image {
    /// Reads every layer and merges them. `look` is called once with each plain file of each layer, from several
    /// threads: what it returns is kept with the file.
    ///
    /// Layers of a registry are fetched first.
    pub fn walk<T: Clone + Send>(
        &self,
        limits: Limits,
        look: impl Fn(&Header, &mut Content<'_, '_>) -> io::Result<Option<T>> + Sync,
    ) -> Result<Tree<T>, ImageError> {
        let layers = self.fetch()?;
        // The largest first, so that no core is left with it at the end.
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
                        let read = layer::read(bytes, limits, &look);
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
            let wrong = |message: String| self.wrong_layer(index, message);
            let changes = changes.map_err(|error| wrong(error.to_string()))?;
            tree.apply(changes).map_err(|message| wrong(format!("refused: {message}")))?;
        }
        Ok(tree)
    }
}
