//! Models that Python runs, detected by their names.

use std::fs::File;
use std::io::Read;
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
        || (!has_extension(path, "onnx") && begins_as_python_model(path))
}

/// Whether a file of any name begins as the files of PyTorch (a zip archive, or a pickle) or safetensors (the length of a header,
/// which is JSON) do. An ONNX file begins with the number of a field.
fn begins_as_python_model(path: &Path) -> bool {
    let mut start = [0; 9];
    let read = path.is_file() && File::open(path).is_ok_and(|mut file| file.read_exact(&mut start).is_ok());
    read && matches!(start, [b'P', b'K', 3, 4, ..] | [0x80, 2..=5, ..] | [_, _, _, _, _, 0, 0, 0, b'{'])
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
    fn models_without_a_known_extension_are_recognized_by_their_first_bytes() {
        let directory = tempfile::tempdir().unwrap();
        let is_python = |name: &str, bytes: &[u8]| {
            let path = directory.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            assert!(!is_model(&path), "{name}: it must be named");
            is_python_model(&path)
        };
        for bytes in [
            &b"PK\x03\x04 an archive"[..],
            b"\x80\x02}q\x00. and more",
            b"\x80\x04\x95 a pickle",
            b"\x40\x01\0\0\0\0\0\0{\"weight\"",
        ] {
            for name in ["my-model", "model.v2", "checkpoint.ckpt-best"] {
                assert!(is_python(name, bytes), "{name} {bytes:?}");
            }
        }
        for bytes in
            [&b""[..], b"PK", b"\x08\x07\x12\x07pytorch:", b"{\"a\": 1, \"b\": 2}", b"\x80\x06 unknown"]
        {
            assert!(!is_python("my-model", bytes), "{bytes:?}");
        }
        std::fs::write(directory.path().join("net.onnx"), b"PK\x03\x04 an archive").unwrap();
        assert!(!is_python_model(&directory.path().join("net.onnx")));
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
