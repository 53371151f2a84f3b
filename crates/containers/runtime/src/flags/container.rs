//! Names of containers, and directories on the command line.

use std::path::{Path, PathBuf};

use cudock_base::UsageError;

/// The image's name with a prefix of the container's id.
pub fn default_name(image: &str, id: &str) -> String {
    let last = image.trim_end_matches('/').rsplit(['/', ':']).find(|part| !part.is_empty());
    let before_tag = image.rsplit('/').next().and_then(|part| part.split([':', '@']).next());
    let base = before_tag.filter(|part| !part.is_empty()).or(last).unwrap_or("container");
    let allowed = |letter: &char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    let base: String = base.chars().filter(allowed).take(40).collect();
    let base = base.trim_start_matches(['-', '.', '_']);
    format!("{}-{}", if base.is_empty() { "container" } else { base }, id.get(..6).unwrap_or(id))
}

/// Whether a text is a valid name of a container or volume, by docker's rules.
pub(crate) fn is_docker_name(name: &str) -> bool {
    name.len() <= 128
        && name.starts_with(|letter: char| letter.is_ascii_alphanumeric())
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || "_.-".contains(letter))
}

pub fn check_name(name: &str) -> Result<(), UsageError> {
    if is_docker_name(name) {
        return Ok(());
    }
    Err(UsageError::new(format!("`{name}` is not a valid container name"))
        .hint("use letters, digits, dots, dashes and underscores, beginning with a letter or digit"))
}

/// The absolute path of an existing directory, since processes with another working directory use it later.
pub fn existing_directory(path: &Path) -> Result<PathBuf, UsageError> {
    let wrong = |error| UsageError::new(format!("cannot read {}: {error}", path.display()));
    let absolute = path.canonicalize().map_err(wrong)?;
    if absolute.is_dir() {
        Ok(absolute)
    } else {
        Err(UsageError::new(format!("{} is not a directory", path.display())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_taken_from_the_image() {
        assert_eq!(default_name("registry.example/team/app:1.4", "0123456789abcdef"), "app-012345");
        assert_eq!(default_name("oci:./layout", "0123456789abcdef"), "layout-012345");
        assert_eq!(default_name("rootfs:/tmp/debian", "0123456789abcdef"), "debian-012345");
        assert_eq!(default_name("app@sha256:00ff", "0123456789abcdef"), "app-012345");
        assert_eq!(default_name("::", "0123456789abcdef"), "container-012345");
    }

    #[test]
    fn names_are_what_docker_allows() {
        for name in ["a", "app-1", "A_b.c", "0"] {
            assert!(check_name(name).is_ok(), "{name}");
            assert!(check_name(&default_name(name, "0123456789")).is_ok(), "{name}");
        }
        for name in ["", "-a", ".", "a/b", "a b", &"a".repeat(129)] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
