//! Paths as text: in images, build contexts and archives, whatever this machine has at them.

/// The directory that a path is in; empty if it names none.
pub fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

/// The last part of a path.
pub fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Joins a path to a directory, without `.` and `..`; the result starts with `/`.
pub fn absolute(directory: &str, path: &str) -> String {
    let mut joined = normalized(directory, path);
    if joined.is_empty() {
        joined.push('/');
    }
    joined
}

/// Joins `path` to `directory`, without `.` and `..`. An absolute path stays itself; the result has no leading `/`.
pub fn join(directory: &str, path: &str) -> String {
    let mut joined = normalized(directory, path);
    joined.drain(..joined.len().min(1));
    joined
}

/// The parts of a path in a directory, each after a `/`.
fn normalized(directory: &str, path: &str) -> String {
    let start = if path.starts_with('/') { "" } else { directory };
    let mut joined = String::with_capacity(start.len() + path.len() + 2);
    for part in start.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => joined.truncate(joined.rfind('/').unwrap_or_default()),
            part => {
                joined.push('/');
                joined.push_str(part);
            }
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_joined_without_leaving_the_root() {
        let cases = [
            ("app", "requirements.txt", "app/requirements.txt"),
            ("app", "./a/../b.txt", "app/b.txt"),
            ("app", "../../etc/passwd", "etc/passwd"),
            ("app", "/srv/x", "srv/x"),
            ("", ".", ""),
        ];
        for (directory, path, joined) in cases {
            assert_eq!(join(directory, path), joined, "{directory} {path}");
        }
    }
}
