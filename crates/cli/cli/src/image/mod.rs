//! The verbs that make and move images.

mod build;
mod lock;
mod sign;
mod slim;
mod transfer;

pub use build::BuildArgs;
pub use lock::LockArgs;
pub use sign::SignArgs;
pub use slim::SlimArgs;
pub use transfer::{CopyArgs, PushArgs};
