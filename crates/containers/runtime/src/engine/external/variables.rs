//! How variables reach a container without being on a command line.
//!
//! Neither of the two channels is good for all. Versions of the engines parse a file with a line for each variable
//! differently if it contains quotes, `#` or line ends. A variable in the environment of the engine's command arrives
//! unchanged, but some affect the command itself, such as `PATH` or `HOME`. So plain values go into the file, and others into
//! the environment unless they would affect the command.

use crate::error::RuntimeError;

/// Some engines reject longer lines.
const MAX_LINE: usize = 32 << 10;

/// Names that affect the engines' commands, their libraries or their loader.
const RESERVED: [&str; 9] =
    ["HOME", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "PATH", "TERM", "TMPDIR", "TZ", "USER"];
/// Prefixes of such names.
const RESERVED_PREFIXES: [&str; 18] = [
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

#[derive(Default, PartialEq, Eq)]
pub(super) struct SortedVariables {
    pub(super) lines: String,
    /// Variables for the environment of the engine's command.
    pub(super) environment: Vec<(String, String)>,
}

/// Assigns variables to channels. The last of several with the same name wins.
pub(super) fn sort(engine: &str, variables: &[(String, String)]) -> Result<SortedVariables, RuntimeError> {
    let mut sorted = SortedVariables::default();
    for (index, (name, value)) in variables.iter().enumerate() {
        let overridden =
            variables.get(index + 1..).is_some_and(|rest| rest.iter().any(|(later, _)| later == name));
        if overridden {
            continue;
        }
        if !is_name(name) || value.contains('\0') {
            return Err(RuntimeError::Request(format!(
                "{engine} does not accept the variable {name:?} or its value"
            )));
        }
        if is_plain(value) && name.len() + value.len() < MAX_LINE {
            sorted.lines.extend([name, "=", value, "\n"]);
        } else if is_reserved(name) {
            return Err(RuntimeError::Request(format!(
                "{engine} cannot take {name} with this value: remove quotes, #, $, backslashes, line ends and leading or \
                 trailing spaces, or leave --engine out"
            )));
        } else {
            sorted.environment.push((name.clone(), value.clone()));
        }
    }
    Ok(sorted)
}

/// Whether both channels accept the name; podman treats a trailing star as a pattern.
fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .chars()
            .all(|letter| !letter.is_whitespace() && !letter.is_control() && !"=*#\"'".contains(letter))
}

/// Whether every engine parses a line with this value in the same way.
fn is_plain(value: &str) -> bool {
    value.trim() == value && !value.chars().any(|letter| letter.is_control() || "\"'`#$\\".contains(letter))
}

fn is_reserved(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    RESERVED.contains(&name.as_str()) || RESERVED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(pairs: &[(&str, &str)]) -> Result<SortedVariables, RuntimeError> {
        let pairs: Vec<_> =
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        sort("podman", &pairs)
    }

    #[test]
    fn plain_values_are_lines_whatever_their_name() {
        let both = sorted(&[("PATH", "/bin:/sbin"), ("TOKEN", "a=b c"), ("EMPTY", "")]).unwrap();
        assert_eq!(both.lines, "PATH=/bin:/sbin\nTOKEN=a=b c\nEMPTY=\n");
        assert!(both.environment.is_empty());
    }

    #[test]
    fn values_that_engines_parse_differently_go_into_the_environment() {
        for value in
            ["two\nlines", "\"quoted\"", "it's", "a # b", " space", "space ", "back\\slash", "$HOME", "\r"]
        {
            let both = sorted(&[("KEY", value)]).unwrap();
            assert_eq!(both.lines, "", "{value:?}");
            assert_eq!(both.environment, [("KEY".to_owned(), value.to_owned())]);
        }
        let long = "x".repeat(MAX_LINE);
        assert_eq!(sorted(&[("KEY", &long)]).unwrap().environment.len(), 1);
    }

    #[test]
    fn variables_that_affect_the_command_are_never_in_its_environment() {
        for name in ["PATH", "HOME", "DOCKER_HOST", "CONTAINERS_CONF", "https_proxy", "LD_PRELOAD", "GODEBUG"]
        {
            let error = sorted(&[(name, "a'b")]).err().unwrap().to_string();
            assert!(error.starts_with(&format!("podman cannot take {name} with this value")), "{error}");
            assert!(!error.contains("a'b"), "{error}");
        }
    }

    #[test]
    fn the_last_of_two_with_the_same_name_wins() {
        let both = sorted(&[("A", "1"), ("B", "2"), ("A", "x\ny")]).unwrap();
        assert_eq!(both.lines, "B=2\n");
        assert_eq!(both.environment, [("A".to_owned(), "x\ny".to_owned())]);
    }

    #[test]
    fn names_that_an_engine_would_interpret_are_rejected() {
        for name in ["", "A*", "A B", "#A", "A\nB", "A=B"] {
            assert!(sorted(&[(name, "1")]).is_err(), "{name:?}");
        }
    }
}
