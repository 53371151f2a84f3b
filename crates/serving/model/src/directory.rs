//! Finds the model files in a directory.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::ModelError;
use crate::file::{self, has_extension};
use crate::{Model, onnx, safetensors};

/// A directory with more entries is not a model.
const MAX_ENTRIES: usize = 10_000;

/// The model in a directory: the files of an index, else all safetensors files, else `model.onnx` or all ONNX files. If
/// there are none, those in its subdirectories, as in pipelines of several models.
pub(crate) fn read(directory: &Path) -> Result<Model, ModelError> {
    let (files, directories) = entries(directory)?;
    if let Some(model) = from_files(&files)? {
        return Ok(model);
    }
    let parts = directories.iter().map(|inner| from_files(&entries(inner)?.0));
    let parts = parts.collect::<Result<Vec<_>, _>>()?.into_iter().flatten();
    parts.reduce(Model::combine).ok_or_else(|| ModelError::NoModel { path: directory.to_owned() })
}

/// Files and directories, sorted by name and without hidden ones.
fn entries(directory: &Path) -> Result<(Vec<PathBuf>, Vec<PathBuf>), ModelError> {
    let invalid = |source| ModelError::read(directory, source);
    let (mut files, mut directories) = (Vec::new(), Vec::new());
    for (number, entry) in fs::read_dir(directory).map_err(invalid)?.enumerate() {
        if number == MAX_ENTRIES {
            let problem = format!("directory has more than {MAX_ENTRIES} entries: pass the model file");
            return Err(ModelError::invalid(directory, problem));
        }
        let path = entry.map_err(invalid)?.path();
        if name(&path).starts_with('.') {
            continue;
        }
        if path.is_dir() { directories.push(path) } else { files.push(path) }
    }
    files.sort();
    directories.sort();
    Ok((files, directories))
}

fn from_files(files: &[PathBuf]) -> Result<Option<Model>, ModelError> {
    if let Some(index) = files.iter().find(|path| name(path).ends_with(".safetensors.index.json")) {
        return safetensors::read_index(index).map(Some);
    }
    let tensors: Vec<PathBuf> =
        files.iter().filter(|path| has_extension(path, "safetensors")).cloned().collect();
    if !tensors.is_empty() {
        return safetensors::read_files(&without_variants(&tensors)).map(Some);
    }
    let graphs: Vec<&PathBuf> = files.iter().filter(|path| has_extension(path, "onnx")).collect();
    let chosen = graphs.iter().find(|path| name(path) == "model.onnx");
    if let Some(only) = chosen.or(if let [only] = graphs.as_slice() { Some(only) } else { None }) {
        return file::read(only).map(Some);
    }
    let parts: Result<Vec<Model>, ModelError> =
        graphs.into_iter().map(|path| onnx::read_file(path, &cudock_mmap::map(path)?)).collect();
    Ok(parts?.into_iter().reduce(Model::combine))
}

/// `model.fp16.safetensors` next to `model.safetensors` is a variant of the same model.
fn without_variants(files: &[PathBuf]) -> Vec<PathBuf> {
    let names: Vec<String> = files.iter().map(|path| name(path)).collect();
    let is_variant = |path: &Path| {
        let own = name(path);
        let stem = own.strip_suffix(".safetensors").and_then(|stem| stem.rsplit_once('.'));
        stem.is_some_and(|(stem, _)| names.contains(&format!("{stem}.safetensors")))
    };
    files.iter().filter(|path| !is_variant(path)).cloned().collect()
}

fn name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase()).unwrap_or_default()
}
