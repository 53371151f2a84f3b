//! Container images from where they are: registries, and daemons on this machine; and to there.
//!
//! Images are tens of gigabytes, connections break, mirrors alter content and processes are killed. This crate fetches
//! manifests and blobs into a [`BlobStore`](cudock_http::BlobStore) that holds a blob complete and verified or not at all,
//! continues where an earlier run ended, and signs in as docker and podman do. It deals in bytes, media types and digests
//! and does not interpret them.
//!
//! ```no_run
//! use cudock_base::Environment;
//! use cudock_registry::{Client, Options, Reference, Error};
//!
//! fn main() -> Result<(), Error> {
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
mod documents;
mod download;
pub mod env;
mod error;
mod mirrors;
mod push;
mod reference;
mod session;
pub mod tags;

pub use client::{Client, Options, user_store};
pub use credentials::Credentials;
pub use documents::{Document, MAX_DOCUMENT};
pub use error::{Error, Resource};
pub use mirrors::Mirrors;
pub use push::{PushOutcome, PushedBlob};
pub use reference::{Reference, ReferenceError};
