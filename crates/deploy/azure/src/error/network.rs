//! Networks that fail.

use cudock_http::{HttpError, HttpErrorKind};

/// The hint for a network that fails.
pub(crate) fn network_hint(error: &HttpError) -> Option<String> {
    let hint = match error.kind {
        HttpErrorKind::Transient | HttpErrorKind::Permanent => {
            "check the network, and set HTTPS_PROXY if a proxy is needed"
        }
        HttpErrorKind::Certificate => {
            "if the certificate is from a private authority, set SSL_CERT_FILE to the file of that authority"
        }
        _ => return None,
    };
    Some(hint.to_owned())
}
