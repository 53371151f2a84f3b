//! What a user says after `--security-opt seccomp=`.

use std::convert::Infallible;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::str::FromStr;

use super::json::LARGEST_PROFILE;
use super::{Filter, Profile, Surroundings};
use crate::{Capability, Error};

/// Which filter a container gets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Choice {
    /// The default profile.
    #[default]
    Standard,
    /// None at all.
    Unconfined,
    /// A profile in docker's form.
    File(PathBuf),
}

/// `unconfined`, `builtin` (docker's word for its own profile), or the name of a file.
impl FromStr for Choice {
    type Err = Infallible;

    fn from_str(given: &str) -> Result<Self, Infallible> {
        Ok(match given {
            "unconfined" => Self::Unconfined,
            "" | "builtin" | "default" => Self::Standard,
            path => Self::File(path.into()),
        })
    }
}

impl Choice {
    /// The filter, or none where none is wanted, for a container that may ever have these capabilities.
    pub fn filter(&self, capabilities: &[Capability]) -> Result<Option<Filter>, Error> {
        match self {
            Self::Unconfined => Ok(None),
            Self::Standard => Filter::for_capabilities(capabilities).map(Some),
            Self::File(path) => {
                let read = || {
                    let mut bytes = Vec::new();
                    // One byte more than may be there tells a longer file from one that just fits.
                    File::open(path)?.take(LARGEST_PROFILE as u64 + 1).read_to_end(&mut bytes)?;
                    Ok(bytes)
                };
                let bytes = read().map_err(|source| Error::ProfileRead { path: path.clone(), source })?;
                let profile = Profile::from_json(&bytes)?;
                Filter::new(&profile, &Surroundings::here(capabilities)).map(Some)
            }
        }
    }
}
