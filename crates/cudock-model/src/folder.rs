//! A folder of model files.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::ModelError;
use crate::{Model, file, has_extension, onnx, safetensors};

/// Folders with more entries than this are no folders of a model.
const MOST_ENTRIES: usize = 10_000;

/// The model in a folder: the files an index names, else all safetensors files, else `model.onnx` or all ONNX files;
/// and where the folder has none, those of the folders in it, as pipelines of several models have them.
pub(crate) fn read(folder: &Path) -> Result<Model, ModelError> {
    let (files, folders) = entries(folder)?;
    if let Some(model) = of_files(&files)? {
        return Ok(model);
    }
    let mut whole: Option<Model> = None;
    for inner in folders {
        let Some(part) = of_files(&entries(&inner)?.0)? else { continue };
        whole = Some(match whole {
            None => part,
            Some(whole) => joined(whole, part),
        });
    }
    whole.ok_or_else(|| ModelError::NoModel { path: folder.to_owned() })
}

/// Files and folders, in the order of their names; hidden ones are left out.
fn entries(folder: &Path) -> Result<(Vec<PathBuf>, Vec<PathBuf>), ModelError> {
    let wrong = |source| ModelError::read(folder, source);
    let (mut files, mut folders) = (Vec::new(), Vec::new());
    for (number, entry) in fs::read_dir(folder).map_err(wrong)?.enumerate() {
        if number == MOST_ENTRIES {
            let problem = format!("it has more than {MOST_ENTRIES} entries: name the model file");
            return Err(ModelError::broken(folder, problem));
        }
        let path = entry.map_err(wrong)?.path();
        if name(&path).starts_with('.') {
            continue;
        }
        if path.is_dir() { folders.push(path) } else { files.push(path) }
    }
    files.sort();
    folders.sort();
    Ok((files, folders))
}

fn of_files(files: &[PathBuf]) -> Result<Option<Model>, ModelError> {
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
        return file(only).map(Some);
    }
    let parts: Result<Vec<Model>, ModelError> =
        graphs.into_iter().map(|path| onnx::read_file(path, &cudock_map::map(path)?)).collect();
    Ok(parts?.into_iter().reduce(joined))
}

/// `model.fp16.safetensors` beside `model.safetensors` is the same model again.
fn without_variants(files: &[PathBuf]) -> Vec<PathBuf> {
    let names: Vec<String> = files.iter().map(|path| name(path)).collect();
    let is_variant = |path: &Path| {
        let own = name(path);
        let stem = own.strip_suffix(".safetensors").and_then(|stem| stem.rsplit_once('.'));
        stem.is_some_and(|(stem, _)| names.contains(&format!("{stem}.safetensors")))
    };
    files.iter().filter(|path| !is_variant(path)).cloned().collect()
}

/// Two models that are loaded together.
fn joined(mut one: Model, other: Model) -> Model {
    one.files.extend(other.files);
    one.on_disk = one.on_disk.saturating_add(other.on_disk);
    one.tensors.merge(other.tensors);
    one.activations = match (one.activations, other.activations) {
        (Some(one), Some(other)) => Some(one.beside(other)),
        _ => None,
    };
    one
}

fn name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase()).unwrap_or_default()
}
