//! The values of network flags.

use std::collections::BTreeMap;

use cudock_base::UsageError;
use cudock_netns::files::AddHost;
use cudock_netns::outbound::OutboundTool;

use crate::container::config::{Ipc, NetworkMode};
use crate::error::RuntimeError;
use crate::start::network::{HOST_GATEWAY, parse_ports};
use crate::start::sysctl;

/// The network of a container for which none was chosen: outbound if this machine has pasta, none otherwise.
pub fn automatic_network() -> NetworkMode {
    match OutboundTool::search(std::env::var_os("PATH").as_deref()) {
        Ok(_) => NetworkMode::Pasta,
        Err(_) => NetworkMode::None,
    }
}

/// The values of `--add-host` for a container with this network: names and their addresses.
pub fn add_hosts(given: &[String], mode: &NetworkMode) -> Result<Vec<(String, String)>, RuntimeError> {
    let hosts: Vec<_> = given.iter().map(|text| add_host(text)).collect::<Result<_, _>>()?;
    if let Some((name, _)) = hosts.iter().find(|(_, address)| address == HOST_GATEWAY)
        && *mode == NetworkMode::None
    {
        return Err(UsageError::new(format!(
            "--add-host {name}:{HOST_GATEWAY}: the container has no network in which it could reach this machine"
        ))
        .hint("--network pasta (apt-get install passt), or --network host")
        .into());
    }
    Ok(hosts)
}

fn add_host(text: &str) -> Result<(String, String), RuntimeError> {
    let wrong = || {
        UsageError::new(format!("`{text}` is not a name and its address"))
            .hint(format!("--add-host db:10.0.0.5, or --add-host host.docker.internal:{HOST_GATEWAY}"))
    };
    let (name, address) = text.split_once([':', '=']).ok_or_else(wrong)?;
    AddHost::parse(&format!("{name}={address}"), Some(std::net::Ipv4Addr::LOCALHOST.into()))?;
    Ok((name.to_owned(), address.to_owned()))
}

/// The published ports of a container with this network.
pub fn ports(
    given: &[String],
    mode: &NetworkMode,
    on_note: &dyn Fn(&str),
) -> Result<Vec<String>, RuntimeError> {
    parse_ports(given)?;
    if *mode == NetworkMode::Host && !given.is_empty() {
        on_note("--publish has no effect: with --network host the container's ports are this machine's");
        return Ok(Vec::new());
    }
    Ok(given.to_vec())
}

/// Maximum number of exposed ports that are published together; an image can name any number.
const MAX_EXPOSED: usize = 256;

/// Port mappings that publish exposed ports, such as 80/tcp or 8000-8010, on free ports of this machine.
pub(crate) fn publish_exposed(ports: impl Iterator<Item = String>) -> Result<Vec<String>, RuntimeError> {
    let mut publish = Vec::new();
    for port in ports {
        let (numbers, protocol) = port.split_once('/').unwrap_or((&port, "tcp"));
        let (first, last) = numbers.split_once('-').unwrap_or((numbers, numbers));
        let number = |text: &str| text.parse::<u16>().ok().filter(|number| *number > 0);
        let (Some(first), Some(last)) = (number(first), number(last)) else {
            return Err(UsageError::new(format!("`{port}` is not a port to expose"))
                .hint("--expose 8080, or --expose 53/udp")
                .into());
        };
        publish.extend((first..=last).map(|number| format!("0:{number}/{}", protocol.to_lowercase())));
    }
    publish.sort();
    publish.dedup();
    if publish.len() > MAX_EXPOSED {
        return Err(UsageError::new(format!("the image and --expose name {} ports", publish.len()))
            .hint("publish those that you need: -p HOST:CONTAINER")
            .into());
    }
    parse_ports(&publish)?;
    Ok(publish)
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
        let gateway = ["host.docker.internal:host-gateway".to_owned()];
        for mode in [NetworkMode::Pasta, NetworkMode::Host] {
            assert_eq!(add_hosts(&gateway, &mode).unwrap().len(), 1, "{mode:?}");
        }
        assert!(add_hosts(&gateway, &NetworkMode::None).is_err());
        let given = ["net.core.somaxconn=1024".to_owned()];
        let all = sysctls(&given, Ipc::Private, &NetworkMode::None).unwrap();
        assert_eq!(all.get("net.core.somaxconn").map(String::as_str), Some("1024"));
        assert!(sysctls(&["net.core.somaxconn".to_owned()], Ipc::Private, &NetworkMode::None).is_err());
    }

    #[test]
    fn exposed_ports_are_published_on_free_ones_and_those_of_the_host_are_open_already() {
        let exposed = |ports: &[&str]| publish_exposed(ports.iter().map(ToString::to_string));
        assert_eq!(
            exposed(&["8888/tcp", "53/UDP", "8888", "9000-9001"]).unwrap(),
            ["0:53/udp", "0:8888/tcp", "0:9000/tcp", "0:9001/tcp"]
        );
        for wrong in ["", "http", "0", "80/sctp", "70000", "1-65535"] {
            assert!(exposed(&[wrong]).is_err(), "{wrong}");
        }
        let given = ["8080:80".to_owned()];
        assert_eq!(ports(&given, &NetworkMode::Pasta, &|_| panic!()).unwrap(), given);
        let noted = std::cell::Cell::new(false);
        assert!(ports(&given, &NetworkMode::Host, &|_| noted.set(true)).unwrap().is_empty());
        assert!(noted.get());
    }
}
