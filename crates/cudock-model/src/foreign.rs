//! Models in formats that have to be exported to ONNX before they can be served.

use std::path::Path;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForeignFormat {
    /// What it is: "a PyTorch model".
    pub name: &'static str,
    /// The command or call that exports it.
    pub export: &'static str,
}

/// The format of a model that is not ONNX, told by its name; none if it may be ONNX.
pub fn foreign_format(path: &Path) -> Option<ForeignFormat> {
    let name = path.file_name()?.to_str()?;
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let is_saved_model = path.join("saved_model.pb").is_file();
    let (name, export) = match extension {
        _ if is_saved_model || name == "saved_model.pb" => (
            "a TensorFlow SavedModel",
            "python -m tf2onnx.convert --saved-model DIR --output model.onnx (pip install tf2onnx)",
        ),
        "pt" | "pth" | "pt2" | "ckpt" | "bin" => (
            "a PyTorch model",
            "torch.onnx.export(model, (example,), \"model.onnx\", dynamo=True, dynamic_shapes=...) in Python",
        ),
        "safetensors" => (
            "a safetensors file, which holds weights without the model",
            "load it in Python, then torch.onnx.export(model, (example,), \"model.onnx\", dynamo=True)",
        ),
        "h5" | "keras" => {
            ("a Keras model", "model.export(\"model.onnx\", format=\"onnx\") in Python (Keras 3)")
        }
        "tflite" => {
            ("a TensorFlow Lite model", "python -m tf2onnx.convert --tflite FILE --output model.onnx")
        }
        "pkl" | "joblib" => (
            "a pickled model",
            "skl2onnx.to_onnx(model, X[:1], options={id(model): {\"zipmap\": False}}) in Python (pip install skl2onnx)",
        ),
        _ => return None,
    };
    Some(ForeignFormat { name, export })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_by_their_names() {
        let name = |path: &str| foreign_format(Path::new(path)).map(|format| format.name);
        assert_eq!(name("model.pt"), Some("a PyTorch model"));
        assert_eq!(name("dir/saved_model.pb"), Some("a TensorFlow SavedModel"));
        assert_eq!(name("model.joblib"), Some("a pickled model"));
        for onnx in ["model.onnx", "models", ".", "model"] {
            assert_eq!(name(onnx), None, "{onnx}");
        }
    }
}
