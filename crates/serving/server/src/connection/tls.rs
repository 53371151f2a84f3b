//! TLS.

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use cudock_base::{FileStamp, lock};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::settings::TlsFiles;

/// An error of certificate or key.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("cannot read the certificate {}: {reason}", files.certificate.display())]
    Certificate { files: TlsFiles, reason: String },
    #[error("cannot read the key {}: {reason}", files.key.display())]
    Key { files: TlsFiles, reason: String },
    #[error("certificate {} does not match key {}", files.certificate.display(), files.key.display())]
    Pair { files: TlsFiles, source: rustls::Error },
}

/// A TLS acceptor that follows changes of its files.
pub(crate) struct Tls {
    files: TlsFiles,
    stamps: Mutex<[Option<FileStamp>; 2]>,
    acceptor: RwLock<TlsAcceptor>,
}

impl Tls {
    pub(crate) fn new(files: &TlsFiles) -> Result<Self, TlsError> {
        let stamps = Mutex::new(stamps(files));
        Ok(Self { files: files.clone(), stamps, acceptor: RwLock::new(acceptor(files)?) })
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        self.acceptor.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reloads the files if they have changed, and returns whether they had. The previous certificate stays if they
    /// cannot be used. The two files change one after the other: as long as they do not match, they are tried again.
    pub(crate) fn refresh(&self) -> Result<bool, TlsError> {
        let now = stamps(&self.files);
        if *lock(&self.stamps) == now {
            return Ok(false);
        }
        let outcome = acceptor(&self.files);
        if !matches!(outcome, Err(TlsError::Pair { .. })) {
            *lock(&self.stamps) = now;
        }
        *self.acceptor.write().unwrap_or_else(PoisonError::into_inner) = outcome?;
        Ok(true)
    }
}

fn stamps(files: &TlsFiles) -> [Option<FileStamp>; 2] {
    [FileStamp::of(&files.certificate), FileStamp::of(&files.key)]
}

fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor, TlsError> {
    let certificate_error = |reason: String| TlsError::Certificate { files: files.clone(), reason };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(&files.certificate)
        .and_then(Iterator::collect)
        .map_err(|error| certificate_error(error.to_string()))?;
    if chain.is_empty() {
        return Err(certificate_error("no certificate found".to_owned()));
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
