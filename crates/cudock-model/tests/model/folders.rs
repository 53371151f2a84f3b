//! Folders: which files are the model.

use std::path::Path;

use cudock_model::{FileKind, ModelError, inspect};

use crate::write::{Message, model, safetensors, tensor};

fn put(folder: &Path, name: &str, numbers: u64) {
    let path = folder.join(name);
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
fn all_safetensors_files_are_one_model_but_not_its_variants() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), "model.safetensors", 10);
    put(folder.path(), "model.fp16.safetensors", 10);
    put(folder.path(), "adapter.safetensors", 3);
    put(folder.path(), "model.onnx", 999);
    let model = inspect(folder.path()).unwrap();
    assert_eq!((model.kind, model.tensors.parameters()), (FileKind::Safetensors, 13));
}

#[test]
fn model_onnx_stands_for_its_folder_and_others_are_parts() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), "encoder.onnx", 10);
    put(folder.path(), "decoder.onnx", 5);
    assert_eq!(inspect(folder.path()).unwrap().tensors.parameters(), 15);
    put(folder.path(), "model.onnx", 7);
    assert_eq!(inspect(folder.path()).unwrap().tensors.parameters(), 7);
}

#[test]
fn folders_of_a_pipeline_are_loaded_together() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("model_index.json"), "{}").unwrap();
    put(folder.path(), "unet/diffusion.safetensors", 10);
    put(folder.path(), "vae/diffusion.safetensors", 2);
    put(folder.path(), ".cache/old.safetensors", 100);
    let model = inspect(folder.path()).unwrap();
    assert_eq!((model.tensors.parameters(), model.files.len()), (12, 2));
}

#[test]
fn a_folder_without_a_model_says_so() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("weights.bin"), [0; 64]).unwrap();
    assert!(matches!(inspect(folder.path()), Err(ModelError::NoModel { .. })));
    assert!(matches!(inspect(&folder.path().join("weights.bin")), Err(ModelError::Unknown { .. })));
    assert!(matches!(inspect(&folder.path().join("gone.onnx")), Err(ModelError::Read { .. })));
}

#[test]
fn a_file_is_told_by_its_bytes_where_its_name_does_not_tell() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), "a.onnx", 4);
    put(folder.path(), "b.safetensors", 5);
    std::fs::rename(folder.path().join("a.onnx"), folder.path().join("one")).unwrap();
    std::fs::rename(folder.path().join("b.safetensors"), folder.path().join("two")).unwrap();
    assert_eq!(inspect(&folder.path().join("one")).unwrap().kind, FileKind::Onnx);
    assert_eq!(inspect(&folder.path().join("two")).unwrap().kind, FileKind::Safetensors);
}
