//! Errors of a refresh.

use std::path::PathBuf;

use cudock_base::{ErrorKind, FileError, Report, did_you_mean};
use cudock_http::{CertificateError, HttpError, HttpErrorKind};
use thiserror::Error;

/// Why prices could not be refreshed. What was stored before stays as it was.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PricesError {
    /// The service did not send a page, after all attempts.
    #[error("prices of {region}, page {page}: {host}: {error}")]
    Service {
        region: String,
        page: u32,
        host: String,
        error: HttpError,
        /// How many of the requested regions are read and kept for another run.
        kept: usize,
    },
    #[error("`{name}` is not the name of a region, such as westeurope")]
    Region { name: String },
    /// A size that the tables do not have.
    #[error("unknown Azure size `{name}`")]
    Size { name: String, near: Vec<String> },
    #[error("no directory for the prices: neither --facts, CUDOCK_FACTS, XDG_CONFIG_HOME nor HOME is set")]
    NoDirectory,
    /// The existing table cannot be read, and would be lost.
    #[error("{}: {reason}", path.display())]
    Overlay { path: PathBuf, reason: String },
    /// The new table does not read back as written. It was not stored.
    #[error("the new {} is invalid: {reason}", path.display())]
    Check { path: PathBuf, reason: String },
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Certificates(#[from] CertificateError),
}

impl Report for PricesError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Service { .. } | Self::File(_) | Self::Check { .. } => ErrorKind::Outside,
            Self::Region { .. }
            | Self::Size { .. }
            | Self::NoDirectory
            | Self::Overlay { .. }
            | Self::Certificates(_) => ErrorKind::Input,
        }
    }

    fn hints(&self) -> Vec<String> {
        let hint = match self {
            Self::Service { host, error, kept, region, .. } => {
                let kept = match kept {
                    0 => "nothing was changed; re-run the same command to try again".to_owned(),
                    1 => "1 region was read and kept; re-run the same command to resume".to_owned(),
                    kept => format!("{kept} regions were read and kept; re-run the same command to resume"),
                };
                return vec![service_hint(error, host, region), kept];
            }
            Self::Region { .. } => "`cudock prices` lists the known regions",
            Self::Size { near, .. } => {
                let list = "`cudock facts size --all` lists the sizes".to_owned();
                return did_you_mean(near).into_iter().chain([list]).collect();
            }
            Self::NoDirectory => "name a directory with --facts DIR",
            Self::Overlay { .. } => "fix the table, or move it away to start from the embedded one",
            Self::Check { .. } => "the existing table is unchanged; please report this",
            Self::File(error) if error.is_storage_full() => {
                "free some space; the existing table is unchanged"
            }
            Self::File(_) => "name a directory that you can write to with --facts DIR",
            Self::Certificates(_) => return Vec::new(),
        };
        vec![hint.to_owned()]
    }
}

fn service_hint(error: &HttpError, host: &str, region: &str) -> String {
    match (error.kind, error.retry_after) {
        (HttpErrorKind::Transient | HttpErrorKind::Permanent, _) => format!(
            "check that {host} is reachable, set HTTPS_PROXY if a proxy is needed, or name a mirror with --endpoint"
        ),
        (HttpErrorKind::Certificate, _) => {
            "if the certificate is from a private authority, set SSL_CERT_FILE to the file of that authority"
                .to_owned()
        }
        (HttpErrorKind::Status(429), Some(wait)) => format!("try again in {} s", wait.as_secs()),
        (HttpErrorKind::Status(429), None) => "try again in a few minutes".to_owned(),
        (HttpErrorKind::Status(400..=499), _) => {
            format!("check that {host} is the price service, and {region} a region that it knows")
        }
        (HttpErrorKind::Status(_), _) => "try again later, or name a mirror with --endpoint".to_owned(),
        (
            HttpErrorKind::PlainHttp
            | HttpErrorKind::Refused
            | HttpErrorKind::TooLarge
            | HttpErrorKind::Malformed,
            _,
        ) => {
            format!("check what {host} sends, or exclude {region} by naming the other regions with --region")
        }
    }
}
