//! Variables on their way to a container without being on any command line.
//!
//! There are two ways, and neither is good for all. A file with a line for each variable is read by every version of
//! the engines in its own manner as soon as quotation marks, `#` or line ends are in it. A variable of the engine's own
//! command arrives as it is, but some change what that command does: its `PATH`, its `HOME`, its daemon. So plain
//! values go by the file, and others by the environment, unless the command would heed them itself.

use crate::error::RuntimeError;

/// Lines longer than this are an error to some engines.
const LONGEST_LINE: usize = 32 << 10;

/// Names that the engines' commands, the libraries they are made of or their loader heed.
const HEEDED: [&str; 9] =
    ["HOME", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "PATH", "TERM", "TMPDIR", "TZ", "USER"];
/// And beginnings of such names.
const HEEDED_PREFIXES: [&str; 18] = [
    "_",
    "BUILDAH",
    "BUILDKIT",
    "COMPOSE_",
    "CONMON",
    "CONTAINER",
    "DBUS_",
    "DOCKER",
    "GO",
    "LC_",
    "LD_",
    "LISTEN_",
    "NOTIFY_",
    "OTEL_",
    "PODMAN",
    "REGISTRY",
    "SSL",
    "XDG_",
];

/// Variables, each on one of the ways.
#[derive(Default, PartialEq, Eq)]
pub(super) struct Sorted {
    /// The file's text.
    pub(super) lines: String,
    /// Those for the environment of the engine's command.
    pub(super) named: Vec<(String, String)>,
}

/// Sorts variables onto the ways. Of two with one name the last counts.
pub(super) fn sort(engine: &str, variables: &[(String, String)]) -> Result<Sorted, RuntimeError> {
    let mut sorted = Sorted::default();
    for (index, (name, value)) in variables.iter().enumerate() {
        let again =
            variables.get(index + 1..).is_some_and(|rest| rest.iter().any(|(later, _)| later == name));
        if again {
            continue;
        }
        if !is_name(name) || value.contains('\0') {
            return Err(RuntimeError::Request(format!(
                "{engine} takes no variable with the name {name:?}, or its value"
            )));
        }
        if is_plain(value) && name.len() + value.len() < LONGEST_LINE {
            sorted.lines.extend([name, "=", value, "\n"]);
        } else if is_heeded(name) {
            return Err(RuntimeError::Request(format!(
                "{engine} cannot be given {name} with this value: write it without quotation marks, #, $, backslashes, \
                 line ends and spaces around it, or leave --engine out"
            )));
        } else {
            sorted.named.push((name.clone(), value.clone()));
        }
    }
    Ok(sorted)
}

/// Whether both ways take the name; podman reads a star at its end as a pattern.
fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .chars()
            .all(|letter| !letter.is_whitespace() && !letter.is_control() && !"=*#\"'".contains(letter))
}

/// Whether every engine reads a line with this value in the same manner.
fn is_plain(value: &str) -> bool {
    value.trim() == value && !value.chars().any(|letter| letter.is_control() || "\"'`#$\\".contains(letter))
}

fn is_heeded(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    HEEDED.contains(&name.as_str()) || HEEDED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(pairs: &[(&str, &str)]) -> Result<Sorted, RuntimeError> {
        let pairs: Vec<_> =
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        sort("podman", &pairs)
    }

    #[test]
    fn plain_values_are_lines_whatever_their_name() {
        let both = sorted(&[("PATH", "/bin:/sbin"), ("TOKEN", "a=b c"), ("EMPTY", "")]).unwrap();
        assert_eq!(both.lines, "PATH=/bin:/sbin\nTOKEN=a=b c\nEMPTY=\n");
        assert!(both.named.is_empty());
    }

    #[test]
    fn values_that_engines_read_differently_go_by_the_environment() {
        for value in
            ["two\nlines", "\"quoted\"", "it's", "a # b", " space", "space ", "back\\slash", "$HOME", "\r"]
        {
            let both = sorted(&[("KEY", value)]).unwrap();
            assert_eq!(both.lines, "", "{value:?}");
            assert_eq!(both.named, [("KEY".to_owned(), value.to_owned())]);
        }
        let long = "x".repeat(LONGEST_LINE);
        assert_eq!(sorted(&[("KEY", &long)]).unwrap().named.len(), 1);
    }

    #[test]
    fn what_the_engines_command_would_heed_is_never_in_its_environment() {
        for name in ["PATH", "HOME", "DOCKER_HOST", "CONTAINERS_CONF", "https_proxy", "LD_PRELOAD", "GODEBUG"]
        {
            let error = sorted(&[(name, "a'b")]).err().unwrap().to_string();
            assert!(error.starts_with(&format!("podman cannot be given {name} with this value")), "{error}");
            assert!(!error.contains("a'b"), "{error}");
        }
    }

    #[test]
    fn of_two_with_one_name_the_last_counts() {
        let both = sorted(&[("A", "1"), ("B", "2"), ("A", "x\ny")]).unwrap();
        assert_eq!(both.lines, "B=2\n");
        assert_eq!(both.named, [("A".to_owned(), "x\ny".to_owned())]);
    }

    #[test]
    fn names_that_an_engine_would_read_as_more_than_a_name_are_refused() {
        for name in ["", "A*", "A B", "#A", "A\nB", "A=B"] {
            assert!(sorted(&[(name, "1")]).is_err(), "{name:?}");
        }
    }
}
