//! Which certificate authorities are trusted.

use std::fs;
use std::path::{Path, PathBuf};

use cudock_base::{Environment, ErrorKind, Report};
use ureq::tls::{PemItem, RootCerts, parse_pem};

/// A bundle of certificates to trust instead of the system's.
pub const SSL_CERT_FILE: &str = "SSL_CERT_FILE";

/// The system's bundles of trusted certificates, by distribution.
const SYSTEM_BUNDLES: [&str; 4] = [
    "etc/ssl/certs/ca-certificates.crt",
    "etc/pki/tls/certs/ca-bundle.crt",
    "etc/ssl/ca-bundle.pem",
    "etc/ssl/cert.pem",
];

/// A bundle of certificates that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {reason}", file.display())]
pub struct CertificateError {
    /// The bundle.
    pub file: PathBuf,
    /// Description of the problem.
    pub reason: String,
}

impl Report for CertificateError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Input
    }
}

/// The bundle to trust: that of `SSL_CERT_FILE`, else the system's.
pub fn trusted_certificates(environment: &Environment) -> Option<PathBuf> {
    let system =
        || SYSTEM_BUNDLES.iter().map(|bundle| environment.system(bundle)).find(|path| path.is_file());
    environment.path(SSL_CERT_FILE).or_else(system)
}

pub(crate) fn read_bundle(file: &Path) -> Result<RootCerts, CertificateError> {
    let unusable = |reason: String| CertificateError { file: file.to_owned(), reason };
    let pem = fs::read(file).map_err(|error| unusable(format!("cannot be read: {error}")))?;
    let certificates: Vec<_> = parse_pem(&pem)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    if certificates.is_empty() {
        return Err(unusable("has no certificate in it".to_owned()));
    }
    Ok(RootCerts::new_with_certs(&certificates))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_without_certificates_is_refused_by_name() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("ca.pem");
        assert!(read_bundle(&file).unwrap_err().to_string().contains("ca.pem: cannot be read"));
        fs::write(&file, "nothing").unwrap();
        assert!(read_bundle(&file).unwrap_err().to_string().ends_with("has no certificate in it"));
    }

    #[test]
    fn the_variable_goes_before_the_system() {
        let root = tempfile::tempdir().unwrap();
        let system = root.path().join("etc/ssl/cert.pem");
        let environment = Environment::of(root.path(), [("", "")]);
        assert_eq!(trusted_certificates(&environment), None);
        fs::create_dir_all(system.parent().unwrap()).unwrap();
        fs::write(&system, "").unwrap();
        assert_eq!(trusted_certificates(&environment), Some(system));
        let named = Environment::of(root.path(), [(SSL_CERT_FILE, "/own.pem")]);
        assert_eq!(trusted_certificates(&named), Some("/own.pem".into()));
    }
}
