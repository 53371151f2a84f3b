//! The flags that all servers have.

use std::path::PathBuf;

use clap::Args;

use crate::metrics::log::{Log, LogFormat};
use crate::request::keys::{ApiKeys, KeysError};
use crate::settings::{ServerSettings, TlsFiles};

/// The variable with the file of API keys, like `--api-keys`.
pub const API_KEYS: &str = "CUDOCK_API_KEYS";

// Not a doc comment: clap would show it as the description of the verb.
//
// Keys, TLS and the log.
#[derive(Clone, Debug, Default, Args)]
pub struct ServerArgs {
    /// Require one of the keys in this file, one per line (`#` begins a comment)
    #[arg(long, value_name = "FILE", env = API_KEYS)]
    pub api_keys: Option<PathBuf>,

    /// Use TLS with this certificate chain, PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,

    /// Use this private key of the certificate, PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,

    /// Write events to standard error in this format
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub log: LogFormat,

    /// Log each request
    #[arg(long, visible_alias = "log-requests")]
    pub access_log: bool,
}

impl ServerArgs {
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
