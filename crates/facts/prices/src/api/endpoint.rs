//! The URL of the price list, and which links to a next page are followed.

use std::fmt;
use std::str::FromStr;

use cudock_base::text::percent;
use cudock_http::Uri;
use cudock_http::url::{has_user, is_loopback, is_same_origin};

use crate::rules::quoted;

/// The version with case-sensitive filters and `isPrimaryMeterRegion`.
const API_VERSION: &str = "2023-01-01-preview";

/// The URL of the service: `https`, or plain `http` to this machine only.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    url: Uri,
}

/// Why a text is not the URL of a price list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{address} {reason}")]
pub struct EndpointError {
    address: String,
    reason: &'static str,
}

impl Default for Endpoint {
    /// Microsoft's.
    fn default() -> Self {
        Self { url: Uri::from_static("https://prices.azure.com/api/retail/prices") }
    }
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        let wrong = |reason| EndpointError { address: quoted(text), reason };
        let url: Uri = text.trim().parse().map_err(|_| wrong("is not a URL"))?;
        let Some(host) = url.host().filter(|host| !host.is_empty()) else {
            return Err(wrong("has no host"));
        };
        if has_user(&url) {
            return Err(EndpointError { address: "the URL".to_owned(), reason: "contains a user name" });
        }
        if url.query().is_some() || text.contains('#') {
            return Err(wrong("has a query"));
        }
        match url.scheme_str() {
            Some("https") => {}
            Some("http") if is_loopback(host) => {}
            Some("http") => return Err(wrong("uses plain http, which is not secure; use https")),
            _ => return Err(wrong("does not start with http:// or https://")),
        }
        Ok(Self { url })
    }
}

impl Endpoint {
    /// The host, and the port if it is not the default.
    pub fn host(&self) -> &str {
        self.url.authority().map_or("", |authority| authority.as_str())
    }

    /// The URL of the first page of what a filter selects.
    pub(crate) fn first_page(&self, filter: &str) -> String {
        format!("{self}?api-version={API_VERSION}&$filter={}", percent::encode(filter))
    }

    /// The URL of the next page, which must have the same origin. The service writes `:443` and unencoded spaces into
    /// it.
    pub(crate) fn next_page(&self, link: &str) -> Result<String, String> {
        let refused = |reason: &str| format!("the next page {} {reason}", quoted(link));
        let url: Uri = percent::repair(link.trim()).parse().map_err(|_| refused("is not a URL"))?;
        if has_user(&url) {
            return Err(refused("contains a user name"));
        }
        if !is_same_origin(&url, &self.url) {
            return Err(refused(&format!("is not on {}", self.host())));
        }
        Ok(url.to_string())
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.url.scheme_str().unwrap_or_default(), self.host(), self.url.path())
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Endpoint({self})")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_filter_is_encoded_and_its_parameter_s_name_is_not() {
        let url =
            Endpoint::default().first_page("armRegionName eq 'westeurope' and contains(x, 'y') eq false");
        assert_eq!(
            url,
            "https://prices.azure.com/api/retail/prices?api-version=2023-01-01-preview&\
             $filter=armRegionName%20eq%20%27westeurope%27%20and%20contains%28x%2C%20%27y%27%29%20eq%20false"
        );
    }

    #[test]
    fn next_page_links_of_the_service_are_repaired() {
        let link = "https://prices.azure.com:443/api/retail/prices?$filter=serviceName eq 'Virtual Machines'&$skip=1000";
        let next = Endpoint::default().next_page(link).unwrap();
        assert_eq!(
            next,
            "https://prices.azure.com:443/api/retail/prices?$filter=serviceName%20eq%20'Virtual%20Machines'&$skip=1000"
        );
        assert!(Endpoint::default().next_page("https://PRICES.azure.com/x?$skip=1").is_ok());
    }

    #[test]
    fn a_next_page_on_another_origin_is_rejected() {
        for link in [
            "https://prices.azure.com.evil.example/api?$skip=1000",
            "https://evil.example/api?$skip=1000",
            "http://prices.azure.com/api?$skip=1000",
            "https://prices.azure.com:8443/api?$skip=1000",
            "https://prices.azure.com@evil.example/api",
            "https://user@prices.azure.com/api",
            "http://127.0.0.1/api",
            "/api/retail/prices?$skip=1000",
            "//evil.example/",
            "file:///etc/passwd",
            "",
            "https://",
        ] {
            assert!(Endpoint::default().next_page(link).is_err(), "{link}");
        }
    }

    #[test]
    fn an_address_is_https_or_this_machine() {
        for text in [
            "https://mirror.example/prices",
            "http://127.0.0.1:8080/api/retail/prices",
            "http://localhost:1",
            "http://[::1]:9/x",
        ] {
            assert!(text.parse::<Endpoint>().is_ok(), "{text}");
        }
        for text in [
            "http://mirror.example/prices",
            "ftp://a.b/",
            "prices.azure.com",
            "",
            "https://",
            "https://a.b/?x=1",
            "https://a.b/#x",
            "/path",
        ] {
            assert!(text.parse::<Endpoint>().is_err(), "{text}");
        }
        let error = "https://me:secret@a.b/".parse::<Endpoint>().unwrap_err().to_string();
        assert!(!error.contains("secret"), "{error}");
    }

    proptest! {
        #[test]
        fn no_link_makes_it_panic_or_leave_the_host(link in ".{0,80}|https?://[a-z.:@/?$ ]{0,60}") {
            if let Ok(next) = Endpoint::default().next_page(&link) {
                let next: Uri = next.parse().unwrap();
                let host = next.host().map(str::to_ascii_lowercase);
                prop_assert_eq!(host.as_deref(), Some("prices.azure.com"));
                prop_assert_eq!(next.scheme_str(), Some("https"));
            }
        }
    }
}
