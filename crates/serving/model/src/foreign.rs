//! Models in formats that have to be exported before they can be served.

use std::path::Path;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForeignFormat {
    /// The description: "a PyTorch model".
    pub name: &'static str,
    /// The command or call that exports it.
    pub export: &'static str,
}

/// The format of a model that cannot be served, detected by its name.
pub fn foreign_format(path: &Path) -> Option<ForeignFormat> {
    let (name, export) = match path.extension()?.to_str()? {
        "ckpt" => (
            "a checkpoint of a training",
            "torch.onnx.export(model, (example,), \"model.onnx\", dynamo=True, dynamic_shapes=...) in Python",
        ),
        "h5" | "keras" => {
            ("a Keras model", "model.export(\"model.onnx\", format=\"onnx\") in Python (Keras 3)")
        }
        "tflite" => {
            ("a TensorFlow Lite model", "python -m tf2onnx.convert --tflite FILE --output model.onnx")
        }
        _ => return None,
    };
    Some(ForeignFormat { name, export })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_recognized_by_their_names() {
        let name = |path: &str| foreign_format(Path::new(path)).map(|format| format.name);
        assert_eq!(name("model.keras"), Some("a Keras model"));
        assert_eq!(name("dir/model.tflite"), Some("a TensorFlow Lite model"));
        for served in ["model.onnx", "model.pt", "models", ".", "model"] {
            assert_eq!(name(served), None, "{served}");
        }
    }
}
