//! ONNX Runtime's library, from where it already is or from a package index.
//!
//! A server needs a shared library of 30 to 300 MB that its users nearly always have somewhere: in a virtual
//! environment, in conda, on the system. [`runtime::find`] looks there. Where it is not, [`runtime::Installer`] takes it
//! out of the wheel that its makers publish: from the indexes pip is set up for ([`Settings`]), with pip's sign-ins, and
//! only if its hash is the one in the fact tables, so that it does not matter who passes it on.
//!
//! No Python is run, and nothing of a wheel is unpacked but the files that the tables name.

pub mod address;
pub mod env;
mod error;
mod fetch;
pub mod index;
mod netrc;
pub mod runtime;
pub mod settings;
mod wheel;

pub use error::{PypiError, Tried, TriedKind};
pub use netrc::Netrc;
pub use runtime::{Found, FoundBy, Package};
pub use settings::Settings;
