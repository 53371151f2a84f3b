//! The network of a container: its namespace, published ports, outbound access, and its files about the network.
//!
//! Port forwarding and outbound access are helper processes, which the kernel kills with the watcher.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use cudock_netns::Namespace;
use cudock_netns::files::{AddHost, Dns, Hosts, host_resolv_conf, hostname, hosts, resolv_conf};
use cudock_netns::forward::{ForwardOptions, Forwarder, Listeners, PortMapping};
use cudock_netns::outbound::{HostAccess, Outbound, OutboundTool};

use crate::container::config::{ContainerConfig, NetworkConfig, NetworkMode};
use crate::container::home::ContainerDir;
use crate::error::{OnError, RuntimeError, error_text};

/// The hidden verb that [`Forwarder`] starts.
const FORWARD_VERB: &str = "forward";

/// The network of a container, which is removed when this is dropped.
#[derive(Debug, Default)]
pub struct Network {
    path: Option<PathBuf>,
    namespace: Option<Namespace>,
    forwarder: Option<Forwarder>,
    outbound: Option<Outbound>,
    restarts: Vec<Instant>,
    error: Option<String>,
    host: HostAccess,
}

/// The value of `--add-host` that stands for the address of this machine.
pub(crate) const HOST_GATEWAY: &str = "host-gateway";

/// Helpers that exit more often within [`RESTART_WINDOW`] are not restarted.
const MAX_RESTARTS: usize = 5;
const RESTART_WINDOW: Duration = Duration::from_secs(60);

impl Network {
    /// Sets up the network of a container. The namespace is bound to a file in `directory`, in the mount namespace of this
    /// process.
    pub fn set_up(directory: &Path, config: &NetworkConfig) -> Result<Self, RuntimeError> {
        let ports = parse_ports(&config.publish)?;
        match &config.mode {
            NetworkMode::Join(path) => return Ok(Self { path: Some(path.clone()), ..Self::default() }),
            NetworkMode::Host if ports.is_empty() => return Ok(Self::default()),
            NetworkMode::Host => {
                return Err(RuntimeError::Request(
                    "--publish cannot be used with the host's network, whose ports are open already"
                        .to_owned(),
                ));
            }
            NetworkMode::None | NetworkMode::Pasta => {}
        }
        let listeners = Listeners::bind(&ports)?;
        let namespace = Namespace::create()?;
        let path = directory.join("netns");
        namespace.bind_to(&path)?;
        let needs_host = config.hosts.iter().any(|(_, address)| address == HOST_GATEWAY);
        let host = if needs_host { HostAccess::Needed } else { HostAccess::NotNeeded };
        let outbound = match config.mode {
            NetworkMode::Pasta => Some(start_outbound(&namespace, host)?),
            _ => None,
        };
        let forwarder =
            if listeners.is_empty() { None } else { Some(start_forwarder(listeners, &namespace)?) };
        Ok(Self {
            path: Some(path),
            namespace: Some(namespace),
            forwarder,
            outbound,
            host,
            ..Self::default()
        })
    }

    /// Restarts helpers that have exited. Returns whether anything changed. Call it when a child of this process has exited.
    pub fn restart_helpers(&mut self) -> bool {
        let Some(namespace) = &self.namespace else { return false };
        let mut changed = false;
        if let Some(dead) = self.forwarder.take_if(|forwarder| forwarder.ends_within(Duration::ZERO)) {
            changed = true;
            let ports = dead.mappings().to_vec();
            drop(dead);
            let restarted = may_restart(&mut self.restarts)
                .and_then(|()| start_forwarder(Listeners::bind(&ports)?, namespace));
            self.forwarder = keep(restarted, "the port forwarder exited", &mut self.error);
        }
        if self.outbound.take_if(|outbound| outbound.ends_within(Duration::ZERO)).is_some() {
            changed = true;
            let restarted =
                may_restart(&mut self.restarts).and_then(|()| start_outbound(namespace, self.host));
            self.outbound = keep(restarted, "the tool for outbound access exited", &mut self.error);
        }
        changed
    }

    pub fn error(&self) -> Option<String> {
        self.error.clone()
    }

    /// The path of the namespace; `None` for the host's.
    pub fn namespace(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    pub fn ports(&self) -> Vec<String> {
        let ports = self.forwarder.iter().flat_map(Forwarder::mappings);
        ports.map(ToString::to_string).collect()
    }

    /// The address of this machine for a container that is to reach it.
    fn host_address(&self) -> Option<IpAddr> {
        let shares_ours = self.path.is_none();
        if shares_ours {
            return Some(Ipv4Addr::LOCALHOST.into());
        }
        self.outbound.as_ref().and_then(Outbound::host_address)
    }

    /// The name server of the tool for outbound access, if there is one.
    pub fn name_server(&self) -> Option<IpAddr> {
        self.outbound.as_ref().map(Outbound::name_server)
    }
}

fn start_outbound(namespace: &Namespace, host: HostAccess) -> Result<Outbound, RuntimeError> {
    let tool = OutboundTool::search(std::env::var_os("PATH").as_deref())?;
    Ok(Outbound::start(&tool, namespace, host)?)
}

fn start_forwarder(listeners: Listeners, namespace: &Namespace) -> Result<Forwarder, RuntimeError> {
    let mut command = Command::new("/proc/self/exe");
    command.arg(FORWARD_VERB);
    Ok(Forwarder::start(command, listeners, namespace, ForwardOptions::default())?)
}

fn may_restart(restarts: &mut Vec<Instant>) -> Result<(), RuntimeError> {
    restarts.retain(|then| then.elapsed() < RESTART_WINDOW);
    restarts.push(Instant::now());
    if restarts.len() <= MAX_RESTARTS {
        return Ok(());
    }
    Err(RuntimeError::reported(format!("it exited {MAX_RESTARTS} times within a minute")))
}

/// The restarted helper, or stores the error.
fn keep<T>(restarted: Result<T, RuntimeError>, what: &str, stored: &mut Option<String>) -> Option<T> {
    restarted.inspect_err(|error| *stored = Some(format!("{what}: {}", error_text(error)))).ok()
}

pub fn parse_ports(values: &[String]) -> Result<Vec<PortMapping>, RuntimeError> {
    let mut all = Vec::new();
    for value in values {
        all.extend(PortMapping::parse(value)?);
    }
    Ok(all)
}

/// Writes the files about the network that replace the image's: host path, container path.
pub(crate) fn files(
    dir: &ContainerDir,
    config: &ContainerConfig,
    network: &Network,
) -> Result<Vec<(PathBuf, &'static str)>, RuntimeError> {
    let name = config.hostname();
    let (name_server, host) = (network.name_server(), network.host_address());
    let added: Result<Vec<AddHost>, _> = config
        .network
        .hosts
        .iter()
        .map(|(name, address)| AddHost::parse(&format!("{name}={address}"), host))
        .collect();
    let shared = config.network.mode == NetworkMode::Host;
    let host_hosts = if shared { fs::read_to_string("/etc/hosts").ok() } else { None };
    let known = Hosts { hostname: &name, added: &added?, host_file: host_hosts.as_deref() };
    let dns =
        Dns { own_namespace: !shared, forwarder: name_server, servers: name_servers(&config.network.dns)? };
    let here = host_resolv_conf(Path::new("/"), !shared).on("cannot read", Path::new("/etc/resolv.conf"))?;
    let texts = [
        ("hosts", "/etc/hosts", hosts(&known)),
        ("hostname", "/etc/hostname", hostname(&name)?),
        ("resolv.conf", "/etc/resolv.conf", resolv_conf(&here, &dns)),
    ];
    let mut files = Vec::new();
    for (file, target, text) in texts {
        let path = dir.run().join(file);
        fs::write(&path, text).on("cannot write", &path)?;
        files.push((path, target));
    }
    Ok(files)
}

fn name_servers(addresses: &[String]) -> Result<Vec<IpAddr>, RuntimeError> {
    let invalid =
        |text: &str| RuntimeError::Request(format!("`{text}` is not the IP address of a name server"));
    addresses.iter().map(|text| text.parse().map_err(|_| invalid(text))).collect()
}
