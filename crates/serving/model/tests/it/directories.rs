//! Finding the model in a directory.

use std::path::Path;

use cudock_model::{ModelError, ModelFormat, inspect};

use crate::write::{Message, model, safetensors, tensor};

fn put(directory: &Path, name: &str, numbers: u64) {
    let path = directory.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let data = vec![0; usize::try_from(numbers).unwrap() * 4];
    let bytes = if path.extension().is_some_and(|extension| extension == "onnx") {
        model(&Message::default().message(5, &tensor("w", 1, &[numbers], &data)))
    } else {
        safetensors(&[("w", "F32", &[numbers], data.len())])
    };
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn all_safetensors_files_except_variants_are_one_model() {
    let directory = tempfile::tempdir().unwrap();
    put(directory.path(), "model.safetensors", 10);
    put(directory.path(), "model.fp16.safetensors", 10);
    put(directory.path(), "adapter.safetensors", 3);
    put(directory.path(), "model.onnx", 999);
    let model = inspect(directory.path()).unwrap();
    assert_eq!((model.kind, model.tensors.parameters()), (ModelFormat::Safetensors, 13));
}

#[test]
fn model_onnx_is_preferred_and_other_files_are_combined() {
    let directory = tempfile::tempdir().unwrap();
    put(directory.path(), "encoder.onnx", 10);
    put(directory.path(), "decoder.onnx", 5);
    assert_eq!(inspect(directory.path()).unwrap().tensors.parameters(), 15);
    put(directory.path(), "model.onnx", 7);
    assert_eq!(inspect(directory.path()).unwrap().tensors.parameters(), 7);
}

#[test]
fn directories_of_a_pipeline_are_combined() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("model_index.json"), "{}").unwrap();
    put(directory.path(), "unet/diffusion.safetensors", 10);
    put(directory.path(), "vae/diffusion.safetensors", 2);
    put(directory.path(), ".cache/old.safetensors", 100);
    let model = inspect(directory.path()).unwrap();
    assert_eq!((model.tensors.parameters(), model.files.len()), (12, 2));
}

#[test]
fn a_directory_without_a_model_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("weights.bin"), [0; 64]).unwrap();
    assert!(matches!(inspect(directory.path()), Err(ModelError::NoModel { .. })));
    assert!(matches!(inspect(&directory.path().join("weights.bin")), Err(ModelError::Unknown { .. })));
    assert!(matches!(inspect(&directory.path().join("gone.onnx")), Err(ModelError::Read { .. })));
}

#[test]
fn files_are_detected_by_contents_if_the_name_is_ambiguous() {
    let directory = tempfile::tempdir().unwrap();
    put(directory.path(), "a.onnx", 4);
    put(directory.path(), "b.safetensors", 5);
    std::fs::rename(directory.path().join("a.onnx"), directory.path().join("one")).unwrap();
    std::fs::rename(directory.path().join("b.safetensors"), directory.path().join("two")).unwrap();
    assert_eq!(inspect(&directory.path().join("one")).unwrap().kind, ModelFormat::Onnx);
    assert_eq!(inspect(&directory.path().join("two")).unwrap().kind, ModelFormat::Safetensors);
}
