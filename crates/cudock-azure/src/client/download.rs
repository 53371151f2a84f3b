//! Files and streams that answers lead to.

use cudock_base::Secret;
use cudock_http::Request;

use super::AzureClient;
use crate::error::AzureError;

/// No longer part of a log is read.
const MAX_LOG: u64 = 64 << 20;

/// What is requested, for messages: the address may grant access by itself.
const ACTION: &str = "GET of a log";

impl AzureClient {
    /// The text at an address that an answer named, with the token that came with it, if any. The client's own token stays
    /// here.
    pub fn download(&self, address: &Secret, token: Option<&Secret>) -> Result<String, AzureError> {
        let authorization = token.map(|token| Secret::new(format!("Bearer {}", token.expose())));
        let request = Request::get(address.expose().as_str()).authorization(authorization);
        let read = || {
            let mut response = self.state.http.send(&request)?.error_for_status()?;
            response.bytes(MAX_LOG)
        };
        let bytes = read().map_err(|error| AzureError::Http { action: ACTION.to_owned(), error })?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}
