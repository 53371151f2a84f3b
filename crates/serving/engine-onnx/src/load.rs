//! Loads a model, converted if that is requested.

use cudock_engine::EngineError;

use crate::model_data::ModelData;
use crate::{OnnxEngine, OnnxEngineSettings, fp16};

impl OnnxEngine {
    /// Loads the library and the model. Providers that cannot be used are skipped, with the reason in [`DeviceInfo`](cudock_engine::DeviceInfo);
    /// the CPU always works.
    ///
    /// A process can load only one ONNX Runtime library: a second path is an error.
    pub fn load(settings: &OnnxEngineSettings) -> Result<Self, EngineError> {
        if settings.kind.fp16 {
            fp16::load(settings)
        } else {
            Self::open(settings, &ModelData::of_file(&settings.model))
        }
    }
}
