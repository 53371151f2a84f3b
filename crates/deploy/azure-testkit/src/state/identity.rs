//! Who makes requests, and the tokens that were issued.

use crate::time::Seconds;

/// The tenant of the subscription.
pub const TENANT: &str = "22222222-3333-4444-8555-666666666666";
/// The service principal that signs in.
pub const CLIENT_ID: &str = "33333333-4444-4555-8666-777777777777";

/// The identity on whose behalf a request is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Caller {
    /// The signed-in user.
    User,
    /// A managed identity, by its object id.
    Identity(String),
}

#[derive(Debug, Clone)]
pub(crate) struct Token {
    pub(crate) audience: String,
    pub(crate) expires: Seconds,
}
