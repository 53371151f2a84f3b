//! Access to the files of a build context.

use cudock_base::bug::Parts;

pub(super) use cudock_base::text::path::{join, parent};

/// The files of a build context. Paths are relative to its root, with `/` and without `.` or `..`.
pub trait Files: Sync {
    /// The text of a file; `None` if it does not exist or is too large.
    fn text(&self, path: &str) -> Option<String>;

    /// All files at or below a path; the path itself if it is a file. Implementations bound how many they list.
    fn below(&self, path: &str) -> Vec<String>;
}

/// An empty build context.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFiles;

impl Files for NoFiles {
    fn text(&self, _: &str) -> Option<String> {
        None
    }

    fn below(&self, _: &str) -> Vec<String> {
        Vec::new()
    }
}

/// Whether a name matches a pattern with `*` and `?`, as in `COPY requirements*.txt`. A `*` does not match a `/`.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut at, mut seen) = (0, 0);
    // Backtracking: after the last star, with one more byte matched by it.
    let mut resume: Option<(usize, usize)> = None;
    while let Some(byte) = name.get(seen) {
        match pattern.get(at) {
            Some(b'*') => {
                resume = Some((at + 1, seen));
                at += 1;
            }
            Some(wanted) if wanted == byte || (*wanted == b'?' && *byte != b'/') => {
                at += 1;
                seen += 1;
            }
            _ => match resume {
                Some((star, taken)) if name.get(taken) != Some(&b'/') => {
                    resume = Some((star, taken + 1));
                    (at, seen) = (star, taken + 1);
                }
                _ => return false,
            },
        }
    }
    pattern.part(at..).iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_copy() {
        let cases = [
            ("requirements*.txt", "requirements.txt", true),
            ("requirements*.txt", "requirements-gpu.txt", true),
            ("*.txt", "a/b.txt", false),
            ("a?c", "abc", true),
            ("a?c", "a/c", false),
            ("*", "abc", true),
            ("*a*b*c", "xxaxxbxxc", true),
            ("*a*b*c", "xxaxxcxxb", false),
        ];
        for (pattern, name, expected) in cases {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
