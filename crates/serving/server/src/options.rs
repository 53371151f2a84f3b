//! Options common to all servers.

use std::path::PathBuf;

use crate::metrics::log::{Log, LogFormat};
use crate::request::keys::{ApiKeys, KeysError};
use crate::settings::{ServerSettings, TlsFiles};

/// The variable with the file of API keys, like `--api-keys`.
pub const API_KEYS: &str = "CUDOCK_API_KEYS";

/// Keys, TLS and the log.
#[derive(Clone, Debug, Default)]
pub struct ServerOptions {
    pub api_keys: Option<PathBuf>,
    /// The certificate chain and its private key, PEM.
    pub tls_cert: Option<PathBuf>,
    pub tls_key: Option<PathBuf>,
    pub log: LogFormat,
    /// Whether each request is logged.
    pub access_log: bool,
}

impl ServerOptions {
    /// Writes them into the settings of a server.
    pub fn apply(&self, settings: &mut ServerSettings) -> Result<(), KeysError> {
        let tls = self.tls_cert.clone().zip(self.tls_key.clone());
        settings.tls = tls.map(|(certificate, key)| TlsFiles { certificate, key });
        if let Some(file) = &self.api_keys {
            settings.keys = ApiKeys::from_file(file)?;
        }
        settings.log = Log::new(self.log, self.access_log, std::io::stderr());
        Ok(())
    }
}
