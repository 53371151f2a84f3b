//! Where images are fetched from: registries.conf, in the format of containers/image.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use cudock_base::Environment;
use cudock_http::url::is_loopback;
use serde::Deserialize;

use crate::credentials::read_config;
use crate::env::CONTAINERS_REGISTRIES_CONF;
use crate::error::Error;
use crate::reference::{Reference, check_registry, check_repository};

/// The `[[registry]]` tables of registries.conf: by prefix, which mirrors to try first and where the origin is.
///
/// Keys that do not say where an image is (`unqualified-search-registries`, `aliases`, …) are ignored.
#[derive(Debug, Clone, Default)]
pub struct Mirrors {
    rules: BTreeMap<String, Rule>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Pulls {
    All,
    DigestOnly,
    TagOnly,
}

#[derive(Deserialize)]
struct FileForm {
    #[serde(default)]
    registry: Vec<Rule>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Rule {
    /// Where it was read from.
    #[serde(skip)]
    file: PathBuf,
    prefix: Option<String>,
    location: Option<String>,
    #[serde(default)]
    insecure: bool,
    #[serde(default)]
    blocked: bool,
    #[serde(default)]
    mirror_by_digest_only: bool,
    #[serde(default)]
    mirror: Vec<Mirror>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Mirror {
    location: String,
    #[serde(default)]
    insecure: bool,
    pull_from_mirror: Option<Pulls>,
}

/// Where an image can be fetched from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) registry: String,
    pub(crate) repository: String,
    pub(crate) is_mirror: bool,
}

impl Mirrors {
    /// Reads the file that `$CONTAINERS_REGISTRIES_CONF` names; else the user's, else the system's, and over it the
    /// `registries.conf.d` directories of both. Missing files are skipped, except for the one named.
    pub fn from_environment(environment: &Environment) -> Result<Self, Error> {
        let mut mirrors = Self::default();
        if let Some(named) = environment.path(CONTAINERS_REGISTRIES_CONF) {
            if mirrors.add_optional(&named)? {
                return Ok(mirrors);
            }
            let reason = format!("does not exist, and {CONTAINERS_REGISTRIES_CONF} names it");
            return Err(Error::Config { file: named, reason });
        }
        let system = environment.system("etc/containers");
        let user = environment.config_home().map(|config| config.join("containers"));
        for directory in user.iter().chain([&system]) {
            if mirrors.add_optional(&directory.join("registries.conf"))? {
                break;
            }
        }
        for directory in [Some(&system), user.as_ref()].into_iter().flatten() {
            for file in drop_ins(&directory.join("registries.conf.d")) {
                mirrors.add_optional(&file)?;
            }
        }
        Ok(mirrors)
    }

    /// Reads one text in the format of registries.conf; `file` is for messages.
    pub fn parse(file: &Path, text: &str) -> Result<Self, Error> {
        let mut mirrors = Self::default();
        mirrors.add(file, text)?;
        Ok(mirrors)
    }

    fn add_optional(&mut self, file: &Path) -> Result<bool, Error> {
        match read_config(file)? {
            Some(text) => self.add(file, &text).map(|()| true),
            None => Ok(false),
        }
    }

    fn add(&mut self, file: &Path, text: &str) -> Result<(), Error> {
        let wrong = |reason: String| Error::Config { file: file.to_owned(), reason };
        let form: FileForm =
            toml::from_str(text).map_err(|error| wrong(error.to_string().trim_end().to_owned()))?;
        for mut rule in form.registry {
            let prefix = rule.prefix.as_ref().or(rule.location.as_ref()).filter(|prefix| !prefix.is_empty());
            let Some(prefix) = prefix.cloned() else {
                return Err(wrong("a [[registry]] has neither prefix nor location".to_owned()));
            };
            if prefix.starts_with("*.") && rule.location.is_some() {
                return Err(wrong(format!("prefix `{prefix}` has a wildcard, and cannot have a location")));
            }
            for location in rule.location.iter().chain(rule.mirror.iter().map(|mirror| &mirror.location)) {
                check_location(location)
                    .map_err(|reason| wrong(format!("location `{location}`: {reason}")))?;
            }
            file.clone_into(&mut rule.file);
            self.rules.insert(prefix, rule);
        }
        Ok(())
    }

    /// Where to fetch this image from, in order; the origin is last.
    pub(crate) fn sources(&self, reference: &Reference, by_digest: bool) -> Result<Vec<Source>, Error> {
        let name = format!("{}/{}", reference.registry, reference.repository);
        let origin = Source {
            registry: reference.registry.clone(),
            repository: reference.repository.clone(),
            is_mirror: false,
        };
        let best = self
            .rules
            .iter()
            .filter_map(|(prefix, rule)| Some((matched(prefix, &name)?, rule)))
            .max_by_key(|(length, _)| *length);
        let Some((length, rule)) = best else { return Ok(vec![origin]) };
        if rule.blocked {
            return Err(Error::Blocked { name, file: rule.file.clone() });
        }
        let below = name.get(length..).unwrap_or_default();
        let by_default = if rule.mirror_by_digest_only { Pulls::DigestOnly } else { Pulls::All };
        let mut sources = Vec::new();
        for mirror in &rule.mirror {
            let asked = match mirror.pull_from_mirror.unwrap_or(by_default) {
                Pulls::All => true,
                Pulls::DigestOnly => by_digest,
                Pulls::TagOnly => !by_digest,
            };
            if asked {
                sources.push(rule.source(&format!("{}{below}", mirror.location), mirror.insecure, true)?);
            }
        }
        let location = rule.location.as_ref().map_or(name.clone(), |location| format!("{location}{below}"));
        sources.push(rule.source(&location, rule.insecure, false)?);
        Ok(sources)
    }
}

impl Rule {
    fn source(&self, location: &str, insecure: bool, is_mirror: bool) -> Result<Source, Error> {
        let (registry, repository) = location.split_once('/').unwrap_or((location, ""));
        if insecure && !is_loopback(registry) {
            return Err(Error::Insecure { registry: registry.to_owned(), file: self.file.clone() });
        }
        if let Err((part, reason)) = check_repository(repository) {
            let reason = format!("`{location}` cannot be requested: `{part}`: {reason}");
            return Err(Error::Config { file: self.file.clone(), reason });
        }
        Ok(Source { registry: registry.to_owned(), repository: repository.to_owned(), is_mirror })
    }
}

/// How many bytes of the name a prefix covers, if it does so up to the end of a part.
fn matched(prefix: &str, name: &str) -> Option<usize> {
    if let Some(domain) = prefix.strip_prefix('*') {
        let host = name.split('/').next().unwrap_or_default();
        let bare = host.split(':').next().unwrap_or_default();
        return (domain.starts_with('.') && bare.ends_with(domain)).then_some(host.len());
    }
    let rest = name.strip_prefix(prefix)?;
    (rest.is_empty() || rest.starts_with('/')).then_some(prefix.len())
}

fn check_location(location: &str) -> Result<(), &'static str> {
    if location.contains("://") {
        return Err("it is a host and a path, without https:// before it");
    }
    let (registry, path) = location.split_once('/').unwrap_or((location, ""));
    check_registry(registry)?;
    if path.is_empty() { Ok(()) } else { check_repository(path).map_err(|(_, reason)| reason) }
}

fn drop_ins(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut files: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "conf"))
        .collect();
    files.sort();
    files
}

#[cfg(test)]
mod tests;
