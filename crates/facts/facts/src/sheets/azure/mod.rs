//! Looks up Azure sizes, services and storage.

mod fields;
mod lifecycle;
mod prices;
mod service;
mod size;
mod storage;

pub(crate) use self::lifecycle::LifecycleRow;
pub use self::service::service;
pub use self::size::{SizeQuery, known_region, size};
pub use self::storage::storage;
