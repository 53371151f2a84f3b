//! Finds the tool for outbound connections.

use std::ffi::OsStr;
use std::fmt;
use std::path::PathBuf;

use cudock_base::files::is_executable;

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

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboundTool {
    pub tool: Tool,
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

    fn search_in(directories: &[PathBuf]) -> Result<Self> {
        let of = |tool: Tool| {
            let candidates = directories.iter().map(|directory| directory.join(tool.to_string()));
            candidates.into_iter().find(|path| is_executable(path)).map(|path| Self { tool, path })
        };
        of(Tool::Pasta).or_else(|| of(Tool::Slirp4netns)).ok_or(NetnsError::NoOutbound)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

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
