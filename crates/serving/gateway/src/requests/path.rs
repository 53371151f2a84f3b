//! Paths of requests that stay below the paths of the upstreams.
//!
//! With `--to http://host/team`, clients may reach what is below `/team` and nothing else. How an upstream resolves a path
//! is not known: it may decode it more than once, take backslashes for slashes, or ignore parameters of a segment. So a
//! path that leads upward by any of these readings is rejected.

use std::borrow::Cow;

use cudock_server::HttpRejection;
use hyper::Uri;
use hyper::http::uri::PathAndQuery;

use crate::upstreams::url::UpstreamUrl;

/// How often a path is decoded to find segments that lead upward.
const MAX_DECODES: usize = 3;
/// Longest path with its query that a request can have.
const MAX_LENGTH: usize = u16::MAX as usize - 1;

/// The path and query of a request, which cannot leave the path of any upstream.
#[derive(Clone, Debug)]
pub(crate) struct ConfinedPath(PathAndQuery);

impl ConfinedPath {
    pub(crate) fn new(path: PathAndQuery, upstreams: &[UpstreamUrl]) -> Result<Self, HttpRejection> {
        let longest = upstreams.iter().map(|upstream| upstream.prefix().len()).max().unwrap_or(0);
        if longest == 0 {
            return Ok(Self(path));
        }
        let reason = if !path.path().starts_with('/') || leads_upward(path.path()) {
            "the path leaves that of the server"
        } else if path.as_str().len() + longest > MAX_LENGTH {
            "the path is too long"
        } else {
            return Ok(Self(path));
        };
        Err(HttpRejection::BadRequest(reason.to_owned()))
    }

    pub(crate) fn get(&self) -> &PathAndQuery {
        &self.0
    }

    /// The target of a request for this path, as an upstream sees it.
    pub(crate) fn target(&self, upstream: &UpstreamUrl) -> Uri {
        if upstream.prefix().is_empty() {
            return Uri::from(self.0.clone());
        }
        // Two valid paths make one if it is not too long, which has been checked; a query stays where it was.
        let target = PathAndQuery::try_from(format!("{}{}", upstream.prefix(), self.0));
        Uri::from(target.unwrap_or_else(|_| upstream.prefix_path.clone()))
    }
}

/// Whether a path has a segment for the parent directory, by any reading.
fn leads_upward(path: &str) -> bool {
    let mut text = Cow::Borrowed(path.as_bytes());
    for _ in 0..MAX_DECODES {
        if text.split(|byte| matches!(byte, b'/' | b'\\')).any(is_parent) {
            return true;
        }
        if !text.contains(&b'%') {
            return false;
        }
        text = Cow::Owned(percent_decoded(&text));
    }
    // What is still encoded is not read by anyone.
    text.split(|byte| matches!(byte, b'/' | b'\\')).any(is_parent)
}

/// Whether a segment is `..`, without its parameters and what some servers trim.
fn is_parent(segment: &[u8]) -> bool {
    let name = segment.split(|byte| *byte == b';').next().unwrap_or_default();
    let is_kept = |byte: &u8| *byte > b' ' && *byte != 0x7f;
    name.iter().filter(|byte| is_kept(byte)).eq(b"..")
}

fn percent_decoded(text: &[u8]) -> Vec<u8> {
    let digit = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let value = digit(after.first()).zip(digit(after.get(1)));
        let value = value.and_then(|(high, low)| u8::try_from(high * 16 + low).ok());
        let value = value.filter(|_| *first == b'%');
        decoded.push(value.unwrap_or(*first));
        rest = if value.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    decoded
}

#[cfg(test)]
mod tests {
    use cudock_testkit::random::{Random, cases, seed};

    use super::*;

    /// Texts of which paths that lead upward are made.
    const PARTS: [&str; 22] = [
        "/", "/", "/", "..", ".", ".", "a", "bc", "%2e", "%2E", "%2e%2e", ".%2e", "%2f", "%2F", "\\", "%5c",
        "%252e", "%252f", ";", ";x=1", "%20", "%00",
    ];

    /// Where a server ends that reads a path in one of these ways; `None` if that is above the first segment.
    fn resolved(path: &str, decodes: usize, backslashes: bool, parameters: bool) -> Option<Vec<String>> {
        let mut text = path.to_owned();
        for _ in 0..decodes {
            for (code, character) in [
                ("%2e", "."),
                ("%2E", "."),
                ("%2f", "/"),
                ("%2F", "/"),
                ("%5c", "\\"),
                ("%20", " "),
                ("%00", "\0"),
            ] {
                text = text.replace(code, character);
            }
            text = text.replace("%25", "%");
        }
        if backslashes {
            text = text.replace('\\', "/");
        }
        let mut segments = Vec::new();
        for segment in text.split('/').skip(1) {
            let segment = if parameters { segment.split(';').next().unwrap() } else { segment };
            match segment.trim_end_matches([' ', '\0']) {
                ".." => _ = segments.pop()?,
                "" | "." => {}
                name => segments.push(name.to_owned()),
            }
        }
        Some(segments)
    }

    fn upstreams() -> [UpstreamUrl; 2] {
        ["http://a", "http://b/team"].map(|url| url.parse().unwrap())
    }

    #[test]
    fn no_reading_of_an_accepted_path_leads_out_of_the_path_of_the_upstream() {
        let mut random = Random::new(seed());
        let (mut accepted, mut upward) = (0, 0);
        for _ in 0..cases(5000) {
            let parts: String = (0..random.below(8)).map(|_| *random.pick(&PARTS)).collect();
            let Ok(path) = format!("/{parts}").parse::<PathAndQuery>() else { continue };
            let ways = (0..4).flat_map(|decodes| {
                [(false, false), (false, true), (true, false), (true, true)]
                    .map(|(backslashes, parameters)| (decodes, backslashes, parameters))
            });
            let is_safe = ways.clone().all(|(decodes, backslashes, parameters)| {
                let below = resolved(&format!("/team/{parts}"), decodes, backslashes, parameters);
                below.is_some_and(|segments| segments.first().is_some_and(|first| first == "team"))
            });
            let is_accepted = ConfinedPath::new(path, &upstreams()).is_ok();
            assert!(is_safe || !is_accepted, "/{parts}");
            accepted += usize::from(is_accepted);
            upward += usize::from(!is_safe);
        }
        assert!(accepted > 0 && upward > 0, "{accepted} {upward}");
    }

    #[test]
    fn ordinary_paths_are_accepted() {
        for path in [
            "/",
            "/predict?to=/../x",
            "/a..b/..c/d.../...",
            "/v1/models/m:predict",
            "/100%25",
            "/%zz",
            "/a;b=../c",
        ] {
            let confined = ConfinedPath::new(path.parse().unwrap(), &upstreams());
            assert_eq!(confined.map(|path| path.get().to_string()), Ok(path.to_owned()));
        }
    }

    #[test]
    fn a_path_that_does_not_fit_or_has_no_slash_is_rejected_only_below_a_path() {
        let long = format!("/{}", "a".repeat(MAX_LENGTH - 4));
        let roots = upstreams().map(|upstream| UpstreamUrl::clone(&upstream));
        let [root, _] = &roots;
        for path in [long.as_str(), "*", "/../up"] {
            let path: PathAndQuery = path.parse().unwrap();
            assert!(ConfinedPath::new(path.clone(), &roots).is_err(), "{path:.20}");
            assert!(ConfinedPath::new(path, std::slice::from_ref(root)).is_ok());
        }
    }

    #[test]
    fn paths_are_appended_to_that_of_the_upstream() {
        for (upstream, path, target) in [
            ("host", "/predict?a=1", "/predict?a=1"),
            ("http://host/team/", "/predict?a=1", "/team/predict?a=1"),
            ("http://host/team", "/", "/team/"),
        ] {
            let url: UpstreamUrl = upstream.parse().unwrap();
            let path = ConfinedPath::new(path.parse().unwrap(), std::slice::from_ref(&url)).unwrap();
            assert_eq!(path.target(&url).to_string(), target);
        }
    }
}
