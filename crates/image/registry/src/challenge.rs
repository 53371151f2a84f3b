//! The challenges in a registry's `WWW-Authenticate` header.

use cudock_base::bug::Parts;

/// A way to sign in that we know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Challenge {
    /// User and password with every request.
    Basic,
    /// A token from `realm`.
    Bearer { realm: String, service: Option<String>, scope: Option<String> },
}

/// The best challenge among all headers of an answer: Bearer before Basic, and none if we know none of them.
pub(crate) fn best<'a>(headers: impl IntoIterator<Item = &'a str>) -> Option<Challenge> {
    let mut basic = false;
    for header in headers {
        for (scheme, parameters) in challenges(header) {
            let find = |name: &str| {
                let found = parameters.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
                found.map(|(_, value)| value.clone())
            };
            if scheme.eq_ignore_ascii_case("bearer") {
                if let Some(realm) = find("realm") {
                    return Some(Challenge::Bearer { realm, service: find("service"), scope: find("scope") });
                }
            } else if scheme.eq_ignore_ascii_case("basic") {
                basic = true;
            }
        }
    }
    basic.then_some(Challenge::Basic)
}

type Parameters = Vec<(String, String)>;

/// Splits a header into schemes with their parameters. What cannot be read is passed over: the header comes from
/// outside, and a challenge that is not understood is simply not answered.
fn challenges(header: &str) -> Vec<(String, Parameters)> {
    let mut found: Vec<(String, Parameters)> = Vec::new();
    let mut rest = header;
    loop {
        rest = rest.trim_start_matches(|c| !is_token(c));
        if rest.is_empty() {
            return found;
        }
        let end = rest.find(|c: char| !is_token(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        if let Some(value) = after.trim_start().strip_prefix('=') {
            let (value, after) = parameter_value(value.trim_start());
            if let Some((_, parameters)) = found.last_mut() {
                parameters.push((word.to_owned(), value));
            }
            rest = after;
        } else {
            found.push((word.to_owned(), Vec::new()));
            rest = after;
        }
    }
}

fn parameter_value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([',', ' ', '\t']).unwrap_or(text.len());
        let (value, after) = text.split_at(end);
        return (value.to_owned(), after);
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '"' => return (value, quoted.part(at + 1..)),
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            c => value.push(c),
        }
    }
    (value, "")
}

fn is_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bearer_challenge_is_read_with_its_quotes_and_commas() {
        let header = r#"Bearer realm="https://auth.example.com/token",service="a \"b\", c",scope="repository:x/y:pull,push""#;
        assert_eq!(
            best([header]),
            Some(Challenge::Bearer {
                realm: "https://auth.example.com/token".to_owned(),
                service: Some("a \"b\", c".to_owned()),
                scope: Some("repository:x/y:pull,push".to_owned()),
            })
        );
    }

    #[test]
    fn bearer_is_taken_before_basic_in_one_header_or_two() {
        let is_bearer =
            |headers: &[&str]| matches!(best(headers.iter().copied()), Some(Challenge::Bearer { .. }));
        assert!(is_bearer(&[r#"Basic realm="a", Bearer realm="https://b""#]));
        assert!(is_bearer(&[r#"basic realm="a""#, r"BEARER Realm=https://b"]));
        assert_eq!(best([r#"Basic realm="a""#]), Some(Challenge::Basic));
        assert_eq!(best(["Negotiate", "Bearer"]), None);
    }

    #[test]
    fn broken_headers_end_without_an_answer() {
        for header in
            ["", ",,,", "=", "\"", "Bearer realm=\"", "Bearer realm=\"a\\", "é=é", "Bearer =x", "a==\"\""]
        {
            let _ = best([header]);
        }
        assert_eq!(best(["\"Bearer"]), None);
    }
}
