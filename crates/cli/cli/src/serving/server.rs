//! Arguments shared by all servers.

use std::path::PathBuf;

use clap::Args;
use cudock_server::{API_KEYS, LogFormat, ServerOptions};

use cudock_project::choice;

const LOG_FORMATS: &[(&str, &str, LogFormat)] = &[
    ("text", "For people", LogFormat::Text),
    ("json", "One JSON object per line", LogFormat::Json),
    ("off", "No events", LogFormat::Off),
];

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
    #[arg(long, default_value = "text", value_parser = choice(LOG_FORMATS))]
    pub log: LogFormat,

    /// Log each request
    #[arg(long, visible_alias = "log-requests")]
    pub access_log: bool,
}

impl ServerArgs {
    pub fn options(&self) -> ServerOptions {
        ServerOptions {
            api_keys: self.api_keys.clone(),
            tls_cert: self.tls_cert.clone(),
            tls_key: self.tls_key.clone(),
            log: self.log,
            access_log: self.access_log,
        }
    }
}
