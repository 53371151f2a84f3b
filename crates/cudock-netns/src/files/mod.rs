//! What a container reads about its own network: `/etc/resolv.conf`, `/etc/hosts`, `/etc/hostname`.
//!
//! Pure functions of the host's files and of what was asked for; whoever prepares the container writes the result.

mod hostname;
mod hosts;
mod resolv_conf;

pub use hostname::hostname;
pub use hosts::{AddHost, Hosts, hosts};
pub use resolv_conf::{Dns, ResolvConf, host_resolv_conf, resolv_conf};
