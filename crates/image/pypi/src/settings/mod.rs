//! Reads pip's configuration: indexes, directories of wheels, certificates, proxies.
//!
//! A variable takes precedence over all files. Among the files, the environment's own comes before the user's, and the
//! user's before the system's; but a section for a command takes precedence over `[global]` in any file.

mod ini;

use std::path::PathBuf;
use std::time::Duration;

use cudock_base::{Environment, Secret, files};
use cudock_http::trusted_certificates;

use crate::env::{
    CONDA_PREFIX, CURL_CA_BUNDLE, MAX_CONFIG, PIP_CONFIG_FILE, REQUESTS_CA_BUNDLE, UV_DEFAULT_INDEX,
    UV_INDEX, VIRTUAL_ENV, XDG_CONFIG_DIRS,
};
use crate::error::PypiError;
use crate::netrc::Netrc;
use crate::url::{DisplaySafeUrl, PackageSource, expand_home};
use ini::Ini;

/// The public index, which is the default.
pub const DEFAULT_INDEX: &str = "https://pypi.org/simple/";

/// The file's name in every directory.
const FILE: &str = "pip.conf";
/// Both commands apply here: the first section with a setting wins.
const SECTIONS: [&str; 3] = ["install", "download", "global"];
const TIMEOUT: Duration = Duration::from_secs(60);

/// pip's settings about sources of packages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Indexes, in the order in which they are tried; empty if `no-index` is set.
    pub indexes: Vec<PackageSource>,
    /// Directories of wheels, and pages with links to wheels.
    pub find_links: Vec<PackageSource>,
    /// The certificate bundle; Mozilla's if there is none.
    pub certificates: Option<PathBuf>,
    /// Hosts that need no certificate.
    pub trusted_hosts: Vec<String>,
    /// The proxy, unless the usual variables apply.
    pub proxy: Option<Secret>,
    pub timeout: Duration,
    pub netrc: Netrc,
}

impl Settings {
    pub fn public() -> Self {
        Self {
            indexes: DisplaySafeUrl::parse(DEFAULT_INDEX).map(PackageSource::Remote).into_iter().collect(),
            find_links: Vec::new(),
            certificates: None,
            trusted_hosts: Vec::new(),
            proxy: None,
            timeout: TIMEOUT,
            netrc: Netrc::default(),
        }
    }

    pub fn from_environment(environment: &Environment) -> Result<Self, PypiError> {
        let config = PipConfig { environment, files: config_files(environment)? };
        let mut indexes = Vec::new();
        if !config.flag("no-index")? {
            match config.sources("index-url")?.into_iter().next() {
                Some(index) => indexes.push(index),
                None => indexes.extend(Self::public().indexes),
            }
            indexes.extend(config.sources("extra-index-url")?);
        }
        let certificates =
            config.value("cert").map(|value| expand_home(value.text.trim(), environment.home()));
        let of_python =
            [REQUESTS_CA_BUNDLE, CURL_CA_BUNDLE].iter().find_map(|variable| environment.path(variable));
        Ok(Self {
            indexes,
            find_links: config.sources("find-links")?,
            certificates: certificates.or(of_python).or_else(|| trusted_certificates(environment)),
            trusted_hosts: config.list("trusted-host"),
            proxy: config.value("proxy").map(|value| Secret::new(value.text.trim())),
            timeout: config.seconds("timeout")?.or(config.seconds("default-timeout")?).unwrap_or(TIMEOUT),
            netrc: Netrc::from_environment(environment),
        })
    }

    /// The settings of uv: pip's, but for the indexes that uv's variables name, and in uv's order, the default index last.
    pub fn for_uv(environment: &Environment) -> Result<Self, PypiError> {
        let mut settings = Self::from_environment(environment)?;
        let named = |variables: [&'static str; 2]| {
            let set = variables.into_iter().find_map(|name| Some((name, environment.get(name)?.to_str()?)));
            set.map(|(name, text)| uv_sources(name, text, environment)).transpose()
        };
        let mut own = std::mem::take(&mut settings.indexes).into_iter();
        let default = named(UV_DEFAULT_INDEX)?.and_then(|named| named.into_iter().next()).or(own.next());
        settings.indexes = named(UV_INDEX)?.unwrap_or_else(|| own.collect());
        settings.indexes.extend(default);
        Ok(settings)
    }
}

/// Indexes of a variable of uv, separated by spaces and each with or without a name: `torch=https://…`.
fn uv_sources(
    variable: &'static str,
    text: &str,
    environment: &Environment,
) -> Result<Vec<PackageSource>, PypiError> {
    let url = |item: &str| match item.split_once('=') {
        Some((name, url)) if !name.contains(['/', ':']) => url.to_owned(),
        _ => item.to_owned(),
    };
    text.split_whitespace()
        .map(|item| {
            PackageSource::parse(&url(item), environment.home())
                .map_err(|reason| PypiError::Setting { name: variable.to_owned(), reason: reason.to_owned() })
        })
        .collect()
}

/// Every file that pip would read, by precedence.
fn config_files(environment: &Environment) -> Result<Vec<(PathBuf, Ini)>, PypiError> {
    let named = environment.path(PIP_CONFIG_FILE);
    if named.as_deref().is_some_and(|file| file == "/dev/null") {
        return Ok(Vec::new());
    }
    let mut paths = Vec::new();
    let replaces_the_users = named.as_deref().is_some_and(std::path::Path::exists);
    paths.extend(named);
    let active = environment.path(VIRTUAL_ENV).or_else(|| environment.path(CONDA_PREFIX));
    paths.extend(active.map(|prefix| prefix.join(FILE)));
    if !replaces_the_users {
        paths.extend(environment.config_home().map(|directory| directory.join("pip").join(FILE)));
        paths.extend(environment.home().map(|home| home.join(".pip").join(FILE)));
    }
    paths.push(environment.system("etc").join(FILE));
    let directories = environment
        .get(XDG_CONFIG_DIRS)
        .map_or_else(|| vec![environment.system("etc/xdg")], |value| std::env::split_paths(value).collect());
    paths.extend(directories.into_iter().rev().map(|directory| directory.join("pip").join(FILE)));
    let mut read = Vec::new();
    for path in paths {
        let unusable = |reason| PypiError::Config { file: path.clone(), reason };
        let text = files::read_optional(&path, MAX_CONFIG);
        if let Some(text) = text.map_err(|error| unusable(format!("cannot read: {error}")))? {
            let ini = Ini::parse(&text).map_err(unusable)?;
            read.push((path, ini));
        }
    }
    Ok(read)
}

struct ConfigValue {
    text: String,
    origin: String,
}

struct PipConfig<'a> {
    environment: &'a Environment,
    files: Vec<(PathBuf, Ini)>,
}

impl PipConfig<'_> {
    /// The effective value of a setting. An empty one counts as not set, and hides the same one in the same section of
    /// files with lower precedence, as in pip.
    fn value(&self, key: &str) -> Option<ConfigValue> {
        let variable = format!("PIP_{}", key.to_ascii_uppercase().replace('-', "_"));
        if let Some(text) = self.environment.get(&variable).and_then(|text| text.to_str()) {
            return Some(ConfigValue { text: text.to_owned(), origin: variable });
        }
        SECTIONS.iter().find_map(|section| {
            let (path, text) =
                self.files.iter().find_map(|(path, ini)| Some((path, ini.get(section, key)?)))?;
            let origin = format!("{} [{section}] {key}", path.display());
            (!text.trim().is_empty()).then(|| ConfigValue { text: text.to_owned(), origin })
        })
    }

    fn list(&self, key: &str) -> Vec<String> {
        self.value(key)
            .map_or_else(Vec::new, |value| value.text.split_whitespace().map(str::to_owned).collect())
    }

    fn sources(&self, key: &str) -> Result<Vec<PackageSource>, PypiError> {
        let Some(ConfigValue { text, origin }) = self.value(key) else { return Ok(Vec::new()) };
        text.split_whitespace()
            .map(|item| {
                PackageSource::parse(item, self.environment.home())
                    .map_err(|reason| PypiError::Setting { name: origin.clone(), reason: reason.to_owned() })
            })
            .collect()
    }

    fn flag(&self, key: &str) -> Result<bool, PypiError> {
        let Some(ConfigValue { text, origin }) = self.value(key) else { return Ok(false) };
        match text.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" | "t" | "true" | "on" | "1" => Ok(true),
            "n" | "no" | "f" | "false" | "off" | "0" => Ok(false),
            _ => Err(PypiError::Setting { name: origin, reason: "is neither yes nor no".to_owned() }),
        }
    }

    fn seconds(&self, key: &str) -> Result<Option<Duration>, PypiError> {
        let Some(ConfigValue { text, origin }) = self.value(key) else { return Ok(None) };
        let seconds = text.trim().parse().ok().filter(|seconds: &f64| *seconds > 0.0);
        match seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()) {
            Some(seconds) => Ok(Some(seconds)),
            None => Err(PypiError::Setting { name: origin, reason: "is not a number of seconds".to_owned() }),
        }
    }
}

#[cfg(test)]
mod tests;
