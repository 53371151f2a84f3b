//! The parts of a cold start.

use std::time::Duration;

use cudock_base::text::format::fixed_bytes;
use cudock_model::Model;
use cudock_plan::{Image, Start};
use cudock_project::{ByteSize, TimeSpan};

use crate::assumptions::assumptions;
use crate::builder::WorkloadBuilder;
use crate::subject::Inspection;

impl WorkloadBuilder<'_> {
    pub(crate) fn start(&mut self, inspection: &Inspection, model: Option<&Model>) -> Start {
        let image = self.image(inspection);
        let file = &self.file().start;
        let weights = match (file.weights, model) {
            (Some(ByteSize(bytes)), _) => bytes,
            (None, Some(model)) => {
                let source = "the size of the model files; assumed to be fetched separately from the image";
                self.assume("start.weights", fixed_bytes(model.on_disk), source);
                model.on_disk
            }
            (None, None) => 0,
        };
        let TimeSpan(ready) = file.ready.unwrap_or_else(|| self.default(&assumptions().ready));
        let jit = match (file.jit, inspection.compiles) {
            (Some(TimeSpan(jit)), _) => jit,
            (None, true) => self.default(&assumptions().jit).0,
            (None, false) => Duration::ZERO,
        };
        Start { image: Some(image), weights, ready, jit }
    }

    fn image(&mut self, inspection: &Inspection) -> Image {
        let file = &self.file().start;
        let known = inspection.image.as_ref();
        let compressed = match (file.image_size, known) {
            (Some(ByteSize(bytes)), _) => bytes,
            (None, Some(known)) => {
                self.assume("start.image_size", fixed_bytes(known.compressed), known.source.clone());
                known.compressed
            }
            (None, None) => self.default(&assumptions().image_size).0,
        };
        let counted = known.and_then(|known| known.unpacked).filter(|_| file.image_size.is_none());
        let unpacked = match (file.image_unpacked, counted) {
            (Some(ByteSize(bytes)), _) | (None, Some(bytes)) => bytes,
            (None, None) => {
                let factor = &assumptions().unpacked_factor;
                let bytes = compressed.saturating_mul(factor.value);
                self.assume(&factor.key, fixed_bytes(bytes), factor.note.as_str());
                bytes
            }
        };
        let layers = known.filter(|_| file.image_size.is_none()).map(|known| known.layers.clone());
        Image { compressed, unpacked, layers: layers.unwrap_or_default() }
    }
}
