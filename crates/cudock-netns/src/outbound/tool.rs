//! Finds the tool for outbound connections.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{NetnsError, Result};

/// A tool that connects a namespace to the host's networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// pasta, of the package `passt`.
    Pasta,
    /// Its predecessor.
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

/// An installed tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboundTool {
    pub tool: Tool,
    /// The path of the executable.
    pub path: PathBuf,
}

/// Usual directories, in addition to the search path.
const USUAL_DIRECTORIES: [&str; 4] = ["/usr/local/bin", "/usr/bin", "/usr/local/sbin", "/usr/sbin"];

impl OutboundTool {
    /// Searches for pasta, then for slirp4netns, along a search path (the value of `PATH`) and in the usual directories.
    pub fn search(path: Option<&OsStr>) -> Result<Self> {
        let given = path.into_iter().flat_map(std::env::split_paths).filter(|one| one.is_absolute());
        let directories: Vec<PathBuf> = given.chain(USUAL_DIRECTORIES.iter().map(PathBuf::from)).collect();
        Self::search_in(&directories)
    }

    /// Searches only these directories.
    fn search_in(directories: &[PathBuf]) -> Result<Self> {
        let of = |tool: Tool| {
            let candidates = directories.iter().map(|directory| directory.join(tool.to_string()));
            candidates.into_iter().find(|path| is_program(path)).map(|path| Self { tool, path })
        };
        of(Tool::Pasta).or_else(|| of(Tool::Slirp4netns)).ok_or(NetnsError::NoOutbound)
    }

    /// The version: the first line of `--version`, without the name. Debian's pasta reports an unknown version.
    pub fn version(&self) -> Result<String> {
        let output = Command::new(&self.path)
            .arg("--version")
            .stdin(Stdio::null())
            .output()
            .map_err(|source| NetnsError::Start { program: self.path.display().to_string(), source })?;
        Ok(read_version(self.tool, &String::from_utf8_lossy(&output.stdout)))
    }
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

/// Parses `pasta 0.0~git20230309…` or `slirp4netns version 1.2.0`.
fn read_version(tool: Tool, output: &str) -> String {
    let line = output.lines().next().unwrap_or_default().trim();
    let named = line.strip_prefix(&tool.to_string()).unwrap_or(line).trim_start();
    named.strip_prefix("version ").unwrap_or(named).to_owned()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_version_follows_the_name() {
        assert_eq!(
            read_version(Tool::Pasta, "pasta 0.0~git20230309.7c7625d-1\nCopyright\n"),
            "0.0~git20230309.7c7625d-1"
        );
        assert_eq!(read_version(Tool::Slirp4netns, "slirp4netns version 1.2.0\ncommit: x\n"), "1.2.0");
        assert_eq!(read_version(Tool::Pasta, ""), "");
    }

    #[test]
    fn pasta_is_preferred_and_files_that_are_not_executable_are_ignored() {
        let directory = tempfile::tempdir().unwrap();
        let directories = [directory.path().to_owned()];
        let put = |name: &str, mode| {
            let path = directory.path().join(name);
            fs::write(&path, "").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        };
        let missing = OutboundTool::search_in(&directories).unwrap_err().to_string();
        assert!(missing.ends_with("hint: apt-get install passt, or --network host"), "{missing}");
        put("slirp4netns", 0o755);
        put("pasta", 0o644);
        assert_eq!(OutboundTool::search_in(&directories).unwrap().tool, Tool::Slirp4netns);
        put("pasta", 0o755);
        assert_eq!(OutboundTool::search_in(&directories).unwrap().tool, Tool::Pasta);
    }
}
