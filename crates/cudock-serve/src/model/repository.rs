//! Models in a folder.

use std::cmp::Ordering;
use std::fs;
use std::path::{Path, PathBuf};

use crate::settings::ModelSource;

/// A model file and what it is served as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoundModel {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) file: PathBuf,
    /// The directory of its name, where its settings may be; none for a file that was named, and for `NAME.onnx`.
    pub(crate) directory: Option<PathBuf>,
}

impl FoundModel {
    /// Where settings of this model alone are read from, if it has any.
    pub(crate) fn settings_file(&self) -> Option<PathBuf> {
        self.directory.as_ref().map(|directory| directory.join(SETTINGS))
    }
}

/// The settings of one model, in the directory of its name.
const SETTINGS: &str = "cudock.toml";

/// What a directory held, and which directories in it cannot be read.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) models: Vec<FoundModel>,
    pub(crate) unreadable: Vec<RepositoryError>,
}

/// A folder models cannot be taken from.
#[derive(Debug, thiserror::Error)]
pub enum RepositoryError {
    /// It cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The folder.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// It holds no model.
    #[error(
        "no model in {}: looked for NAME.onnx, NAME/model.onnx and NAME/VERSION/model.onnx",
        path.display()
    )]
    Empty {
        /// The folder.
        path: PathBuf,
    },
}

/// The models at a place, by name and version, oldest first. An entry that cannot be read (`lost+found`, say) does not
/// keep the others from being served.
pub(crate) fn find(source: &ModelSource) -> Result<Found, RepositoryError> {
    let folder = match source {
        ModelSource::File { name, file } => {
            let model = FoundModel {
                name: name.clone(),
                version: "1".to_owned(),
                file: file.clone(),
                directory: None,
            };
            return Ok(Found { models: vec![model], ..Found::default() });
        }
        ModelSource::Folder(folder) => folder,
    };
    let mut found = Found::default();
    for entry in entries(folder)? {
        let Some(stem) = entry.file_stem().and_then(|stem| stem.to_str()) else { continue };
        if stem.starts_with('.') {
            continue;
        }
        if entry.is_dir() {
            let name = entry.file_name().and_then(|name| name.to_str()).unwrap_or(stem);
            match versions(&entry, name) {
                Ok(models) => found.models.extend(models),
                Err(error) => found.unreadable.push(error),
            }
        } else if is_model(&entry) {
            found.models.push(FoundModel {
                name: stem.to_owned(),
                version: "1".to_owned(),
                file: entry,
                directory: None,
            });
        }
    }
    found.models.sort_by(|a, b| a.name.cmp(&b.name).then_with(|| by_version(&a.version, &b.version)));
    Ok(found)
}

fn versions(folder: &Path, name: &str) -> Result<Vec<FoundModel>, RepositoryError> {
    let mut found = Vec::new();
    let model = |version: &str, file: PathBuf| FoundModel {
        name: name.to_owned(),
        version: version.to_owned(),
        file,
        directory: Some(folder.to_owned()),
    };
    if let Some(file) = model_in(folder)? {
        found.push(model("1", file));
        return Ok(found);
    }
    for entry in entries(folder)? {
        let Some(version) = entry.file_name().and_then(|name| name.to_str()) else { continue };
        if entry.is_dir() && version.bytes().next().is_some_and(|first| first.is_ascii_digit()) {
            found.extend(model_in(&entry)?.map(|file| model(version, file)));
        }
    }
    Ok(found)
}

/// `model.onnx`, or the only model of a folder.
fn model_in(folder: &Path) -> Result<Option<PathBuf>, RepositoryError> {
    let usual = folder.join("model.onnx");
    if usual.is_file() {
        return Ok(Some(usual));
    }
    let mut models = entries(folder)?.into_iter().filter(|entry| is_model(entry));
    Ok(models.next().filter(|_| models.next().is_none()))
}

fn is_model(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "onnx") && path.is_file()
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, RepositoryError> {
    let wrong = |source| RepositoryError::Read { path: folder.to_owned(), source };
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder).map_err(wrong)? {
        entries.push(entry.map_err(wrong)?.path());
    }
    entries.sort();
    Ok(entries)
}

/// Versions are numbers where they can be: 10 comes after 9.
pub(crate) fn by_version(a: &str, b: &str) -> Ordering {
    match (a.parse::<u64>(), b.parse::<u64>()) {
        (Ok(a), Ok(b)) => a.cmp(&b),
        _ => a.cmp(b),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use super::*;

    fn found(files: &[&str]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, b"").unwrap();
        }
        let found = find(&ModelSource::Folder(folder.path().to_owned())).unwrap_or_default();
        found.models.into_iter().map(|model| format!("{}:{}", model.name, model.version)).collect()
    }

    #[test]
    fn the_three_layouts_are_found_side_by_side() {
        assert_eq!(
            found(&[
                "flat.onnx",
                "one/model.onnx",
                "many/1/model.onnx",
                "many/10/model.onnx",
                "many/9/net.onnx",
                "x.txt"
            ]),
            ["flat:1", "many:1", "many:9", "many:10", "one:1"]
        );
    }

    #[test]
    fn hidden_folders_and_empty_versions_are_no_models() {
        assert_eq!(found(&[".git/model.onnx", "a/1/readme.md", "b/latest/model.onnx"]), Vec::<String>::new());
    }

    #[test]
    fn a_folder_with_two_models_of_other_names_does_not_guess() {
        assert_eq!(found(&["a/1/x.onnx", "a/1/y.onnx"]), Vec::<String>::new());
    }
}
