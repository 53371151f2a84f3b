//! The name of an image, as people type it and as registries take it.

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

use cudock_base::{Digest, DigestError, text};

const DOCKER_HUB: &str = "docker.io";
const DOCKER_HUB_HOST: &str = "registry-1.docker.io";
const LONGEST_REPOSITORY: usize = 255;
const LONGEST_TAG: usize = 128;

/// An image's name with its defaults filled in: `ubuntu` is `docker.io/library/ubuntu`.
///
/// The tag stays empty where none was given; [`tag_or_latest`](Self::tag_or_latest) is what is then meant. Where both
/// tag and digest are there, the digest decides, as everywhere else in the ecosystem.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    /// Host, with its port where one was given: `docker.io`, `localhost:5000`, `[::1]:5000`.
    pub registry: String,
    /// The path below the registry: `library/ubuntu`.
    pub repository: String,
    pub tag: Option<String>,
    pub digest: Option<Digest>,
}

/// Which part of an image's name is wrong, and how.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    #[error("the image name is empty")]
    Empty,
    /// A part breaks the rules of what it is for: a registry's host, a repository's name or a tag.
    #[error("`{part}` in image name `{name}` is not {expected}: {reason}")]
    Part { name: String, part: String, expected: &'static str, reason: &'static str },
    #[error("image name `{name}`: {source}")]
    Digest { name: String, source: DigestError },
}

impl Reference {
    /// The host that answers the registry's API: the registry itself, but `registry-1.docker.io` for `docker.io`.
    pub fn host(&self) -> &str {
        host_of(&self.registry)
    }

    /// The tag that is meant where neither tag nor digest was given.
    pub fn tag_or_latest(&self) -> &str {
        self.tag.as_deref().unwrap_or("latest")
    }

    /// The same image by this digest, as the entries of an index are requested.
    #[must_use]
    pub fn at(&self, digest: Digest) -> Self {
        Self { tag: None, digest: Some(digest), ..self.clone() }
    }

    /// The last part of a manifest's URL.
    pub(crate) fn manifest_name(&self) -> String {
        self.digest.as_ref().map_or_else(|| self.tag_or_latest().to_owned(), ToString::to_string)
    }
}

pub(crate) fn host_of(registry: &str) -> &str {
    if registry == DOCKER_HUB { DOCKER_HUB_HOST } else { registry }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.registry, self.repository)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        if let Some(digest) = &self.digest {
            write!(f, "@{digest}")?;
        }
        Ok(())
    }
}

impl FromStr for Reference {
    type Err = ReferenceError;

    fn from_str(name: &str) -> Result<Self, ReferenceError> {
        if name.is_empty() {
            return Err(ReferenceError::Empty);
        }
        let shown = text::truncate(name, 300);
        let (rest, digest) = match name.split_once('@') {
            Some((rest, digest)) => {
                let digest = digest
                    .parse()
                    .map_err(|source| ReferenceError::Digest { name: shown.clone(), source })?;
                (rest, Some(digest))
            }
            None => (name, None),
        };
        let (registry, rest) = match rest.split_once('/') {
            Some((first, below)) if is_host_like(first) => (first, below),
            _ => (DOCKER_HUB, rest),
        };
        let wrong = |expected, part, reason| {
            let (name, part) = (shown.clone(), text::truncate(part, 100));
            ReferenceError::Part { name, part, expected, reason }
        };
        check_registry(registry).map_err(|reason| wrong("a registry's host", registry, reason))?;
        let (path, tag) = match rest.split_once(':') {
            Some((path, tag)) => (path, Some(tag)),
            None => (rest, None),
        };
        if let Some(tag) = tag {
            check_tag(tag).map_err(|reason| wrong("a tag", tag, reason))?;
        }
        check_repository(path).map_err(|(part, reason)| wrong("a repository's name", part, reason))?;
        let registry = if registry == "index.docker.io" { DOCKER_HUB } else { registry };
        let repository = if registry == DOCKER_HUB && !path.contains('/') {
            format!("library/{path}")
        } else {
            path.to_owned()
        };
        Ok(Self { registry: registry.to_owned(), repository, tag: tag.map(str::to_owned), digest })
    }
}

/// A first part is a host if it could not be the first part of a repository: that is the ecosystem's rule.
fn is_host_like(part: &str) -> bool {
    part == "localhost" || part.contains(['.', ':']) || part.bytes().any(|b| b.is_ascii_uppercase())
}

/// Checks a registry's host and port; also used for the hosts in a registries.conf.
pub(crate) fn check_registry(registry: &str) -> Result<(), &'static str> {
    let (host, port) = if let Some(rest) = registry.strip_prefix('[') {
        let (address, after) = rest.split_once(']').ok_or("an IPv6 address ends with `]`")?;
        if address.parse::<Ipv6Addr>().is_err() {
            return Err("it is no IPv6 address");
        }
        match after.strip_prefix(':') {
            Some(port) => (None, Some(port)),
            None if after.is_empty() => (None, None),
            None => return Err("only a port can follow the `]`"),
        }
    } else {
        match registry.split_once(':') {
            Some((host, port)) => (Some(host), Some(port)),
            None => (Some(registry), None),
        }
    };
    if let Some(port) = port
        && (!port.bytes().all(|b| b.is_ascii_digit()) || port.parse::<u16>().is_err())
    {
        return Err("its port is not a number from 0 to 65535");
    }
    let Some(host) = host else { return Ok(()) };
    let label_is_good = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    if host.split('.').all(label_is_good) {
        Ok(())
    } else {
        Err("a host has letters, digits and dashes between its dots")
    }
}

fn check_tag(tag: &str) -> Result<(), &'static str> {
    if tag.is_empty() {
        return Err("nothing follows the colon");
    }
    if tag.len() > LONGEST_TAG {
        return Err("a tag has at most 128 characters");
    }
    if tag.starts_with(['.', '-']) {
        return Err("a tag starts with a letter, a digit or an underscore");
    }
    if tag.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-')) {
        Ok(())
    } else {
        Err("a tag has letters, digits, underscores, dots and dashes only")
    }
}

/// Also used for the paths that a registries.conf names.
pub(crate) fn check_repository(path: &str) -> Result<(), (&str, &'static str)> {
    if path.len() > LONGEST_REPOSITORY {
        return Err((path, "it has more than 255 characters"));
    }
    if path.len() == 64 && path.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
        return Err((path, "64 hexadecimal digits are the identity of an image, not its name"));
    }
    path.split('/').try_for_each(|part| check_component(part).map_err(|reason| (part, reason)))
}

fn check_component(part: &str) -> Result<(), &'static str> {
    if part.is_empty() {
        return Err("nothing stands between two slashes, or before or after one");
    }
    if part.bytes().any(|b| b.is_ascii_uppercase()) {
        return Err("it must be lower case");
    }
    if !part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'.' | b'_' | b'-'))
    {
        return Err("it has lower-case letters, digits, dots, underscores and dashes only");
    }
    let separators = |c: char| matches!(c, '.' | '_' | '-');
    if part.starts_with(separators) || part.ends_with(separators) {
        return Err("it starts and ends with a letter or digit");
    }
    let runs = part.split(|c: char| !separators(c)).filter(|run| !run.is_empty());
    for run in runs {
        if !(matches!(run, "." | "_" | "__") || run.bytes().all(|b| b == b'-')) {
            return Err("one dot, one or two underscores, or dashes can stand between letters and digits");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
