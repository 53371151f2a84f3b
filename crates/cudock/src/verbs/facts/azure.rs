//! Azure's sizes, services and storage.

mod lifecycle;
mod prices;
mod service;
mod size;
mod storage;

pub(super) use self::service::service;
pub(super) use self::size::size;
pub(super) use self::storage::storage;
