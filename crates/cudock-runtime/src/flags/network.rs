//! The values of network flags.

use std::collections::BTreeMap;

use cudock_base::UsageError;
use cudock_netns::files::AddHost;
use cudock_netns::outbound::OutboundTool;

use crate::error::RuntimeError;
use crate::plan::{Ipc, NetworkMode};
use crate::sysctl;

/// The network of a container for which none was chosen: outbound if this machine has pasta, none otherwise.
pub fn automatic_network() -> NetworkMode {
    match OutboundTool::search(std::env::var_os("PATH").as_deref()) {
        Ok(_) => NetworkMode::Pasta,
        Err(_) => NetworkMode::None,
    }
}

/// The value of `--add-host`: a name and its address.
pub fn add_host(text: &str) -> Result<(String, String), RuntimeError> {
    let wrong =
        || UsageError::new(format!("`{text}` is not a name and its address")).hint("--add-host db:10.0.0.5");
    let (name, address) = text.split_once([':', '=']).ok_or_else(wrong)?;
    AddHost::parse(&format!("{name}={address}"), Some(std::net::Ipv4Addr::LOCALHOST.into()))?;
    Ok((name.to_owned(), address.to_owned()))
}

/// The values of `--sysctl`, for a container with these namespaces.
pub fn sysctls(
    given: &[String],
    ipc: Ipc,
    network: &NetworkMode,
) -> Result<BTreeMap<String, String>, RuntimeError> {
    let mut all = BTreeMap::new();
    for text in given {
        let wrong = || {
            UsageError::new(format!("--sysctl {text} has no value")).hint("--sysctl net.core.somaxconn=1024")
        };
        let (name, value) = text.split_once('=').ok_or_else(wrong)?;
        sysctl::check(name, ipc, network)?;
        all.insert(name.to_owned(), value.to_owned());
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_kernel_parameters_are_read_as_docker_reads_them() {
        assert_eq!(add_host("db:10.0.0.5").unwrap(), ("db".to_owned(), "10.0.0.5".to_owned()));
        assert!(add_host("db").is_err() && add_host("db:nowhere").is_err());
        let given = ["net.core.somaxconn=1024".to_owned()];
        let all = sysctls(&given, Ipc::Private, &NetworkMode::None).unwrap();
        assert_eq!(all.get("net.core.somaxconn").map(String::as_str), Some("1024"));
        assert!(sysctls(&["net.core.somaxconn".to_owned()], Ipc::Private, &NetworkMode::None).is_err());
    }
}
