//! Which names in archives are acceptable.

/// Maximum length of a path and of a name in file systems.
const MAX_PATH: usize = 4096;
const MAX_NAME: usize = 255;

/// Checks a path relative to a directory: it must stay inside, in one spelling only. The error says what is wrong.
pub fn check_path(path: &str) -> Result<(), String> {
    let refused = |reason: &str| {
        let shown = cudock_base::text::escape(path, 80);
        Err(format!("`{shown}` {reason}"))
    };
    if path.is_empty() {
        return refused("is an empty name");
    }
    if path.starts_with('/') {
        return refused("is an absolute path");
    }
    if path.len() > MAX_PATH {
        return refused("is too long");
    }
    if path.chars().any(|one| one == '\\' || one.is_control()) {
        return refused("has a backslash or a control character");
    }
    for part in path.split('/') {
        match part {
            ".." => return refused("leads out of its directory"),
            "" | "." => return refused("has an empty component"),
            _ if part.len() > MAX_NAME => return refused("is too long"),
            // These names delete files of lower layers.
            _ if part.starts_with(".wh.") => return refused("is a whiteout"),
            _ => {}
        }
    }
    Ok(())
}

/// Whether a symlink at `path` stays inside the root. An absolute target is relative to the image's root.
pub(crate) fn stays_inside(path: &str, target: &str) -> bool {
    let mut depth = if target.starts_with('/') { 0 } else { path.split('/').count() - 1 };
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." if depth == 0 => return false,
            ".." => depth -= 1,
            _ => depth += 1,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_relative_paths_are_accepted() {
        for good in ["a", "a/b.py", "a..b/c", "é", "a b/c", "..a"] {
            assert_eq!(check_path(good), Ok(()), "{good}");
        }
        for bad in ["", "/etc/passwd", "..", "a/../b", "../a", "a//b", "./a", "a/", "a\\b", "a\nb", ".wh.a"] {
            assert!(check_path(bad).is_err(), "{bad}");
        }
        assert!(check_path(&"a/".repeat(3000)).is_err());
        assert!(check_path(&"a".repeat(256)).is_err());
    }

    #[test]
    fn links_may_not_climb_above_the_root() {
        for (path, target, inside) in [
            ("lib/a.so", "a.so.1", true),
            ("usr/lib/a.so", "../../etc/a", true),
            ("usr/lib/a.so", "../../../etc/a", false),
            ("a", "..", false),
            ("a", "/etc/passwd", true),
            ("a", "/../etc", false),
            ("a/b", "c/../../../d", false),
        ] {
            assert_eq!(stays_inside(path, target), inside, "{path} -> {target}");
        }
    }
}
