//! TLS to upstreams.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

/// Certificates that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamTlsError {
    #[error("cannot read the certificates {}: {reason}", path.display())]
    Certificates { path: PathBuf, reason: String },
    #[error("cannot set up TLS: {0}")]
    Config(#[from] rustls::Error),
}

/// Verifies upstreams by the public certificate authorities, or by those of a PEM file alone.
pub(crate) fn connector(authorities: Option<&Path>) -> Result<TlsConnector, UpstreamTlsError> {
    let mut roots = RootCertStore::empty();
    if let Some(path) = authorities {
        let error = |reason: String| UpstreamTlsError::Certificates { path: path.to_owned(), reason };
        let certificates: Vec<_> = CertificateDer::pem_file_iter(path)
            .and_then(Iterator::collect)
            .map_err(|reason| error(reason.to_string()))?;
        for certificate in certificates {
            roots.add(certificate).map_err(|reason| error(reason.to_string()))?;
        }
        if roots.is_empty() {
            return Err(error("no certificate found".to_owned()));
        }
    } else {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}
