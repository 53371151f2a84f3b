//! Environment variables and system paths as plain data, so that a test can pass its own.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

/// The directory of everything cudock caches.
pub const CUDOCK_CACHE: &str = "CUDOCK_CACHE";

/// The directory of what must outlive the cache, such as the journal of deployments.
pub const CUDOCK_STATE: &str = "CUDOCK_STATE";

/// Environment variables, and the root of the file system that holds the system's files.
///
/// A variable that is set to nothing counts as unset. It prints without values, which may be secret.
#[derive(Clone)]
pub struct Environment {
    variables: BTreeMap<OsString, OsString>,
    root: PathBuf,
}

impl Environment {
    pub fn of_process() -> Self {
        Self { variables: std::env::vars_os().collect(), root: PathBuf::from("/") }
    }

    /// An environment with these variables only, whose system files are below `root`.
    pub fn of<K: Into<OsString>, V: Into<OsString>>(
        root: impl Into<PathBuf>,
        variables: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        let variables = variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Self { variables, root: root.into() }
    }

    /// The value of a variable, if it is set to something.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(OsStr::new(name)).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.get(name).map(PathBuf::from)
    }

    pub fn home(&self) -> Option<PathBuf> {
        self.path("HOME")
    }

    /// The directory of the user's configuration: `$XDG_CONFIG_HOME`, else `~/.config`.
    pub fn config_home(&self) -> Option<PathBuf> {
        self.absolute("XDG_CONFIG_HOME").or_else(|| Some(self.home()?.join(".config")))
    }

    /// The directory of the user's sockets and short-lived files: `$XDG_RUNTIME_DIR`.
    pub fn runtime_dir(&self) -> Option<PathBuf> {
        self.absolute("XDG_RUNTIME_DIR")
    }

    /// cudock's cache: `$CUDOCK_CACHE`, else `$XDG_CACHE_HOME/cudock`, else `~/.cache/cudock`.
    pub fn cache_directory(&self) -> Option<PathBuf> {
        let cache_home = || self.absolute("XDG_CACHE_HOME").or_else(|| Some(self.home()?.join(".cache")));
        self.path(CUDOCK_CACHE).or_else(|| Some(cache_home()?.join("cudock")))
    }

    /// cudock's state: `$CUDOCK_STATE`, else `$XDG_STATE_HOME/cudock`, else `~/.local/state/cudock`.
    pub fn state_directory(&self) -> Option<PathBuf> {
        let state_home =
            || self.absolute("XDG_STATE_HOME").or_else(|| Some(self.home()?.join(".local/state")));
        self.path(CUDOCK_STATE).or_else(|| Some(state_home()?.join("cudock")))
    }

    /// A system file such as `etc/containers/registries.conf`, below the root.
    pub fn system(&self, path: impl AsRef<Path>) -> PathBuf {
        self.root.join(path)
    }

    /// The absolute directories of `$PATH`.
    pub fn program_directories(&self) -> Vec<PathBuf> {
        self.get("PATH")
            .map(|path| std::env::split_paths(path).filter(|directory| directory.is_absolute()).collect())
            .unwrap_or_default()
    }

    /// The XDG base directory specification ignores relative paths.
    fn absolute(&self, name: &str) -> Option<PathBuf> {
        self.path(name).filter(|path| path.is_absolute())
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment")
            .field("variables", &self.variables.keys())
            .field("root", &self.root)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_variable_names_the_cache() {
        let cache =
            |variables: &[(&str, &str)]| Environment::of("/", variables.iter().copied()).cache_directory();
        let all = [("CUDOCK_CACHE", "/own"), ("XDG_CACHE_HOME", "/xdg"), ("HOME", "/home")];
        assert_eq!(cache(&all), Some("/own".into()));
        assert_eq!(cache(&all[1..]), Some("/xdg/cudock".into()));
        assert_eq!(cache(&all[2..]), Some("/home/.cache/cudock".into()));
        assert_eq!(cache(&[]), None);
        assert_eq!(cache(&[("XDG_CACHE_HOME", "x"), ("HOME", "/home")]), Some("/home/.cache/cudock".into()));
        assert_eq!(cache(&[("CUDOCK_CACHE", ""), ("HOME", "/home")]), Some("/home/.cache/cudock".into()));
    }

    #[test]
    fn the_first_variable_names_the_state() {
        let state =
            |variables: &[(&str, &str)]| Environment::of("/", variables.iter().copied()).state_directory();
        let all = [("CUDOCK_STATE", "/own"), ("XDG_STATE_HOME", "/xdg"), ("HOME", "/home")];
        assert_eq!(state(&all), Some("/own".into()));
        assert_eq!(state(&all[1..]), Some("/xdg/cudock".into()));
        assert_eq!(state(&all[2..]), Some("/home/.local/state/cudock".into()));
        assert_eq!(state(&[]), None);
    }

    #[test]
    fn values_do_not_print() {
        let environment = Environment::of("/", [("TOKEN", "swordfish")]);
        assert_eq!(environment.get("TOKEN"), Some(OsStr::new("swordfish")));
        assert!(!format!("{environment:?}").contains("swordfish"));
    }
}
