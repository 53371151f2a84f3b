//! `Authorization` headers, and keeping them out of messages.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cudock_base::Secret;

/// The `Authorization` header for a user and a password.
pub fn basic_authorization(user: &str, password: &str) -> Secret {
    Secret::new(format!("Basic {}", STANDARD.encode(format!("{user}:{password}"))))
}

/// The `Authorization` header for a token.
pub fn bearer_authorization(token: &Secret) -> Secret {
    Secret::new(format!("Bearer {}", token.expose()))
}

/// A server's message without these secrets, in case it echoes them.
pub fn redact<'a>(message: &str, secrets: impl IntoIterator<Item = &'a Secret>) -> String {
    secrets
        .into_iter()
        .filter(|secret| !secret.is_empty())
        .fold(message.to_owned(), |message, secret| message.replace(secret.expose(), "…"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn echoed_secrets_are_redacted() {
        let secrets = [Secret::new("swordfish"), Secret::new("")];
        assert_eq!(redact("no swordfish here", &secrets), "no … here");
        assert_eq!(basic_authorization("me", "p").expose(), "Basic bWU6cA==");
    }
}
