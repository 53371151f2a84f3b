//! Every variable and system path this crate reads, in one place, so that a test can hand in its own. Only those of
//! proxies (`HTTPS_PROXY`, `NO_PROXY`, …) are left to the HTTP library, which reads them itself.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Where the cache lies, before all defaults.
pub const CUDOCK_CACHE: &str = "CUDOCK_CACHE";
/// A registries.conf to read instead of the user's and the system's.
pub const CONTAINERS_REGISTRIES_CONF: &str = "CONTAINERS_REGISTRIES_CONF";
/// The first file to look for sign-ins in.
pub const REGISTRY_AUTH_FILE: &str = "REGISTRY_AUTH_FILE";
/// The folder of docker's `config.json`.
pub const DOCKER_CONFIG: &str = "DOCKER_CONFIG";
/// The docker daemon's address; only `unix://` is used.
pub const DOCKER_HOST: &str = "DOCKER_HOST";
/// A bundle of certificates to trust instead of the system's.
pub const SSL_CERT_FILE: &str = "SSL_CERT_FILE";

const XDG_CACHE_HOME: &str = "XDG_CACHE_HOME";
const XDG_CONFIG_HOME: &str = "XDG_CONFIG_HOME";
const XDG_RUNTIME_DIR: &str = "XDG_RUNTIME_DIR";
const HOME: &str = "HOME";
const PATH: &str = "PATH";

const READ: [&str; 11] = [
    CUDOCK_CACHE,
    CONTAINERS_REGISTRIES_CONF,
    REGISTRY_AUTH_FILE,
    DOCKER_CONFIG,
    DOCKER_HOST,
    SSL_CERT_FILE,
    XDG_CACHE_HOME,
    XDG_CONFIG_HOME,
    XDG_RUNTIME_DIR,
    HOME,
    PATH,
];

/// The variables and the root of the file system as this crate sees them.
///
/// A variable that is set to nothing counts as not set.
#[derive(Debug, Clone)]
pub struct Environment {
    variables: BTreeMap<String, OsString>,
    root: PathBuf,
}

impl Environment {
    /// That of this process.
    pub fn of_process() -> Self {
        Self::of_process_with(&[])
    }

    /// That of this process, with variables that others read, too.
    pub fn of_process_with(others: &[&str]) -> Self {
        let names = READ.iter().chain(others);
        let set = names.filter_map(|name| Some(((*name).to_owned(), std::env::var_os(name)?)));
        Self { variables: set.collect(), root: PathBuf::from("/") }
    }

    /// One that has these variables only, and whose system files lie below `root`.
    pub fn of<K: Into<String>, V: Into<OsString>>(
        root: impl Into<PathBuf>,
        variables: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        let variables = variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Self { variables, root: root.into() }
    }

    /// The value of a variable, if it is set to something.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(name).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// The value of a variable as a path.
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.get(name).map(PathBuf::from)
    }

    /// The user's home.
    pub fn home(&self) -> Option<PathBuf> {
        self.path(HOME)
    }

    /// The folder of the user's configuration: `$XDG_CONFIG_HOME`, else `~/.config`.
    pub fn config_home(&self) -> Option<PathBuf> {
        self.absolute(XDG_CONFIG_HOME).or_else(|| Some(self.home()?.join(".config")))
    }

    /// The folder of the user's caches: `$XDG_CACHE_HOME`, else `~/.cache`.
    pub(crate) fn cache_home(&self) -> Option<PathBuf> {
        self.absolute(XDG_CACHE_HOME).or_else(|| Some(self.home()?.join(".cache")))
    }

    pub(crate) fn runtime_dir(&self) -> Option<PathBuf> {
        self.absolute(XDG_RUNTIME_DIR)
    }

    /// A system file such as `etc/containers/registries.conf`, below the root.
    pub fn system(&self, below: impl AsRef<Path>) -> PathBuf {
        self.root.join(below)
    }

    /// The folders that programs are looked for in.
    pub(crate) fn program_folders(&self) -> Vec<PathBuf> {
        self.get(PATH)
            .map(|path| std::env::split_paths(path).filter(|dir| dir.is_absolute()).collect())
            .unwrap_or_default()
    }

    /// The base directory specification has relative paths ignored.
    fn absolute(&self, name: &str) -> Option<PathBuf> {
        self.path(name).filter(|path| path.is_absolute())
    }
}
