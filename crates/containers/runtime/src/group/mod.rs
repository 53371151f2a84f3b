//! Container groups: several containers that share a network, a localhost and volumes.
//!
//! [`create`] turns a parsed group file into containers of this machine. One process, the supervisor ([`supervise`]), owns
//! everything the containers share, so that all of it is gone when that process exits, however it exits: the network's name
//! and the secrets are mounted in its private mount namespace, and the watchers of the containers are its children.
//! `cudock_group` decides what follows when a container exits or fails its probe; this module carries it out.
//!
//! Other processes see the group's directory ([`GroupDir`]): `group.json`, and a lock that is held while the supervisor
//! runs.

mod create;
mod dir;
mod down;
pub mod flags;
mod gpus;
mod log_mux;
mod member;
mod message;
mod observe;
mod probe;
mod readiness;
mod start;
mod status;
mod supervise;
mod volumes;

pub use create::{container_name, create};
pub(crate) use dir::apply_group_status;
pub use dir::{GroupDir, GroupLock, find, list};
pub use down::down;
pub use flags::GroupSettings;
pub use observe::{logs, wait};
pub use start::{GroupHandover, StartOutcome, become_supervisor, start_detached};
pub use status::{GroupStatus, MemberStatus};
pub use supervise::supervise;
