//! Looks up Azure sizes, services and storage.

mod lifecycle;
mod prices;
mod service;
mod size;
mod storage;

pub use self::service::service;
pub use self::size::{SizeQuery, known_region, size};
pub use self::storage::storage;
