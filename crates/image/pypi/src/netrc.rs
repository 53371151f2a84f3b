//! Reads credentials by host from `~/.netrc`, as pip, curl and git do.

use cudock_base::{Environment, Secret, files};
use cudock_http::basic_authorization;

use crate::env::{MAX_CONFIG, NETRC};

/// The credentials of a netrc file. Their passwords do not print.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Netrc {
    entries: Vec<NetrcEntry>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct NetrcEntry {
    /// `None` for the default of all hosts.
    host: Option<String>,
    user: String,
    password: Option<Secret>,
}

impl Netrc {
    /// Reads the file that `NETRC` names, else `~/.netrc`, else `~/_netrc`. An unreadable or invalid file counts as empty,
    /// as in pip: an index without credentials must still work.
    pub fn from_environment(environment: &Environment) -> Self {
        let files = match environment.path(NETRC) {
            Some(file) => vec![file],
            None => environment
                .home()
                .map_or_else(Vec::new, |home| vec![home.join(".netrc"), home.join("_netrc")]),
        };
        files
            .iter()
            .find_map(|file| files::read_optional(file, MAX_CONFIG).ok().flatten())
            .map_or_else(Self::default, |text| Self::parse(&text))
    }

    /// Parses a file's text up to the first error.
    pub fn parse(text: &str) -> Self {
        let mut netrc = Self::default();
        let mut tokens = NetrcTokens { rest: text };
        while let Some(token) = tokens.next() {
            match token.as_str() {
                "machine" => {
                    let Some(host) = tokens.next() else { break };
                    netrc.entries.push(NetrcEntry { host: Some(host), ..NetrcEntry::default() });
                }
                "default" => netrc.entries.push(NetrcEntry::default()),
                "macdef" => tokens.skip_macro(),
                "login" | "user" | "account" | "password" => {
                    let Some(value) = tokens.next() else { break };
                    match (token.as_str(), netrc.entries.last_mut()) {
                        ("login" | "user", Some(entry)) => entry.user = value,
                        ("password", Some(entry)) => entry.password = Some(Secret::new(value)),
                        _ => {}
                    }
                }
                _ => break,
            }
        }
        netrc
    }

    /// The header to send to a host, without its port.
    pub(crate) fn authorization(&self, host: &str) -> Option<Secret> {
        let named = self
            .entries
            .iter()
            .find(|entry| entry.host.as_deref().is_some_and(|named| named.eq_ignore_ascii_case(host)));
        let entry = named.or_else(|| self.entries.iter().find(|entry| entry.host.is_none()))?;
        Some(basic_authorization(&entry.user, entry.password.as_ref()?.expose()))
    }
}

/// Splits by whitespace, outside quotes; `#` starts a comment to the end of the line.
struct NetrcTokens<'a> {
    rest: &'a str,
}

impl Iterator for NetrcTokens<'_> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        loop {
            self.rest = self.rest.trim_start();
            match self.rest.strip_prefix('#') {
                Some(comment) => self.rest = comment.split_once('\n').map_or("", |(_, rest)| rest),
                None => break,
            }
        }
        let mut token = String::new();
        let mut characters = self.rest.char_indices();
        let (_, first) = characters.next()?;
        let is_quoted = first == '"';
        if !is_quoted {
            characters = self.rest.char_indices();
        }
        let mut end = self.rest.len();
        while let Some((at, c)) = characters.next() {
            match c {
                '"' if is_quoted => {
                    end = at + 1;
                    break;
                }
                '\\' => token.extend(characters.next().map(|(_, c)| c)),
                c if c.is_whitespace() && !is_quoted => {
                    end = at;
                    break;
                }
                c => token.push(c),
            }
        }
        self.rest = self.rest.get(end..).unwrap_or_default();
        Some(token)
    }
}

impl NetrcTokens<'_> {
    /// Skips a macro, which ends with an empty line.
    fn skip_macro(&mut self) {
        self.rest = self.rest.split_once("\n\n").map_or("", |(_, rest)| rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_finds_its_own_entry_before_the_default() {
        let netrc = Netrc::parse(
            "# mine\nmachine a.com login me password one\nmacdef init\n machine x.com login no password no\n\n\
             machine B.com\n  login you # ours\n  password \"two words\"\nmachine c.com login nobody\n\
             default login any password three\\\"",
        );
        for (host, header) in [
            ("a.com", Some(basic_authorization("me", "one"))),
            ("A.COM", Some(basic_authorization("me", "one"))),
            ("b.com", Some(basic_authorization("you", "two words"))),
            ("c.com", None),
            ("x.com", Some(basic_authorization("any", "three\""))),
        ] {
            assert_eq!(netrc.authorization(host), header, "{host}");
        }
        assert_eq!(Netrc::default().authorization("a.com"), None);
    }

    #[test]
    fn no_password_is_printed() {
        assert!(!format!("{:?}", Netrc::parse("machine a login b password swordfish")).contains("swordfish"));
    }

    #[test]
    fn a_damaged_file_is_read_as_far_as_it_goes() {
        assert_eq!(Netrc::parse("machine"), Netrc::default());
        assert_eq!(Netrc::parse("nonsense machine a login b password c"), Netrc::default());
        let cut = Netrc::parse("machine a login b password c\nmachine d login");
        assert_eq!(cut.authorization("a"), Some(basic_authorization("b", "c")));
        assert!(Netrc::parse("machine a login b password \"c").authorization("a").is_some());
    }
}
