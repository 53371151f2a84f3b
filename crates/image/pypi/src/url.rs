//! URLs of indexes and files, separated from the credentials in them.

use std::fmt;
use std::path::PathBuf;

use cudock_base::Secret;
use cudock_base::text::percent;
use cudock_http::{Uri, basic_authorization, url};

/// An `http` or `https` URL whose user and password are kept apart. It prints without its query, which may be signed.
#[derive(Clone, PartialEq, Eq)]
pub struct DisplaySafeUrl {
    url: Uri,
    /// User and password as the URL had them.
    user_info: Option<Secret>,
    authorization: Option<Secret>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PackageSource {
    /// A directory or a file.
    Local(PathBuf),
    Remote(DisplaySafeUrl),
}

impl PackageSource {
    /// Parses a path, a `file:` URL or an http URL. `~` is the user's home.
    pub fn parse(text: &str, home: Option<PathBuf>) -> Result<Self, &'static str> {
        if let Some(rest) = without_prefix(text, "file:") {
            let path = rest.strip_prefix("//localhost").or_else(|| rest.strip_prefix("//")).unwrap_or(rest);
            return match percent::decode(path) {
                Some(path) if path.starts_with('/') => Ok(Self::Local(PathBuf::from(path))),
                _ => Err("is not a file: URL with an absolute path"),
            };
        }
        if text.contains("://") {
            return DisplaySafeUrl::parse(text).map(Self::Remote);
        }
        Ok(Self::Local(expand_home(text, home)))
    }
}

/// `~` is the user's home.
pub(crate) fn expand_home(path: &str, home: Option<PathBuf>) -> PathBuf {
    match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(path),
    }
}

impl DisplaySafeUrl {
    /// Parses a URL; its user and password become the authorization for its origin.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let text = text.split('#').next().unwrap_or_default();
        let (scheme, rest) = text.split_once("://").ok_or("is not a URL with http:// or https://")?;
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
        let url: Uri = format!("{}://{host}{}", scheme.to_ascii_lowercase(), percent::repair(&path))
            .parse()
            .map_err(|_| "is not a URL")?;
        if url.host().is_none_or(str::is_empty) {
            return Err("is a URL without a host");
        }
        let authorization = match user.filter(|user| !user.is_empty()) {
            None => None,
            Some(user) => {
                let (user, password) = user.split_once(':').unwrap_or((user, ""));
                let decoded = (percent::decode(user), percent::decode(password));
                let (Some(user), Some(password)) = decoded else {
                    return Err("has a user or password with invalid percent-encoding");
                };
                Some(basic_authorization(&user, &password))
            }
        };
        let user_info = user.filter(|user| !user.is_empty()).map(Secret::new);
        Ok(Self { url, user_info, authorization })
    }

    pub(crate) fn of(url: Uri) -> Self {
        Self { url, user_info: None, authorization: None }
    }

    /// The URL of a page below this one.
    #[must_use]
    pub fn page(&self, name: &str) -> Self {
        let base = self.url.to_string();
        let url = format!("{}/{name}/", base.split('?').next().unwrap_or_default().trim_end_matches('/'));
        // Package names have letters, digits and dashes only, so this cannot fail.
        Self {
            url: url.parse().unwrap_or_else(|_| self.url.clone()),
            user_info: self.user_info.clone(),
            authorization: self.authorization.clone(),
        }
    }

    /// The URL with user and password, for a program that signs in by itself.
    pub fn with_credentials(&self) -> Secret {
        let (scheme, rest) = (self.url.scheme_str().unwrap_or_default(), self.url.path_and_query());
        let rest = rest.map_or("/", |rest| rest.as_str());
        let user = self.user_info.as_ref().map(|user| format!("{}@", user.expose())).unwrap_or_default();
        Secret::new(format!("{scheme}://{user}{}{rest}", self.host()))
    }

    /// Resolves a reference on this page; `None` if it is not an http or https URL.
    pub fn join(&self, reference: &str) -> Option<Self> {
        Self::parse(&url::join(&self.url, reference)).ok()
    }

    /// The whole URL, for requests.
    pub(crate) fn url(&self) -> &Uri {
        &self.url
    }

    /// The host and, if it is not the default, the port.
    pub fn host(&self) -> &str {
        self.url.authority().map_or("", |authority| authority.as_str())
    }

    pub(crate) fn authorization(&self) -> Option<&Secret> {
        self.authorization.as_ref()
    }

    pub(crate) fn is_same_origin(&self, other: &Self) -> bool {
        url::is_same_origin(&self.url, &other.url)
    }
}

impl fmt::Display for DisplaySafeUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.url.scheme_str().unwrap_or_default(), self.host(), self.url.path())
    }
}

impl fmt::Debug for DisplaySafeUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DisplaySafeUrl({self})")
    }
}

fn without_prefix<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let head = text.get(..prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then(|| text.get(prefix.len()..)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_in_a_url_becomes_its_authorization_and_is_never_shown() {
        let url = DisplaySafeUrl::parse("https://me:p%40ss@Index.example:8443/simple/?token=x").unwrap();
        assert_eq!(url.to_string(), "https://Index.example:8443/simple/");
        assert_eq!(format!("{url:?}"), "DisplaySafeUrl(https://Index.example:8443/simple/)");
        assert_eq!(url.authorization(), Some(&basic_authorization("me", "p@ss")));
        let whole = "https://me:p%40ss@Index.example:8443/simple/?token=x";
        assert_eq!(url.with_credentials().expose(), whole);
        let token = DisplaySafeUrl::parse("https://token@index.example/simple").unwrap();
        assert_eq!(token.authorization(), Some(&basic_authorization("token", "")));
        assert_eq!(DisplaySafeUrl::parse("https://index.example").unwrap().authorization(), None);
    }

    #[test]
    fn invalid_urls_are_rejected() {
        for wrong in [
            "index.example/simple",
            "ftp://a.b/",
            "https://",
            "https://u:%zz@a.b/",
            "https:///simple",
            "https://a b/",
        ] {
            assert!(DisplaySafeUrl::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_page_is_below_its_index_with_one_slash() {
        for index in ["https://a.b/simple", "https://a.b/simple/", "https://a.b/simple//"] {
            assert_eq!(
                DisplaySafeUrl::parse(index).unwrap().page("x-y").to_string(),
                "https://a.b/simple/x-y/"
            );
        }
    }

    #[test]
    fn references_are_resolved_as_in_browsers() {
        let page = DisplaySafeUrl::parse("https://a.b:81/root/simple/x/").unwrap();
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
    fn a_source_is_a_path_or_a_url() {
        let home = || Some(PathBuf::from("/her"));
        let local = |path: &str| Ok(PackageSource::Local(PathBuf::from(path)));
        assert_eq!(PackageSource::parse("/opt/wheels", home()), local("/opt/wheels"));
        assert_eq!(PackageSource::parse("wheels", home()), local("wheels"));
        assert_eq!(PackageSource::parse("~/wheels", home()), local("/her/wheels"));
        assert_eq!(PackageSource::parse("file:///opt/my%20wheels", home()), local("/opt/my wheels"));
        assert_eq!(PackageSource::parse("FILE://localhost/opt", home()), local("/opt"));
        assert!(PackageSource::parse("file://other/opt", home()).is_err());
        assert!(matches!(PackageSource::parse("https://a.b/w.html", home()), Ok(PackageSource::Remote(_))));
        assert!(PackageSource::parse("ftp://a.b/", home()).is_err());
    }
}
