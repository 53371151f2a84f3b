//! Container groups: several containers that share a network, a localhost and volumes.
//!
//! A group is started by [`make`], which turns what was read from a file into containers of this machine, and lives
//! in one process, its supervisor ([`supervise`]). That one owns everything the containers share, so that all of it
//! ends with it, however it ends: the network's name and the secrets are mounted in its private mount namespace, and
//! the watchers of the containers are its children. What follows when a container ends, or does not answer, is decided
//! by `cudock_group`; here it is carried out.
//!
//! Everybody else knows of a group what is in its directory ([`GroupDir`]): `group.json`, and a lock that says whether
//! its supervisor lives.

mod ask;
mod dir;
mod down;
pub mod flags;
mod gpus;
mod http;
mod make;
mod member;
mod message;
mod output;
mod readiness;
mod start;
mod state;
mod supervise;
mod volumes;
mod watching;

pub(crate) use dir::told_by_group;
pub use dir::{GroupDir, GroupLock, list};
pub use down::down;
pub use make::{Settings, container_name, make};
pub use start::{Handover, Started, start_detached, take_over};
pub use state::{GroupStatus, MemberPhase, MemberStatus, State};
pub use supervise::{Connection, supervise};
pub use watching::{logs, wait};
