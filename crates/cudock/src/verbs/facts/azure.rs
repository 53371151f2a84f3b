//! Azure's sizes, services and storage.

mod lifecycle;
mod prices;
mod service;
mod size;
mod storage;

pub(super) use self::service::service;
pub(crate) use self::size::known_region;
pub(super) use self::size::size;
pub(super) use self::storage::storage;
