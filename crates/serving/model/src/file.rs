//! Reads a model of one file.

use std::path::Path;

use crate::error::ModelError;
use crate::{Model, onnx, safetensors};

/// Reads one file, detected by name, or by contents if the name is ambiguous.
pub(crate) fn read(path: &Path) -> Result<Model, ModelError> {
    let name = path.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    if name.ends_with(".safetensors.index.json") {
        return safetensors::read_index(path);
    }
    let map = cudock_mmap::map(path).map_err(ModelError::from)?;
    let is_onnx = has_extension(path, "onnx");
    if has_extension(path, "safetensors") || (!is_onnx && safetensors::is_safetensors(&map)) {
        return safetensors::read_file(path, &map);
    }
    if is_onnx || onnx::is_onnx(&map) {
        return onnx::read_file(path, &map);
    }
    Err(ModelError::Unknown { path: path.to_owned() })
}

pub(crate) fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|own| own.eq_ignore_ascii_case(extension))
}
