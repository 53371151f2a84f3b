//! Locates the models to serve and their `cudock.toml`.

use std::path::{Path, PathBuf};

use cudock_base::text::error_chain;
use cudock_model::{ForeignFormat, foreign_format};
use cudock_project::{FILE_NAME, Manifest, Project, ServeOptions};

use super::SettingsError;

#[derive(Clone, Debug)]
pub enum ModelSource {
    /// One file, served under this name.
    File { name: String, file: PathBuf },
    /// A directory with `NAME.onnx`, `NAME/model.onnx` or `NAME/VERSION/model.onnx`.
    Directory(PathBuf),
}

/// Returns the models at a path, and the options in its `cudock.toml`. The path is a model file, a project or a
/// directory of models; `name` replaces the name of a single model.
pub fn locate_models(path: &Path, name: Option<&str>) -> Result<(ModelSource, ServeOptions), SettingsError> {
    if let Some(ForeignFormat { name, export }) = foreign_format(path) {
        return Err(SettingsError::ForeignFormat { path: path.to_owned(), name, export });
    }
    let name_or = |default: String| name.map_or(default, str::to_owned);
    let is_project_file = path.file_name().is_some_and(|name| name == FILE_NAME);
    if path.is_file() && !is_project_file {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let source = ModelSource::File { name: name_or(stem), file: path.to_owned() };
        return Ok((source, ServeOptions::default()));
    }
    if !path.exists() {
        return Err(SettingsError::NotFound(path.to_owned()));
    }
    let project_file = if is_project_file { path.to_owned() } else { path.join(FILE_NAME) };
    if !project_file.is_file() {
        return Ok((ModelSource::Directory(path.to_owned()), ServeOptions::default()));
    }
    let project = Project::read(&project_file)?;
    let options = project.manifest.serve.clone().with_paths_in(&project.directory);
    let source = match project.model() {
        Some(file) if file.is_dir() => ModelSource::Directory(file),
        Some(file) if file.is_file() => ModelSource::File { name: name_or(project.name()), file },
        Some(model) => return Err(SettingsError::ModelNotFound { model, project_file }),
        None => ModelSource::Directory(project.directory),
    };
    Ok((source, options))
}

/// The options in the `cudock.toml` of one model of several. The error is shown to users.
pub(super) fn model_options(path: &Path) -> Result<ServeOptions, String> {
    let Project { mut manifest, directory, .. } = Project::read(path).map_err(|error| error_chain(&error))?;
    let options = std::mem::take(&mut manifest.serve).with_paths_in(&directory);
    if manifest != Manifest::default() {
        return Err(format!("{}: only [serve] applies to one model of several", path.display()));
    }
    match options.server_key() {
        Some(key) => Err(format!("{}: `{key}` is a setting of the whole server", path.display())),
        None => Ok(options),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_names_its_model() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let project_file = path.join(FILE_NAME);
        std::fs::write(path.join("m.onnx"), "").unwrap();
        let project = "name = 'p'\n[workload]\nmodel = 'm.onnx'\n[serve]\nlanes = 2";
        std::fs::write(&project_file, project).unwrap();
        for (name, expected) in [(None, "p"), (Some("other"), "other")] {
            for named in [path, &project_file] {
                let (source, options) = locate_models(named, name).unwrap();
                let ModelSource::File { name, file } = source else { panic!("{source:?}") };
                assert_eq!((name.as_str(), file, options.lanes), (expected, path.join("m.onnx"), Some(2)));
            }
        }
        std::fs::write(&project_file, "[workload]\nmodel = 'missing.onnx'").unwrap();
        assert!(matches!(locate_models(path, None), Err(SettingsError::ModelNotFound { .. })));
    }

    #[test]
    fn a_path_without_a_project_is_a_model_or_a_directory_of_models() {
        let directory = tempfile::tempdir().unwrap();
        let model = directory.path().join("digits.onnx");
        std::fs::write(&model, "").unwrap();
        let (source, _) = locate_models(&model, None).unwrap();
        assert!(matches!(source, ModelSource::File { name, .. } if name == "digits"));
        let (source, _) = locate_models(directory.path(), None).unwrap();
        assert!(matches!(source, ModelSource::Directory(path) if path == directory.path()));
        let missing = locate_models(&directory.path().join("missing"), None);
        assert!(matches!(missing, Err(SettingsError::NotFound(_))));
        let torch = locate_models(Path::new("model.pt"), None);
        assert!(matches!(torch, Err(SettingsError::ForeignFormat { .. })));
    }
}
