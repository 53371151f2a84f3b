//! Where containers are kept, and paths inside them.

use std::ffi::OsString;
use std::path::PathBuf;

use cudock_base::UsageError;

use crate::container::home::Home;
use crate::namespace::rootless;

/// Where containers and unpacked images are kept: in the directory that the variable names, in `/var/lib/cudock` for root,
/// or in the user's own data directory.
pub fn locate_home(variable: &str) -> Result<Home, UsageError> {
    let named = std::env::var_os(variable).filter(|directory| !directory.is_empty());
    if let Some(directory) = named {
        let absolute = std::path::absolute(&directory);
        return Ok(Home::at(absolute.map_err(|error| {
            UsageError::new(format!("{} is not a directory: {error}", PathBuf::from(&directory).display()))
        })?));
    }
    if rootless::is_root() && !rootless::in_user_namespace() {
        return Ok(Home::at("/var/lib/cudock"));
    }
    let directory = user_data(std::env::var_os("XDG_DATA_HOME"), std::env::var_os("HOME"));
    let directory = directory.ok_or_else(|| {
        UsageError::new("no home directory for the containers").hint(format!("name one: {variable}=DIR"))
    })?;
    Ok(Home::at(directory.join("cudock")))
}

fn user_data(data_home: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let data_home = data_home.map(PathBuf::from).filter(|directory| directory.is_absolute());
    data_home.or_else(|| home.map(|home| PathBuf::from(home).join(".local/share")))
}

/// The two parts of CONTAINER:PATH; none for a path on this machine, which begins with a slash or a dot, or has no colon
/// before its first slash.
pub fn path_in_container(text: &str) -> Option<(&str, &str)> {
    if text.starts_with(['/', '.']) {
        return None;
    }
    let (name, path) = text.split_once(':')?;
    // The name of a container in a group has a slash.
    let is_name = !name.is_empty() && name.matches('/').count() <= 1;
    is_name.then_some((name, if path.is_empty() { "/" } else { path }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_kept_where_the_user_keeps_data() {
        let text = |text: &str| Some(OsString::from(text));
        assert_eq!(user_data(text("/data"), text("/home/ann")), Some("/data".into()));
        assert_eq!(user_data(text("relative"), text("/home/ann")), Some("/home/ann/.local/share".into()));
        assert_eq!(user_data(None, None), None);
    }

    #[test]
    fn a_path_in_a_container_is_distinguished_from_a_local_one() {
        assert_eq!(path_in_container("api:/srv/x"), Some(("api", "/srv/x")));
        assert_eq!(path_in_container("group/api:/srv"), Some(("group/api", "/srv")));
        assert_eq!(path_in_container("api:"), Some(("api", "/")));
        assert_eq!(path_in_container("api:relative"), Some(("api", "relative")));
        for here in ["./api:/x", "/api:/x", "data", "../a:b", ".", "a/b/c:d"] {
            assert_eq!(path_in_container(here), None, "{here}");
        }
    }
}
