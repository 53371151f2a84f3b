//! Finds the interpreter of the user's environment.

use std::path::{Path, PathBuf};

use cudock_base::Environment;

/// The interpreter for a model: that of the active environment, of an environment next to a model that is Python code
/// or in `current`, the current directory, or the one on `PATH`.
///
/// Only the directory of the model and its parent are searched: others above it may belong to other users. Beside a model that
/// is data, an interpreter may have come with it.
pub(crate) fn find(model: &Path, current: Option<&Path>, environment: &Environment) -> Option<PathBuf> {
    let active = ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(|name| environment.path(name));
    let is_code = model.extension().is_some_and(|extension| extension == "py");
    let directories = model.ancestors().skip(1).take(if is_code { 2 } else { 0 }).chain(current);
    let beside = directories.flat_map(|directory| [".venv", "venv"].map(|name| directory.join(name)));
    let in_environments = active.chain(beside).map(|prefix| prefix.join("bin/python"));
    let on_path = environment.program_directories();
    let on_path =
        ["python3", "python"].into_iter().flat_map(|name| on_path.iter().map(move |path| path.join(name)));
    in_environments.chain(on_path).find(|python| python.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_active_environment_comes_first_then_one_beside_the_model_then_the_path() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        let text = |path: &str| at(path).to_str().unwrap().to_owned();
        let environment = Environment::of(
            "/",
            [("VIRTUAL_ENV", text("active")), ("CONDA_PREFIX", text("conda")), ("PATH", text("bin"))],
        );
        let found = || find(&at("project/models/model.py"), Some(&at("current")), &environment);
        assert_eq!(found(), None);
        // From the last to the first.
        let expected = [
            "bin/python",
            "bin/python3",
            "current/venv/bin/python",
            "current/.venv/bin/python",
            "project/.venv/bin/python",
            "project/models/.venv/bin/python",
            "conda/bin/python",
            "active/bin/python",
        ];
        for python in expected {
            std::fs::create_dir_all(at(python).parent().unwrap()).unwrap();
            std::fs::write(at(python), "").unwrap();
            assert_eq!(found(), Some(at(python)));
        }
    }

    #[test]
    fn environments_further_above_the_model_are_not_used() {
        let root = tempfile::tempdir().unwrap();
        let bin = root.path().join(".venv/bin");
        std::fs::create_dir_all(&bin).unwrap();
        std::fs::write(bin.join("python"), "").unwrap();
        let environment = Environment::of("/", [("PATH", "/nonexistent")]);
        assert_eq!(find(&root.path().join("a/b/model.py"), None, &environment), None);
        assert!(find(&root.path().join("a/model.py"), None, &environment).is_some());
    }

    #[test]
    fn an_environment_beside_a_model_that_is_data_is_not_used() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        for python in ["hub/.venv/bin/python", ".venv/bin/python"] {
            std::fs::create_dir_all(at(python).parent().unwrap()).unwrap();
            std::fs::write(at(python), "").unwrap();
        }
        let environment = Environment::of("/", [("PATH", "/none")]);
        for model in ["hub/net.pt", "hub/net", "hub"] {
            assert_eq!(find(&at(model), None, &environment), None, "{model}");
            assert_eq!(
                find(&at(model), Some(root.path()), &environment),
                Some(at(".venv/bin/python")),
                "{model}"
            );
        }
    }
}
