//! Files, streams and terminals that responses lead to.

use cudock_base::Secret;
use cudock_http::{Request, WebSocket, bearer_authorization};

use super::AzureClient;
use crate::error::AzureError;
use crate::services::Terminal;

/// Maximum number of bytes read from a log.
const MAX_LOG: u64 = 64 << 20;

/// The action in messages, without the address, which may grant access by itself.
const ACTION: &str = "GET of a log";

impl AzureClient {
    /// The text at an address that a response named, with the token that came with it, if any. The
    /// client's own token is not sent.
    pub fn download(&self, address: &Secret, token: Option<&Secret>) -> Result<String, AzureError> {
        let request = Request::get(address.expose().as_str()).authorization(token.map(bearer_authorization));
        let read = || {
            let mut response = self.state.http.send(&request)?.error_for_status()?;
            response.bytes(MAX_LOG)
        };
        let bytes = read().map_err(|error| AzureError::Http { action: ACTION.to_owned(), error })?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The web socket of a terminal, after the password that it wants.
    pub fn connect(&self, terminal: &Terminal) -> Result<WebSocket, AzureError> {
        let open = || {
            let authorization = terminal.token.as_ref().map(bearer_authorization);
            let mut socket =
                self.state.http.open_websocket(terminal.address.expose(), authorization.as_ref())?;
            if let Some(password) = &terminal.password {
                socket.send_text(password.expose())?;
            }
            Ok(socket)
        };
        open().map_err(|error| AzureError::Http { action: "connection to a terminal".to_owned(), error })
    }
}
