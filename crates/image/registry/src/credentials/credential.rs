//! A credential for a registry.

use cudock_base::Secret;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Credential {
    Password {
        user: String,
        password: Secret,
    },
    /// A refresh token, to be traded for access tokens.
    IdentityToken(Secret),
}
