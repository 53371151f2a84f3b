//! What a start takes.

use std::time::Duration;

use cudock_model::Model;
use cudock_plan::{Image, Start};
use cudock_project::ByteSize;

use super::asking::Asking;
use crate::output::megabytes;
use crate::verbs::plan::infer::Inferred;

/// An image of which nothing is known: about what a framework with its CUDA libraries comes to.
const IMAGE: u64 = 4_000_000_000;
/// How many times as large images are unpacked.
const UNPACKED: u64 = 2;
/// From the program's start until it is ready.
const READY: Duration = Duration::from_secs(10);
/// What the driver compiles where it has to.
const JIT: Duration = Duration::from_secs(60);

impl Asking<'_> {
    pub(super) fn start(&mut self, inferred: &Inferred, model: Option<&Model>) -> Start {
        let image = self.image(inferred);
        let file = &self.file().start;
        let weights = match (file.weights, model) {
            (Some(ByteSize(bytes)), _) => bytes,
            (None, Some(model)) => {
                let source = "the size of the model's files; assumed to be fetched apart from the image";
                self.assume("start.weights", megabytes(model.on_disk), source);
                model.on_disk
            }
            (None, None) => 0,
        };
        let ready = if let Some(span) = file.ready {
            span.0
        } else {
            self.assume("start.ready", "10 s", "assumed: from the program's start until it is ready");
            READY
        };
        let jit = match (file.jit, inferred.compiles) {
            (Some(span), _) => span.0,
            (None, true) => {
                let source = "assumed where `cudock check` says that the driver compiles at first use";
                self.assume("start.jit", "60 s", source);
                JIT
            }
            (None, false) => Duration::ZERO,
        };
        Start { image: Some(image), weights, ready, jit }
    }

    fn image(&mut self, inferred: &Inferred) -> Image {
        let file = &self.file().start;
        let known = inferred.image.as_ref();
        let compressed = match (file.image_size, known) {
            (Some(ByteSize(bytes)), _) => bytes,
            (None, Some(known)) => {
                self.assume("start.image_size", megabytes(known.compressed), known.source.clone());
                known.compressed
            }
            (None, None) => {
                let source = "assumed: about a framework with its CUDA libraries; give `workload.image`, --image, or \
                              `start.image_size`";
                self.assume("start.image_size", megabytes(IMAGE), source);
                IMAGE
            }
        };
        let counted = known.and_then(|known| known.unpacked).filter(|_| file.image_size.is_none());
        let unpacked = match (file.image_unpacked, counted) {
            (Some(ByteSize(bytes)), _) | (None, Some(bytes)) => bytes,
            (None, None) => {
                let bytes = compressed.saturating_mul(UNPACKED);
                let source = format!("assumed: {UNPACKED} times what is fetched");
                self.assume("start.image_unpacked", megabytes(bytes), source);
                bytes
            }
        };
        Image { compressed, unpacked }
    }
}
