//! Models that Python runs, detected by their names.

use std::path::{Path, PathBuf};

use crate::file::has_extension;

/// Extensions of files that are models.
const OWN: [&str; 9] = ["pt", "pth", "pt2", "torchscript", "safetensors", "pkl", "pickle", "joblib", "ubj"];
/// Extensions that other files have, too: such a model must be named.
const SHARED: [&str; 3] = ["py", "json", "bin"];

/// Whether Python runs the model at a path.
pub fn is_python_model(path: &Path) -> bool {
    is_saved_model(path)
        || is_pretrained(path)
        || OWN.iter().chain(&SHARED).any(|extension| has_extension(path, extension))
}

/// Whether a file or directory is a model for certain.
pub fn is_model(path: &Path) -> bool {
    let is_file =
        || OWN.iter().chain(&["onnx"]).any(|extension| has_extension(path, extension)) && path.is_file();
    is_saved_model(path) || is_pretrained(path) || is_file()
}

/// Whether it is the directory of a TensorFlow `SavedModel`.
pub fn is_saved_model(path: &Path) -> bool {
    path.join("saved_model.pb").is_file()
}

/// Whether it is the directory of a model of Hugging Face's transformers: its configuration and its weights.
pub fn is_pretrained(path: &Path) -> bool {
    let is_weights = |file: &PathBuf| has_extension(file, "safetensors") || has_extension(file, "bin");
    path.join("config.json").is_file() && entries(path).iter().any(is_weights)
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
}

/// The other files of a model that Python runs: the variables of a `SavedModel`, the files of a pretrained model; the code
/// next to other models.
pub fn python_files(path: &Path) -> Vec<PathBuf> {
    let mut files = if is_saved_model(path) {
        [entries(path), entries(&path.join("variables"))].concat()
    } else if is_pretrained(path) {
        entries(path)
    } else {
        let beside = entries(path.parent().unwrap_or(path));
        beside.into_iter().filter(|file| has_extension(file, "py") && file != path).collect()
    };
    files.sort();
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_recognized_by_their_names() {
        let directory = tempfile::tempdir().unwrap();
        let put = |name: &str| {
            let path = directory.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "").unwrap();
            path
        };
        // Whether Python runs it, and whether it is a model without being named.
        let files = [
            ("net.onnx", false, true),
            ("net.PT2", true, true),
            ("net.safetensors", true, true),
            ("model.py", true, false),
            ("booster.json", true, false),
            ("readme.md", false, false),
        ];
        for (name, is_python, is_certain) in files {
            let path = put(name);
            assert_eq!((is_python_model(&path), is_model(&path)), (is_python, is_certain), "{name}");
        }
        for weights in ["hub/model.safetensors", "old/pytorch_model.bin"] {
            let directory = put(weights).parent().unwrap().to_owned();
            assert!(!is_pretrained(&directory), "{weights}");
            std::fs::write(directory.join("config.json"), "{}").unwrap();
            assert!(
                is_pretrained(&directory) && is_python_model(&directory) && is_model(&directory),
                "{weights}"
            );
        }
        put("saved/saved_model.pb");
        let saved = directory.path().join("saved");
        assert!(is_python_model(&saved) && is_model(&saved) && !is_model(directory.path()));
    }

    #[test]
    fn a_model_consists_of_the_code_beside_it_or_of_its_variables() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::create_dir(at("variables")).unwrap();
        for name in ["net.pt", "net.py", "notes.txt", "variables/variables.index"] {
            std::fs::write(at(name), "").unwrap();
        }
        assert_eq!(python_files(&at("net.pt")), [at("net.py")]);
        assert!(python_files(&at("net.py")).is_empty());
        std::fs::write(at("saved_model.pb"), "").unwrap();
        assert!(python_files(directory.path()).contains(&at("variables/variables.index")));
    }
}
