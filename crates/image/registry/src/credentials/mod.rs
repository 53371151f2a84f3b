//! Credentials where podman, skopeo and docker store them. They are read and never written.

mod credential;
mod helper;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cudock_base::{Environment, Secret, files};
use serde::Deserialize;

pub(crate) use credential::Credential;
use helper::Helpers;

use crate::env::{DOCKER_CONFIG, REGISTRY_AUTH_FILE};
use crate::error::Error;

/// Maximum size of another program's configuration file.
const MAX_CONFIG: u64 = 1 << 20;
/// The key under which `docker login` without a host stores its credential.
const DOCKER_HUB_KEY: &str = "https://index.docker.io/v1/";

/// The result of looking up a registry's credential. A helper that fails is not an error: most
/// images are public. It is reported if the registry then requires authentication.
#[derive(Debug, Default)]
pub(crate) struct Lookup {
    pub(crate) credential: Option<Credential>,
    pub(crate) problem: Option<String>,
}

/// The files that may hold credentials, in the order in which they are read.
#[derive(Debug, Clone, Default)]
pub struct Credentials {
    files: Vec<PathBuf>,
    helpers: Helpers,
    /// Decides before any file.
    fixed: Option<Credential>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FileForm {
    #[serde(default)]
    auths: BTreeMap<String, Entry>,
    #[serde(default)]
    cred_helpers: BTreeMap<String, String>,
    creds_store: Option<String>,
}

#[derive(Deserialize)]
struct Entry {
    auth: Option<Secret>,
    username: Option<String>,
    password: Option<Secret>,
    identitytoken: Option<Secret>,
}

impl Credentials {
    /// `$REGISTRY_AUTH_FILE`, `$XDG_RUNTIME_DIR/containers/auth.json`, `~/.config/containers/auth.json`,
    /// `$DOCKER_CONFIG/config.json` or `~/.docker/config.json`; helpers are looked for on `$PATH`.
    pub fn from_environment(environment: &Environment) -> Self {
        let docker = environment
            .path(DOCKER_CONFIG)
            .or_else(|| Some(environment.home()?.join(".docker")))
            .map(|directory| directory.join("config.json"));
        let files = [
            environment.path(REGISTRY_AUTH_FILE),
            environment.runtime_dir().map(|directory| directory.join("containers/auth.json")),
            environment.config_home().map(|directory| directory.join("containers/auth.json")),
            docker,
        ];
        Self {
            files: files.into_iter().flatten().collect(),
            helpers: Helpers {
                directories: environment.program_directories(),
                timeout: Duration::from_secs(30),
            },
            fixed: None,
        }
    }

    /// A user name and a password for every registry that wants a sign-in; no file is read.
    pub fn of_password(user: &str, password: Secret) -> Self {
        let fixed = Credential::Password { user: user.to_owned(), password };
        Self { fixed: Some(fixed), ..Self::default() }
    }

    /// How long a credential helper may take, 30 seconds by default. Some prompt the user.
    #[must_use]
    pub fn with_helper_timeout(mut self, timeout: Duration) -> Self {
        self.helpers.timeout = timeout;
        self
    }

    /// The first credential that any file has for this repository.
    pub(crate) fn find(&self, registry: &str, repository: &str) -> Result<Lookup, Error> {
        if let Some(credential) = &self.fixed {
            return Ok(Lookup { credential: Some(credential.clone()), problem: None });
        }
        let registry = host_of_key(registry);
        let mut problem = None;
        for file in &self.files {
            let Some(form) = read(file)? else { continue };
            let helper = helper_of(&form, registry);
            if let Some(name) = helper {
                match self.helpers.ask(name, helper_key(registry)) {
                    Ok(Some(credential)) => return Ok(Lookup { credential: Some(credential), problem }),
                    Ok(None) => {}
                    Err(reason) => {
                        let reason = format!(
                            "{} names {}{name}, which failed: {reason}",
                            file.display(),
                            helper::PREFIX
                        );
                        problem.get_or_insert(reason);
                    }
                }
            }
            if let Some(credential) = entry_of(&form, registry, repository, file)? {
                return Ok(Lookup { credential: Some(credential), problem });
            }
        }
        Ok(Lookup { credential: None, problem })
    }
}

fn helper_of<'a>(form: &'a FileForm, registry: &str) -> Option<&'a str> {
    let own = form.cred_helpers.iter().find(|(key, _)| host_of_key(key) == registry).map(|(_, name)| name);
    own.or(form.creds_store.as_ref()).map(String::as_str).filter(|name| !name.is_empty())
}

fn helper_key(registry: &str) -> &str {
    if registry == "docker.io" { DOCKER_HUB_KEY } else { registry }
}

/// The most specific key wins: `host/a/b`, `host/a`, `host`; then keys written as URLs, as docker used to.
fn entry_of(
    form: &FileForm,
    registry: &str,
    repository: &str,
    file: &Path,
) -> Result<Option<Credential>, Error> {
    let mut key = format!("{registry}/{repository}");
    loop {
        if let Some(credential) =
            form.auths.get(&key).map(|entry| entry.read(&key, file)).transpose()?.flatten()
        {
            return Ok(Some(credential));
        }
        match key.rfind('/') {
            Some(at) => key.truncate(at),
            None => break,
        }
    }
    for (key, entry) in
        form.auths.iter().filter(|(key, _)| is_whole_host(key) && host_of_key(key) == registry)
    {
        if let Some(credential) = entry.read(key, file)? {
            return Ok(Some(credential));
        }
    }
    Ok(None)
}

fn without_scheme(key: &str) -> &str {
    key.strip_prefix("https://").or_else(|| key.strip_prefix("http://")).unwrap_or(key)
}

/// Whether a key is for a host, as `https://index.docker.io/v1/` is, and not for a part of it.
fn is_whole_host(key: &str) -> bool {
    let path = without_scheme(key).split_once('/').map_or("", |(_, path)| path);
    matches!(path.trim_end_matches('/'), "" | "v1" | "v2")
}

fn host_of_key(key: &str) -> &str {
    match without_scheme(key).split('/').next().unwrap_or_default() {
        "index.docker.io" | "registry-1.docker.io" => "docker.io",
        host => host,
    }
}

impl Entry {
    fn read(&self, key: &str, file: &Path) -> Result<Option<Credential>, Error> {
        let given = |secret: &Option<Secret>| secret.clone().filter(|secret| !secret.is_empty());
        if let Some(token) = given(&self.identitytoken) {
            return Ok(Some(Credential::IdentityToken(token)));
        }
        if let Some(auth) = given(&self.auth) {
            // The reason never quotes the entry.
            let wrong = || Error::Config {
                file: file.to_owned(),
                reason: format!("the `auth` of `{key}` is not user and password in base64"),
            };
            let bytes = STANDARD.decode(auth.expose().trim()).map_err(|_| wrong())?;
            let text = String::from_utf8(bytes).map_err(|_| wrong())?;
            let (user, password) = text.split_once(':').ok_or_else(wrong)?;
            let password = Secret::new(password.trim_end_matches('\0'));
            return Ok(Some(Credential::Password { user: user.to_owned(), password }));
        }
        let user = self.username.clone().filter(|user| !user.is_empty());
        Ok(user.zip(given(&self.password)).map(|(user, password)| Credential::Password { user, password }))
    }
}

fn read(file: &Path) -> Result<Option<FileForm>, Error> {
    let Some(text) = read_config(file)?.filter(|text| !text.trim().is_empty()) else { return Ok(None) };
    // serde_json quotes the value that does not fit, which may be a password: only its position is shown.
    serde_json::from_str(&text).map(Some).map_err(|error| {
        let reason = format!("not a credentials file: line {}, column {}", error.line(), error.column());
        Error::Config { file: file.to_owned(), reason }
    })
}

pub(crate) fn read_config(file: &Path) -> Result<Option<String>, Error> {
    files::read_optional(file, MAX_CONFIG)
        .map_err(|error| Error::Config { file: file.to_owned(), reason: format!("cannot be read: {error}") })
}

#[cfg(test)]
mod tests;
