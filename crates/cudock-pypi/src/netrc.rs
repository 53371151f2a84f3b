//! Credentials by host, as `~/.netrc` holds them for pip, curl and git.

use cudock_base::{Environment, Secret, files};
use cudock_http::basic_authorization;

use crate::env::{MAX_CONFIG, NETRC};

/// The credentials of a netrc file. Their passwords do not print.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Netrc {
    entries: Vec<Entry>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Entry {
    /// None is the default for all hosts.
    host: Option<String>,
    user: String,
    password: Option<Secret>,
}

impl Netrc {
    /// The file that `NETRC` names, else `~/.netrc`, else `~/_netrc`. One that cannot be read or is damaged counts as
    /// empty, as pip has it: an index that needs no sign-in shall work all the same.
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

    /// Reads a file's text, as far as it can be read.
    pub fn parse(text: &str) -> Self {
        let mut netrc = Self::default();
        let mut words = Words { rest: text };
        while let Some(word) = words.next() {
            match word.as_str() {
                "machine" => {
                    let Some(host) = words.next() else { break };
                    netrc.entries.push(Entry { host: Some(host), ..Entry::default() });
                }
                "default" => netrc.entries.push(Entry::default()),
                "macdef" => words.skip_macro(),
                "login" | "user" | "account" | "password" => {
                    let Some(value) = words.next() else { break };
                    match (word.as_str(), netrc.entries.last_mut()) {
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

/// Words between blanks, in quotes where they hold some; `#` begins a comment that ends with its line.
struct Words<'a> {
    rest: &'a str,
}

impl Iterator for Words<'_> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        loop {
            self.rest = self.rest.trim_start();
            match self.rest.strip_prefix('#') {
                Some(comment) => self.rest = comment.split_once('\n').map_or("", |(_, rest)| rest),
                None => break,
            }
        }
        let mut word = String::new();
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
                '\\' => word.extend(characters.next().map(|(_, c)| c)),
                c if c.is_whitespace() && !is_quoted => {
                    end = at;
                    break;
                }
                c => word.push(c),
            }
        }
        self.rest = self.rest.get(end..).unwrap_or_default();
        Some(word)
    }
}

impl Words<'_> {
    /// A macro ends with an empty line.
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
