//! Locates the models to serve and their `cudock.toml`.

use std::path::{Path, PathBuf};

use cudock_base::text::error_chain;
use cudock_model::{ForeignFormat, foreign_format, is_pretrained, is_python_model, is_saved_model};
use cudock_project::{FILE_NAME, Manifest, Project, ServeOptions};

use super::SettingsError;
use crate::model::find_models;

#[derive(Clone, Debug)]
pub enum ModelSource {
    /// One file, or the directory of a `SavedModel`, served under this name.
    File { name: String, file: PathBuf },
    /// A directory with `NAME.onnx`, `NAME/model.onnx` or `NAME/VERSION/model.onnx`, and models of Python likewise.
    Directory(PathBuf),
}

impl ModelSource {
    /// Whether all models are Python's, so that ONNX Runtime is not needed.
    pub fn is_python(&self) -> bool {
        let models = find_models(self).map(|found| found.models).unwrap_or_default();
        !models.is_empty() && models.iter().all(|model| is_python_model(&model.path))
    }
}

/// Returns the models at a path, and the options in its `cudock.toml`. The path is a model file, a project or a
/// directory of models; `name` replaces the name of a single model.
pub fn locate_models(path: &Path, name: Option<&str>) -> Result<(ModelSource, ServeOptions), SettingsError> {
    check_format(path)?;
    let name_or = |default: String| name.map_or(default, str::to_owned);
    let is_project_file = path.file_name().is_some_and(|name| name == FILE_NAME);
    // A directory with a model of Python in it is that model.
    let file = if path.join("model.py").is_file() { path.join("model.py") } else { path.to_owned() };
    let is_project = is_project_file || path.join(FILE_NAME).is_file();
    if !is_project && is_model_path(&file) {
        let full = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        // A directory of a model may have a dot in its name: all-MiniLM-L6-v2.1.
        let stem = if is_pretrained(&file) { full.file_name() } else { full.file_stem() };
        let stem = stem.unwrap_or_default().to_string_lossy().into_owned();
        let options = options_beside(&file)?;
        return Ok((ModelSource::File { name: name_or(stem), file }, options));
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
    let model = project.model();
    model.as_deref().map_or(Ok(()), check_format)?;
    let source = match model {
        Some(file) if is_model_path(&file) => ModelSource::File { name: name_or(project.name()), file },
        Some(file) if file.is_dir() => ModelSource::Directory(file),
        Some(model) => return Err(SettingsError::ModelNotFound { model, project_file }),
        None if is_model_path(&file) => ModelSource::File { name: name_or(project.name()), file },
        None => ModelSource::Directory(project.directory),
    };
    Ok((source, options))
}

/// What the `cudock.toml` beside a model file says of the model, unless that is about another model. Whoever wrote the model may have
/// written it: it says what the tensors are, and neither what runs nor what is read elsewhere.
fn options_beside(model: &Path) -> Result<ServeOptions, SettingsError> {
    let directory = model.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let project_file = directory.join(FILE_NAME);
    if model.is_dir() || !project_file.is_file() {
        return Ok(ServeOptions::default());
    }
    let project = Project::read(&project_file)?;
    let is_same = |other: PathBuf| match (other.canonicalize(), model.canonicalize()) {
        (Ok(other), Ok(model)) => other == model,
        _ => false,
    };
    if project.model().is_some_and(|other| !is_same(other)) {
        return Ok(ServeOptions::default());
    }
    let options = project.manifest.serve.clone().descriptive().with_paths_in(directory);
    let files = options.labels.iter().chain(options.text.iter().map(|text| &text.tokenizer));
    match files.into_iter().find(|file| !is_inside(file, directory)) {
        Some(file) => Err(SettingsError::OutsideDirectory { file: file.clone(), project_file }),
        None => Ok(options),
    }
}

/// Whether a file is in a directory, also by what its links lead to. One that does not exist is reported by what reads it.
fn is_inside(file: &Path, directory: &Path) -> bool {
    match (file.canonicalize(), directory.canonicalize()) {
        (Ok(file), Ok(directory)) => file.starts_with(directory),
        _ => true,
    }
}

/// Whether a path is one model: a file, or a directory that is one.
fn is_model_path(path: &Path) -> bool {
    path.is_file() || is_saved_model(path) || is_pretrained(path)
}

fn check_format(model: &Path) -> Result<(), SettingsError> {
    foreign_format(model).map_or(Ok(()), |ForeignFormat { name, export }| {
        Err(SettingsError::ForeignFormat { path: model.to_owned(), name, export })
    })
}

/// The options in a file, as if it were the `cudock.toml` of what is served at `path`.
pub fn options_in(file: &Path, path: &Path) -> Result<ServeOptions, SettingsError> {
    let directory = if path.is_dir() { path } else { path.parent().unwrap_or(Path::new("")) };
    Ok(Project::read(file)?.manifest.serve.with_paths_in(directory))
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
    fn an_interpreter_is_relative_to_its_file_or_on_the_path() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        std::fs::write(path.join("model.py"), "").unwrap();
        for (python, expected) in
            [(".venv/bin/python", path.join(".venv/bin/python")), ("python3.12", PathBuf::from("python3.12"))]
        {
            std::fs::write(path.join(FILE_NAME), format!("[serve]\npython = '{python}'")).unwrap();
            assert_eq!(locate_models(path, None).unwrap().1.python, Some(expected));
        }
    }

    #[test]
    fn options_of_another_file_have_the_paths_of_the_project() {
        let directory = tempfile::tempdir().unwrap();
        let project_file = directory.path().join(FILE_NAME);
        std::fs::write(&project_file, "").unwrap();
        let other = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(other.path(), "[serve]\nlabels = 'labels.txt'\nlanes = 3").unwrap();
        for path in [directory.path(), &project_file] {
            let options = options_in(other.path(), path).unwrap();
            assert_eq!((options.labels, options.lanes), (Some(directory.path().join("labels.txt")), Some(3)));
        }
        assert!(options_in(&directory.path().join("missing"), directory.path()).is_err());
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
    }

    #[test]
    fn a_file_beside_a_model_describes_it_and_does_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        for name in ["models/net.pt", "models/other.pt", "models/labels.txt", "secret.txt"] {
            std::fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            std::fs::write(at(name), "").unwrap();
        }
        let options_of = |model: &str, text: &str| {
            std::fs::write(at("models/cudock.toml"), text).unwrap();
            locate_models(&at(model), None).map(|(_, options)| options)
        };
        let text = "[workload]\nmodel = 'net.pt'\n[serve]\nlabels = 'labels.txt'\ntop = 3\npython = '/evil'\nclass = 'evil.py:E'\n\
                    lanes = 4\n[[serve.inputs]]\nname = 'x'\ndtype = 'float32'\nshape = [-1, 2]";
        let options = options_of("models/net.pt", text).unwrap();
        assert_eq!((options.labels.as_deref(), options.top), (Some(&*at("models/labels.txt")), Some(3)));
        assert_eq!(options.inputs.as_ref().map(Vec::len), Some(1));
        assert_eq!((&options.python, &options.class, options.lanes), (&None, &None, None));
        // It is about another model.
        assert_eq!(options_of("models/other.pt", text).unwrap(), ServeOptions::default());
        assert_eq!(options_of("models/other.pt", "[serve]\ntop = 2").unwrap().top, Some(2));
        std::os::unix::fs::symlink("../secret.txt", at("models/link.txt")).unwrap();
        for outside in ["../secret.txt", "link.txt"] {
            let refused = options_of("models/net.pt", &format!("[serve]\nlabels = '{outside}'"));
            assert!(matches!(refused, Err(SettingsError::OutsideDirectory { .. })), "{outside}: {refused:?}");
        }
        let invalid = options_of("models/net.pt", "[serve]\nunknown = 1");
        assert!(matches!(invalid, Err(SettingsError::Project(_))), "{invalid:?}");
    }

    #[test]
    fn keras_files_are_refused_before_anything_reads_them() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["model.keras", "model.h5"] {
            let model = directory.path().join(name);
            let project = format!("[workload]\nmodel = '{name}'");
            std::fs::write(directory.path().join(FILE_NAME), project).unwrap();
            for path in [&model, directory.path()] {
                let refused = locate_models(path, None);
                assert!(matches!(refused, Err(SettingsError::ForeignFormat { .. })), "{name}: {refused:?}");
            }
        }
    }

    #[test]
    fn a_directory_with_a_python_model_is_that_model() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        for name in ["scorer/model.py", "saved/saved_model.pb", "project/model.py", "project/cudock.toml"] {
            std::fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            std::fs::write(at(name), "").unwrap();
        }
        for (path, model) in
            [("scorer", "scorer/model.py"), ("saved", "saved"), ("project", "project/model.py")]
        {
            let (source, _) = locate_models(&at(path), None).unwrap();
            assert!(source.is_python());
            let ModelSource::File { name, file } = source else { panic!("{source:?}") };
            assert_eq!((name.as_str(), file), (path, at(model)));
        }
    }
}
