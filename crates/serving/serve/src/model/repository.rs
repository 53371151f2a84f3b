//! Finds models in a directory.

use std::cmp::Ordering;
use std::fs;
use std::path::{Path, PathBuf};

use cudock_model::{is_model, is_pretrained, is_saved_model};

use crate::settings::ModelSource;

/// Name and version of a model.
pub(crate) type ModelId = (String, String);

/// A model file and the name under which it is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ModelFile {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) path: PathBuf,
    /// The directory of its name, where its settings may be; `None` for a file given by path and for `NAME.onnx`.
    pub(crate) directory: Option<PathBuf>,
}

impl ModelFile {
    /// Names and versions are parts of URLs, of lines of the log and of labels of metrics.
    fn new(
        name: &str,
        version: &str,
        path: PathBuf,
        directory: Option<&Path>,
    ) -> Result<Self, RepositoryError> {
        for name in [name, version] {
            if name.is_empty() || name.contains(char::is_control) {
                return Err(RepositoryError::Name { name: name.to_owned() });
            }
        }
        let directory = directory.map(Path::to_owned);
        Ok(Self { name: name.to_owned(), version: version.to_owned(), path, directory })
    }

    /// A file without a directory of its own.
    fn single(name: &str, path: PathBuf) -> Result<Self, RepositoryError> {
        Self::new(name, "1", path, None)
    }

    pub(crate) fn id(&self) -> ModelId {
        (self.name.clone(), self.version.clone())
    }

    /// Whether it is that version of that model.
    pub(crate) fn is(&self, name: &str, version: &str) -> bool {
        self.name == name && self.version == version
    }

    pub(crate) fn settings_file(&self) -> Option<PathBuf> {
        self.directory.as_ref().map(|directory| directory.join(SETTINGS_FILE))
    }
}

/// The settings file of one model, in the directory of its name.
const SETTINGS_FILE: &str = "cudock.toml";

/// The models in a directory, and the errors of entries that cannot be served.
#[derive(Debug, Default)]
pub(crate) struct RepositoryScan {
    pub(crate) models: Vec<ModelFile>,
    pub(crate) unreadable: Vec<RepositoryError>,
}

impl RepositoryScan {
    fn extend(&mut self, models: impl IntoIterator<Item = Result<ModelFile, RepositoryError>>) {
        for model in models {
            match model {
                Ok(model) => self.models.push(model),
                Err(error) => self.unreadable.push(error),
            }
        }
    }
}

/// The model directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RepositoryError {
    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error(
        "cannot serve a model as {name:?}: a name has no line breaks and other control characters, and is not empty"
    )]
    Name { name: String },
    #[error(
        "no model found in {}: expected NAME.onnx, NAME/model.onnx or NAME/VERSION/model.onnx, or with model.py, .pt and \
         other extensions of Python models",
        path.display()
    )]
    Empty { path: PathBuf },
}

/// Finds models, sorted by name and version, oldest first. An entry that cannot be read (`lost+found`, for example)
/// does not prevent the others from being served.
pub(crate) fn find_models(source: &ModelSource) -> Result<RepositoryScan, RepositoryError> {
    let directory = match source {
        ModelSource::File { name, file } => {
            let models = vec![ModelFile::single(name, file.clone())?];
            return Ok(RepositoryScan { models, ..RepositoryScan::default() });
        }
        ModelSource::Directory(directory) => directory,
    };
    let mut found = RepositoryScan::default();
    for entry in entries(directory)? {
        let Some(stem) = entry.file_stem().and_then(|stem| stem.to_str()) else { continue };
        if stem.starts_with('.') {
            continue;
        }
        if entry.is_dir() {
            let name = entry.file_name().and_then(|name| name.to_str()).unwrap_or(stem);
            match versions(&entry, name) {
                Ok(models) => found.extend(models),
                Err(error) => found.unreadable.push(error),
            }
        } else if is_model(&entry) {
            found.extend([ModelFile::single(stem, entry.clone())]);
        }
    }
    found.models.sort_by(|a, b| a.name.cmp(&b.name).then_with(|| compare_versions(&a.version, &b.version)));
    Ok(found)
}

fn versions(
    directory: &Path,
    name: &str,
) -> Result<Vec<Result<ModelFile, RepositoryError>>, RepositoryError> {
    let model = |version: &str, path: PathBuf| ModelFile::new(name, version, path, Some(directory));
    if let Some(path) = model_in(directory)? {
        return Ok(vec![model("1", path)]);
    }
    let mut found = Vec::new();
    for entry in entries(directory)? {
        let Some(version) = entry.file_name().and_then(|name| name.to_str()) else { continue };
        if entry.is_dir() && version.starts_with(|first: char| first.is_ascii_digit()) {
            found.extend(model_in(&entry)?.map(|path| model(version, path)));
        }
    }
    Ok(found)
}

/// `model.onnx`, `model.py`, the only model of a directory, or the directory itself if it is a `SavedModel` or a pretrained
/// model.
fn model_in(directory: &Path) -> Result<Option<PathBuf>, RepositoryError> {
    if is_saved_model(directory) {
        return Ok(Some(directory.to_owned()));
    }
    let usual = ["model.onnx", "model.py"].map(|name| directory.join(name));
    if let Some(usual) = usual.into_iter().find(|path| path.is_file()) {
        return Ok(Some(usual));
    }
    if is_pretrained(directory) {
        return Ok(Some(directory.to_owned()));
    }
    let mut models = entries(directory)?.into_iter().filter(|entry| entry.is_file() && is_model(entry));
    Ok(models.next().filter(|_| models.next().is_none()))
}

fn entries(directory: &Path) -> Result<Vec<PathBuf>, RepositoryError> {
    let read =
        || fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>();
    let mut entries =
        read().map_err(|source| RepositoryError::Read { path: directory.to_owned(), source })?;
    entries.sort();
    Ok(entries)
}

/// Versions are compared as numbers if possible: 10 comes after 9.
pub(crate) fn compare_versions(a: &str, b: &str) -> Ordering {
    match (a.parse::<u64>(), b.parse::<u64>()) {
        (Ok(a), Ok(b)) => a.cmp(&b),
        _ => a.cmp(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[&str]) -> Vec<String> {
        let directory = tempfile::tempdir().unwrap();
        for file in files {
            let path = directory.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, b"").unwrap();
        }
        let found = find_models(&ModelSource::Directory(directory.path().to_owned())).unwrap_or_default();
        found.models.into_iter().map(|model| format!("{}:{}", model.name, model.version)).collect()
    }

    #[test]
    fn all_three_layouts_are_found() {
        let many = ["many/1/model.onnx", "many/10/model.onnx", "many/9/net.onnx"];
        let files = [&many[..], &["flat.onnx", "one/model.onnx", "x.txt"]].concat();
        assert_eq!(found(&files), ["flat:1", "many:1", "many:9", "many:10", "one:1"]);
    }

    #[test]
    fn what_has_line_breaks_in_its_name_is_reported_and_not_served() {
        let directory = tempfile::tempdir().unwrap();
        for file in
            ["a\nb.onnx", "a\x1b[31m/model.onnx", "good/1\r2/model.onnx", "good/3/model.onnx", "ö ü.onnx"]
        {
            let path = directory.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, b"").unwrap();
        }
        let found = find_models(&ModelSource::Directory(directory.path().to_owned())).unwrap();
        let names: Vec<_> = found.models.iter().map(|model| (&*model.name, &*model.version)).collect();
        assert_eq!(names, [("good", "3"), ("ö ü", "1")]);
        let unreadable: Vec<_> = found.unreadable.iter().map(ToString::to_string).collect();
        assert_eq!(unreadable.len(), 3, "{unreadable:?}");
        assert!(unreadable.iter().all(|text| !text.contains(char::is_control)), "{unreadable:?}");
        let file = ModelSource::File { name: "a\nb".to_owned(), file: "m.onnx".into() };
        assert!(matches!(find_models(&file), Err(RepositoryError::Name { .. })));
    }

    #[test]
    fn models_of_python_are_found_and_code_and_weights_are_not_taken_for_them() {
        let files = [
            "flat.pt2",
            "helpers.py",
            "scorer/model.py",
            "scorer/weights.pt",
            "saved/2/saved_model.pb",
            "saved/2/variables/variables.index",
            "net/net.py",
            "net/weights.safetensors",
        ];
        assert_eq!(found(&files), ["flat:1", "net:1", "saved:2", "scorer:1"]);
    }

    #[test]
    fn hidden_directories_empty_versions_and_two_models_in_one_directory_are_skipped() {
        for files in
            [&[".git/model.onnx", "a/1/readme.md", "b/latest/model.onnx"][..], &["a/1/x.onnx", "a/1/y.onnx"]]
        {
            assert_eq!(found(files), Vec::<String>::new());
        }
    }
}
