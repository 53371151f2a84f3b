//! Where containers and unpacked images are kept.

use cudock_runtime::container::home::Home;
use cudock_runtime::flags::locate_home;

use crate::failure::Failure;
use cudock_cli::env;

/// The directory that `CUDOCK_DATA` names, or the default one.
pub(crate) fn home() -> Result<Home, Failure> {
    Ok(locate_home(env::DATA)?)
}
