//! Network configuration of a container: `/etc/resolv.conf`, `/etc/hosts`, `/etc/hostname`.
//!
//! Pure functions of the host's files and the requested settings; the caller writes the result.

mod hostname;
mod hosts;
mod resolv_conf;

pub use hostname::hostname;
pub use hosts::{AddHost, Hosts, hosts};
pub use resolv_conf::{Dns, host_resolv_conf, resolv_conf};
