//! Lints Dockerfiles in editors, over the Language Server Protocol.
//!
//! Every change of a document is linted as a whole, which takes less time than a keystroke. Settings come from the nearest
//! `cudock.toml`, as on the command line, and from the client's `initializationOptions`.

mod actions;
mod document;
mod hover;
mod position;
mod server;

use cudock_base::{Date, ErrorKind, Report};
use cudock_facts::Facts;
use cudock_facts::version::DriverVersion;
use cudock_lint::LintFlags;
use lsp_server::{Connection, ProtocolError};
use serde::Deserialize;

/// An error that ends the server.
#[derive(Debug, thiserror::Error)]
pub enum LspError {
    #[error("the client does not follow the protocol")]
    Protocol(#[from] ProtocolError),
    #[error("cannot read standard input or write to standard output")]
    Io(#[from] std::io::Error),
}

impl Report for LspError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Protocol(_) => ErrorKind::Input,
            Self::Io(_) => ErrorKind::Outside,
        }
    }
}

/// Options that a client may set when it starts the server.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ClientOptions {
    /// A GPU, an Azure size, or `cpu`.
    #[serde(rename = "for")]
    target: Option<String>,
    driver: Option<DriverVersion>,
}

impl From<ClientOptions> for LintFlags {
    fn from(options: ClientOptions) -> Self {
        Self { target: options.target, driver: options.driver, fail_level: None }
    }
}

/// Serves the client on standard input and output until it disconnects. Returns whether it
/// requested the shutdown.
pub fn serve_stdio(facts: &Facts, today: Date) -> Result<bool, LspError> {
    let (connection, threads) = Connection::stdio();
    let is_shut_down = serve(&connection, facts, today)?;
    drop(connection);
    threads.join()?;
    Ok(is_shut_down)
}

/// Serves a client until it disconnects. Returns whether it requested the shutdown.
pub fn serve(connection: &Connection, facts: &Facts, today: Date) -> Result<bool, LspError> {
    server::LanguageServer::start(connection, facts, today)?.run()
}
