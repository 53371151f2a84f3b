//! Which program gives the way out.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{Error, Result};

/// A program that connects a namespace to the host's network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// Of the package `passt`.
    Pasta,
    /// Its forerunner.
    Slirp4netns,
}

impl fmt::Display for Tool {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Pasta => "pasta",
            Self::Slirp4netns => "slirp4netns",
        })
    }
}

/// A program that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Which it is.
    pub tool: Tool,
    /// Where it is.
    pub path: PathBuf,
}

/// Where distributions put them, should the search path not say so.
const USUAL: [&str; 4] = ["/usr/local/bin", "/usr/bin", "/usr/local/sbin", "/usr/sbin"];

impl Found {
    /// Looks for pasta, then for slirp4netns, along a search path (the value of `PATH`) and in the usual places.
    pub fn search(path: Option<&OsStr>) -> Result<Self> {
        let given = path.into_iter().flat_map(std::env::split_paths).filter(|one| one.is_absolute());
        let directories: Vec<PathBuf> = given.chain(USUAL.iter().map(PathBuf::from)).collect();
        Self::search_in(&directories)
    }

    /// The same in these directories alone.
    pub fn search_in(directories: &[PathBuf]) -> Result<Self> {
        let of = |tool: Tool| {
            let candidates = directories.iter().map(|directory| directory.join(tool.to_string()));
            candidates.into_iter().find(|path| is_program(path)).map(|path| Self { tool, path })
        };
        of(Tool::Pasta).or_else(|| of(Tool::Slirp4netns)).ok_or(Error::NoOutbound)
    }

    /// The version it says it has: the first line of what it answers, without its name. Debian's pasta answers that it
    /// does not know.
    pub fn version(&self) -> Result<String> {
        let answer = Command::new(&self.path)
            .arg("--version")
            .stdin(Stdio::null())
            .output()
            .map_err(|source| Error::Start { program: self.path.display().to_string(), source })?;
        Ok(read_version(self.tool, &String::from_utf8_lossy(&answer.stdout)))
    }
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

/// `pasta 0.0~git20230309…`, `slirp4netns version 1.2.0`.
fn read_version(tool: Tool, answer: &str) -> String {
    let line = answer.lines().next().unwrap_or_default().trim();
    let named = line.strip_prefix(&tool.to_string()).unwrap_or(line).trim_start();
    named.strip_prefix("version ").unwrap_or(named).to_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

    use std::fs;

    use super::*;

    #[test]
    fn the_version_is_what_follows_the_name() {
        assert_eq!(
            read_version(Tool::Pasta, "pasta 0.0~git20230309.7c7625d-1\nCopyright\n"),
            "0.0~git20230309.7c7625d-1"
        );
        assert_eq!(read_version(Tool::Slirp4netns, "slirp4netns version 1.2.0\ncommit: x\n"), "1.2.0");
        assert_eq!(read_version(Tool::Pasta, ""), "");
    }

    #[test]
    fn pasta_is_taken_before_slirp_and_a_file_that_cannot_run_not_at_all() {
        let directory = tempfile::tempdir().unwrap();
        let places = [directory.path().to_owned()];
        let put = |name: &str, mode| {
            let path = directory.path().join(name);
            fs::write(&path, "").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        };
        let missing = Found::search_in(&places).unwrap_err().to_string();
        assert!(missing.ends_with("hint: apt-get install passt, or --network host"), "{missing}");
        put("slirp4netns", 0o755);
        put("pasta", 0o644);
        assert_eq!(Found::search_in(&places).unwrap().tool, Tool::Slirp4netns);
        put("pasta", 0o755);
        assert_eq!(Found::search_in(&places).unwrap().tool, Tool::Pasta);
    }
}
