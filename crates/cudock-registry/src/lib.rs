//! Images of containers from where they are: registries, and daemons on this machine.
//!
//! Images are tens of gigabytes, lines break, mirrors lie and runs are killed. This crate fetches manifests and blobs
//! into a [`BlobStore`] that holds a blob complete and verified or not at all, goes on where an earlier run ended,
//! and signs in as docker and podman do. What the bytes mean is not its affair: it deals in bytes, media types and
//! digests.
//!
//! ```no_run
//! use cudock_registry::{Client, Environment, Options, Reference, RegistryError};
//!
//! fn main() -> Result<(), RegistryError> {
//!     let client = Client::new(Options::from_environment(&Environment::of_process())?)?;
//!     let reference: Reference = "nvidia/cuda:12.4.1-base-ubuntu22.04".parse()?;
//!     let document = client.manifest(&reference)?;
//!     println!("{} {}", document.digest, document.media_type);
//!     Ok(())
//! }
//! ```

mod auth;
mod challenge;
mod client;
mod credentials;
pub mod daemon;
mod digest;
mod download;
pub mod env;
mod error;
mod files;
mod helper;
mod http;
mod mirrors;
mod progress;
mod reference;
mod retry;
mod secret;
mod session;
mod store;
mod text;
mod transfer;
mod unix_transport;

pub use client::{Client, Document, LARGEST_DOCUMENT, Options};
pub use credentials::Credentials;
pub use digest::{Algorithm, Digest, DigestError};
pub use env::Environment;
pub use error::{Asked, RegistryError};
pub use mirrors::Mirrors;
pub use progress::Progress;
pub use reference::{Reference, ReferenceError};
pub use retry::Retries;
pub use secret::Secret;
pub use store::{BlobStore, KeptTag};

/// What fetching is made of, for crates that fetch from elsewhere: requests, partial files, transfers that go on.
pub mod parts {
    pub use crate::auth::failure;
    pub use crate::files::read_if_there;
    pub use crate::http::{Answer, Get, Http, HttpOptions, Trouble, broken, header, trusted_certificates};
    pub use crate::progress::Silent;
    pub use crate::reference::is_loopback;
    pub use crate::retry::{Again, Failure, retry_after};
    pub use crate::store::{Begun, Finished, Partial, lock};
    pub use crate::text::shortened;
    pub use crate::transfer::Transfer;
}
