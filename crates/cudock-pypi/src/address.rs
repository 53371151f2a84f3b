//! Addresses of indexes and files: the sign-in cut out of them, references read against them.

use std::fmt;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cudock_registry::Secret;
use ureq::http::Uri;

/// An `http` or `https` address without the user that may have stood in it. It prints without its query, which may be
/// signed.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    url: Uri,
    authorization: Option<Secret>,
}

/// Where something may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// On this machine: a folder or a file.
    Local(PathBuf),
    /// On the network.
    Remote(Address),
}

impl Place {
    /// Reads a path, a `file:` address or one on the network. `~` is the user's home.
    pub fn parse(text: &str, home: Option<PathBuf>) -> Result<Self, &'static str> {
        if let Some(rest) = without_prefix(text, "file:") {
            let path = rest.strip_prefix("//localhost").or_else(|| rest.strip_prefix("//")).unwrap_or(rest);
            return match percent_decoded(path) {
                Some(path) if path.starts_with('/') => Ok(Self::Local(PathBuf::from(path))),
                _ => Err("is not a file: address with a whole path"),
            };
        }
        if text.contains("://") {
            return Address::parse(text).map(Self::Remote);
        }
        Ok(Self::Local(match (text.strip_prefix("~/"), home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => PathBuf::from(text),
        }))
    }
}

impl Address {
    /// Reads an address; its user and password become the authorization for its origin.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let text = text.split('#').next().unwrap_or_default();
        let (scheme, rest) = text.split_once("://").ok_or("is not an address with http:// or https://")?;
        if !matches!(scheme.to_ascii_lowercase().as_str(), "http" | "https") {
            return Err("is neither http:// nor https://");
        }
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        let url: Uri = format!("{}://{host}{}", scheme.to_ascii_lowercase(), escaped(&path))
            .parse()
            .map_err(|_| "is not an address")?;
        if url.host().is_none_or(str::is_empty) {
            return Err("is an address without a host");
        }
        let authorization = match user.filter(|user| !user.is_empty()) {
            None => None,
            Some(user) => {
                let (user, password) = user.split_once(':').unwrap_or((user, ""));
                let decoded = (percent_decoded(user), percent_decoded(password));
                let (Some(user), Some(password)) = decoded else {
                    return Err("has a user or password that is not percent-encoded as it should");
                };
                Some(basic(&user, &password))
            }
        };
        Ok(Self { url, authorization })
    }

    /// An address that an answer came from.
    pub(crate) fn of(url: Uri) -> Self {
        Self { url, authorization: None }
    }

    /// The address of a page below this one.
    #[must_use]
    pub fn page(&self, name: &str) -> Self {
        let base = self.url.to_string();
        let url = format!("{}/{name}/", base.split('?').next().unwrap_or_default().trim_end_matches('/'));
        // A name of an index has letters, digits and dashes only, so that this cannot fail.
        Self {
            url: url.parse().unwrap_or_else(|_| self.url.clone()),
            authorization: self.authorization.clone(),
        }
    }

    /// What a reference on this page leads to; none if it is not an address that can be asked.
    pub fn join(&self, reference: &str) -> Option<Self> {
        let reference = reference.split('#').next().unwrap_or_default().trim();
        let has_scheme = reference.split(['/', '?']).next().is_some_and(|first| first.contains(':'));
        if has_scheme {
            return Self::parse(reference).ok();
        }
        let scheme = self.url.scheme_str()?;
        if let Some(rest) = reference.strip_prefix("//") {
            return Self::parse(&format!("{scheme}://{rest}")).ok();
        }
        let authority = self.url.authority()?;
        let (path, query) = match reference.split_once('?') {
            Some((path, query)) => (path, format!("?{query}")),
            None => (reference, String::new()),
        };
        let path = match path {
            "" => self.url.path().to_owned(),
            path if path.starts_with('/') => without_dots(path),
            path => {
                let folder = self.url.path().rsplit_once('/').map_or("", |(folder, _)| folder);
                without_dots(&format!("{folder}/{path}"))
            }
        };
        Self::parse(&format!("{scheme}://{authority}{path}{query}")).ok()
    }

    /// The whole address, for the wire.
    pub(crate) fn url(&self) -> &Uri {
        &self.url
    }

    /// The host and, if it is not the usual one, the port.
    pub fn host(&self) -> &str {
        self.url.authority().map_or("", |authority| authority.as_str())
    }

    /// The sign-in that stood in it.
    pub(crate) fn authorization(&self) -> Option<&Secret> {
        self.authorization.as_ref()
    }

    /// Whether both are the same scheme, host and port.
    pub(crate) fn is_same_origin(&self, other: &Self) -> bool {
        let origin = |url: &Uri| {
            let by_default = if url.scheme_str() == Some("https") { 443 } else { 80 };
            (
                url.scheme_str().map(str::to_owned),
                url.host().map(str::to_ascii_lowercase),
                url.port_u16().unwrap_or(by_default),
            )
        };
        origin(&self.url) == origin(&other.url)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.url.scheme_str().unwrap_or_default(), self.host(), self.url.path())
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

/// The header of a sign-in with user and password.
pub(crate) fn basic(user: &str, password: &str) -> Secret {
    Secret::new(format!("Basic {}", STANDARD.encode(format!("{user}:{password}"))))
}

/// The text that `%41` and the like stand for; none if it is not text then.
pub(crate) fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next()?, rest.next()?];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

/// A path as it may stand in a request: what indexes forget to encode is encoded.
fn escaped(path: &str) -> String {
    path.chars()
        .map(|c| match c {
            ' ' | '"' | '<' | '>' | '`' | '{' | '}' => format!("%{:02X}", u32::from(c)),
            c if c.is_ascii() => c.to_string(),
            c => c.to_string().bytes().map(|byte| format!("%{byte:02X}")).collect(),
        })
        .collect()
}

fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for part in path.split('/').skip(1) {
        match part {
            "." => {}
            ".." => {
                kept.pop();
            }
            part => kept.push(part),
        }
    }
    let ends_in_dots = path.ends_with("/..") || path.ends_with("/.");
    format!("/{}{}", kept.join("/"), if ends_in_dots && !kept.is_empty() { "/" } else { "" })
}

fn without_prefix<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let head = text.get(..prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then(|| text.get(prefix.len()..)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_in_an_address_becomes_its_authorization_and_is_never_shown() {
        let address = Address::parse("https://me:p%40ss@Index.example:8443/simple/?token=x").unwrap();
        assert_eq!(address.to_string(), "https://Index.example:8443/simple/");
        assert_eq!(format!("{address:?}"), "Address(https://Index.example:8443/simple/)");
        assert_eq!(address.authorization(), Some(&basic("me", "p@ss")));
        let token = Address::parse("https://token@index.example/simple").unwrap();
        assert_eq!(token.authorization(), Some(&basic("token", "")));
        assert_eq!(Address::parse("https://index.example").unwrap().authorization(), None);
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for wrong in [
            "index.example/simple",
            "ftp://a.b/",
            "https://",
            "https://u:%zz@a.b/",
            "https:///simple",
            "https://a b/",
        ] {
            assert!(Address::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_page_lies_below_its_index_with_one_slash() {
        for index in ["https://a.b/simple", "https://a.b/simple/", "https://a.b/simple//"] {
            assert_eq!(Address::parse(index).unwrap().page("x-y").to_string(), "https://a.b/simple/x-y/");
        }
    }

    #[test]
    fn references_are_read_as_browsers_read_them() {
        let page = Address::parse("https://a.b:81/root/simple/x/").unwrap();
        for (reference, whole) in [
            ("https://c.d/e.whl#sha256=1", "https://c.d/e.whl"),
            ("//c.d/e.whl", "https://c.d/e.whl"),
            ("/e.whl", "https://a.b:81/e.whl"),
            ("e.whl", "https://a.b:81/root/simple/x/e.whl"),
            ("../../packages/./e.whl#x", "https://a.b:81/root/packages/e.whl"),
            ("../../../../../e.whl", "https://a.b:81/e.whl"),
            ("e f.whl", "https://a.b:81/root/simple/x/e%20f.whl"),
            ("", "https://a.b:81/root/simple/x/"),
        ] {
            assert_eq!(page.join(reference).unwrap().to_string(), whole, "{reference}");
        }
        assert!(page.join("e.whl?token=1").unwrap().url().to_string().ends_with("e.whl?token=1"));
        assert!(page.join("javascript:alert(1)").is_none());
        assert!(page.join("mailto:x").is_none());
    }

    #[test]
    fn a_place_is_a_path_or_an_address() {
        let home = || Some(PathBuf::from("/her"));
        let local = |path: &str| Ok(Place::Local(PathBuf::from(path)));
        assert_eq!(Place::parse("/opt/wheels", home()), local("/opt/wheels"));
        assert_eq!(Place::parse("wheels", home()), local("wheels"));
        assert_eq!(Place::parse("~/wheels", home()), local("/her/wheels"));
        assert_eq!(Place::parse("file:///opt/my%20wheels", home()), local("/opt/my wheels"));
        assert_eq!(Place::parse("FILE://localhost/opt", home()), local("/opt"));
        assert!(Place::parse("file://other/opt", home()).is_err());
        assert!(matches!(Place::parse("https://a.b/w.html", home()), Ok(Place::Remote(_))));
        assert!(Place::parse("ftp://a.b/", home()).is_err());
    }
}
