//! What can go wrong between us, the price service and the disk.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use cudock_registry::RegistryError;
use thiserror::Error;

/// Why prices could not be renewed. What was stored before stays as it was, whatever happens.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PricesError {
    /// The service did not answer a question as it should, after all attempts.
    #[error("prices of {region}, page {page}: {host}: {reason}")]
    Service {
        /// The region that was asked for.
        region: String,
        /// The page, from 1.
        page: u32,
        /// Who was asked.
        host: String,
        /// What happened.
        reason: String,
        /// What kind of failure that is.
        why: Why,
        /// How many of the regions asked for are read and kept for another run.
        kept: usize,
    },
    /// A region's name cannot be one.
    #[error("`{name}` is not the name of a region, such as westeurope")]
    Region {
        /// What was given.
        name: String,
    },
    /// A size that the tables do not have.
    #[error("no Azure size is called `{name}`")]
    Size {
        /// What was given.
        name: String,
        /// The nearest names there are.
        near: Vec<String>,
    },
    /// No folder to write the table into.
    #[error("no folder for the prices: neither --facts, CUDOCK_FACTS, XDG_CONFIG_HOME nor HOME is set")]
    NoFolder,
    /// The table that is there cannot be read, and would be lost.
    #[error("{}: {reason}", path.display())]
    Overlay {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The table that was made does not read back as it was meant. It was not written.
    #[error("the new {} does not hold: {reason}", path.display())]
    Check {
        /// The file that would have been written.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The disk.
    #[error("cannot {doing} {}", path.display())]
    Disk {
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The client could not be set up: a bundle of certificates that cannot be read.
    #[error(transparent)]
    Client(#[from] RegistryError),
}

/// Kinds of failures of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// It cannot be reached, or breaks off.
    Unreachable,
    /// Its certificate is not trusted.
    Certificate,
    /// It was asked too often.
    TooOften(Option<Duration>),
    /// It answers with an error.
    Status(u16),
    /// It answers with something that is no price list.
    Protocol,
}

impl PricesError {
    /// What to do next, in one or two sentences each.
    pub fn hints(&self) -> Vec<String> {
        match self {
            Self::Service { host, why, kept, region, .. } => {
                let kept = match kept {
                    0 => "nothing was changed; the same command tries again".to_owned(),
                    1 => "1 region is read and kept; the same command goes on from there".to_owned(),
                    kept => format!("{kept} regions are read and kept; the same command goes on from there"),
                };
                vec![way_out(*why, host, region), kept]
            }
            Self::Region { .. } => vec!["`cudock prices` lists the regions that are known".to_owned()],
            Self::Size { near, .. } => {
                let near: Vec<String> = near.iter().map(|name| format!("`{name}`")).collect();
                let near = (!near.is_empty()).then(|| format!("did you mean {}?", near.join(" or ")));
                near.into_iter().chain(["`cudock facts size --all` lists the sizes".to_owned()]).collect()
            }
            Self::NoFolder => vec!["name a folder with --facts DIR".to_owned()],
            Self::Overlay { .. } => {
                vec!["correct the table, or move it away to begin with the embedded one".to_owned()]
            }
            Self::Check { .. } => {
                vec!["the table that was there is untouched; please report this".to_owned()]
            }
            Self::Disk { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                vec!["free some space; what was there is untouched".to_owned()]
            }
            Self::Disk { .. } => vec!["name a folder that you can write to with --facts DIR".to_owned()],
            Self::Client(error) => error.hint().into_iter().collect(),
        }
    }

    /// Whether the outside failed (true), or what we were given is wrong (false).
    pub fn is_outside(&self) -> bool {
        match self {
            Self::Service { .. } | Self::Disk { .. } | Self::Check { .. } => true,
            Self::Client(error) => error.is_outside(),
            Self::Region { .. } | Self::Size { .. } | Self::NoFolder | Self::Overlay { .. } => false,
        }
    }
}

fn way_out(why: Why, host: &str, region: &str) -> String {
    match why {
        Why::Unreachable => format!(
            "check that {host} can be reached from here, set HTTPS_PROXY if a proxy is needed, or name a mirror \
             with --endpoint"
        ),
        Why::Certificate => {
            "if its certificate is of an authority of your own, name that one's file in SSL_CERT_FILE"
                .to_owned()
        }
        Why::TooOften(Some(wait)) => format!("try again in {} s", wait.as_secs()),
        Why::TooOften(None) => "try again in some minutes".to_owned(),
        Why::Status(400..=499) => {
            format!("check that {host} is the price service, and {region} a region that it knows")
        }
        Why::Status(_) => "try again later, or name a mirror with --endpoint".to_owned(),
        Why::Protocol => format!(
            "look at what {host} sends, or leave {region} out by naming the other regions with --region"
        ),
    }
}
