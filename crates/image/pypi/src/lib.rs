//! Finds ONNX Runtime's library on this machine, or installs it from a package index.
//!
//! A server needs a shared library of 30 to 300 MB that users nearly always have: in a virtual environment, in conda, on
//! the system. [`runtime::find`] looks there. Otherwise [`runtime::Installer`] unpacks it from the published wheel: from
//! the indexes that pip is configured for ([`Settings`]), with pip's credentials, and only if its hash is the one in the
//! fact tables, so that mirrors need not be trusted.
//!
//! [`Fetcher`] also lists and fetches any other wheel that is known by its hash.
//!
//! Python is not run, and only the files that the tables name are unpacked from a wheel.

pub mod env;
mod error;
mod fetch;
mod index;
mod netrc;
pub mod runtime;
pub mod settings;
pub mod url;
mod wheel;

pub use error::{FailedSource, PypiError, SourceErrorKind};
pub use fetch::{Fetcher, Offered, WheelPin};
pub use netrc::Netrc;
pub use runtime::{FoundBy, Package, RuntimeLibrary};
pub use settings::Settings;
