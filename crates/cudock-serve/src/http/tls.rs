//! Connections that nobody else can read.

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::model::Stamp;
use crate::reply::lock;
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

/// What turns connections into private ones, with the certificate that is in the files now.
pub(crate) struct Tls {
    files: TlsFiles,
    stamps: Mutex<[Option<Stamp>; 2]>,
    acceptor: RwLock<TlsAcceptor>,
}

impl Tls {
    /// Reads certificate and key.
    pub(crate) fn new(files: &TlsFiles) -> Result<Self, TlsError> {
        let stamps = Mutex::new(stamps(files));
        Ok(Self { files: files.clone(), stamps, acceptor: RwLock::new(acceptor(files)?) })
    }

    /// For the next connection.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        self.acceptor.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads the files again if they have changed; whether they had. The certificate before stays if they cannot be
    /// used. Both files change one after the other: while they do not fit together, they are tried again.
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

fn stamps(files: &TlsFiles) -> [Option<Stamp>; 2] {
    [Stamp::of(&files.certificate), Stamp::of(&files.key)]
}

fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor, TlsError> {
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
