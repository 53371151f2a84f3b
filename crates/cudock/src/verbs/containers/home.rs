//! Where containers and unpacked images are kept.

use std::path::PathBuf;

use cudock_runtime::home::Home;
use cudock_runtime::rootless;

use crate::env;
use crate::failure::Failure;

/// The folder that was named, `/var/lib/cudock` for root, or the user's own.
pub(crate) fn home() -> Result<Home, Failure> {
    if let Some(folder) = std::env::var_os(env::DATA).filter(|folder| !folder.is_empty()) {
        return Ok(Home::at(std::path::absolute(&folder).map_err(|error| {
            Failure::input(format!("{} is not a folder: {error}", PathBuf::from(&folder).display()))
        })?));
    }
    if rootless::is_root() && !rootless::in_user_namespace() {
        return Ok(Home::at("/var/lib/cudock"));
    }
    let data = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute());
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/share"));
    match data.or(home) {
        Some(folder) => Ok(Home::at(folder.join("cudock"))),
        None => Err(Failure::input("there is no home folder to keep containers in")
            .hint(format!("name one: {}=DIR", env::DATA))),
    }
}
