//! Connections that nobody else can read.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::settings::TlsFiles;

/// A certificate or key that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The certificate cannot be read.
    #[error("cannot read the certificate {}: {reason}", files.certificate.display())]
    Certificate {
        /// The files.
        files: TlsFiles,
        /// Why not.
        reason: String,
    },
    /// The key cannot be read.
    #[error("cannot read the key {}: {reason}", files.key.display())]
    Key {
        /// The files.
        files: TlsFiles,
        /// Why not.
        reason: String,
    },
    /// They do not belong together.
    #[error("{} and {} cannot be used together", files.certificate.display(), files.key.display())]
    Pair {
        /// The files.
        files: TlsFiles,
        /// Why not.
        source: rustls::Error,
    },
}

/// What turns a connection into a private one.
pub(crate) fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor, TlsError> {
    let wrong = |reason: String| TlsError::Certificate { files: files.clone(), reason };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(&files.certificate)
        .and_then(Iterator::collect)
        .map_err(|error| wrong(error.to_string()))?;
    if chain.is_empty() {
        return Err(wrong("it holds no certificate".to_owned()));
    }
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|error| TlsError::Key { files: files.clone(), reason: error.to_string() })?;
    let pair = |source| TlsError::Pair { files: files.clone(), source };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(pair)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(pair)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
