//! The network of a container: the namespace it is in, the ways in and out, and what it reads about them.
//!
//! Ways in and out are processes of their own, tied to the watcher: the kernel ends them with it.

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use cudock_netns::Namespace;
use cudock_netns::files::{AddHost, Dns, Hosts, host_resolv_conf, hostname, hosts, resolv_conf};
use cudock_netns::forward::{ForwardOptions, Forwarder, Listeners, PortMapping};
use cudock_netns::outbound::{Outbound, OutboundOptions, OutboundTool};

use crate::error::{OnFile, RuntimeError};
use crate::home::ContainerDir;
use crate::plan::{NetworkMode, NetworkPlan, Plan};

/// The hidden verb that [`Forwarder`] starts; its last word says what to forward.
pub const FORWARD_VERB: &str = "forward";

/// What was set up, and ends when this is dropped.
#[derive(Debug, Default)]
pub struct Network {
    path: Option<PathBuf>,
    namespace: Option<Namespace>,
    forwarder: Option<Forwarder>,
    outbound: Option<Outbound>,
    /// When processes of it were started again.
    restarts: Vec<Instant>,
    complaint: Option<String>,
}

/// A process that ends more often than this within [`RESTART_WINDOW`] is not started again.
const MOST_RESTARTS: usize = 5;
const RESTART_WINDOW: Duration = Duration::from_secs(60);

impl Network {
    /// Sets a container's network up. The namespace is bound to a file in `directory`, which only this process and those
    /// it starts can see, if its mount namespace is its own.
    pub fn set_up(directory: &Path, plan: &NetworkPlan) -> Result<Self, RuntimeError> {
        let publications = publications(&plan.publish)?;
        match &plan.mode {
            NetworkMode::Join(path) => return Ok(Self { path: Some(path.clone()), ..Self::default() }),
            NetworkMode::Host if publications.is_empty() => return Ok(Self::default()),
            NetworkMode::Host => {
                return Err(RuntimeError::Request(
                    "ports cannot be published from this machine's own network: they are open already"
                        .to_owned(),
                ));
            }
            NetworkMode::None | NetworkMode::Pasta => {}
        }
        let listeners = Listeners::bind(&publications)?;
        let namespace = Namespace::create()?;
        let path = directory.join("netns");
        namespace.bind_to(&path)?;
        let outbound = match plan.mode {
            NetworkMode::Pasta => Some(start_outbound(&namespace)?),
            _ => None,
        };
        let forwarder =
            if listeners.is_empty() { None } else { Some(start_forwarder(listeners, &namespace)?) };
        Ok(Self { path: Some(path), namespace: Some(namespace), forwarder, outbound, ..Self::default() })
    }

    /// Starts again what has ended though it should not; whether anything about the network changed. To be called when a
    /// child of this process has ended.
    pub fn tend(&mut self) -> bool {
        let Some(namespace) = &self.namespace else { return false };
        let mut changed = false;
        if let Some(dead) = self.forwarder.take_if(|forwarder| forwarder.ends_within(Duration::ZERO)) {
            changed = true;
            let publications = dead.mappings().to_vec();
            drop(dead);
            let again = may_restart(&mut self.restarts)
                .and_then(|()| start_forwarder(Listeners::bind(&publications)?, namespace));
            self.forwarder = kept(again, "the port forwarder ended", &mut self.complaint);
        }
        if self.outbound.take_if(|outbound| outbound.ends_within(Duration::ZERO)).is_some() {
            changed = true;
            let again = may_restart(&mut self.restarts).and_then(|()| start_outbound(namespace));
            self.outbound = kept(again, "the way out of the network ended", &mut self.complaint);
        }
        changed
    }

    /// What of the network has ended and could not be started again.
    pub fn complaint(&self) -> Option<String> {
        self.complaint.clone()
    }

    /// The namespace, by a path it can be joined by; none for this machine's own.
    pub fn namespace(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The ports that lead in, as they came out.
    pub fn ports(&self) -> Vec<String> {
        let publications = self.forwarder.iter().flat_map(Forwarder::mappings);
        publications.map(ToString::to_string).collect()
    }

    /// Where name queries go inside, where a way out answers them itself.
    pub fn name_server(&self) -> Option<IpAddr> {
        self.outbound.as_ref().map(Outbound::name_server)
    }
}

fn start_outbound(namespace: &Namespace) -> Result<Outbound, RuntimeError> {
    let found = OutboundTool::search(std::env::var_os("PATH").as_deref())?;
    Ok(Outbound::start(&found, namespace, OutboundOptions::default())?)
}

fn start_forwarder(listeners: Listeners, namespace: &Namespace) -> Result<Forwarder, RuntimeError> {
    let mut command = Command::new("/proc/self/exe");
    command.arg(FORWARD_VERB);
    Ok(Forwarder::start(command, listeners, namespace, ForwardOptions::default())?)
}

fn may_restart(restarts: &mut Vec<Instant>) -> Result<(), RuntimeError> {
    restarts.retain(|then| then.elapsed() < RESTART_WINDOW);
    restarts.push(Instant::now());
    if restarts.len() <= MOST_RESTARTS {
        return Ok(());
    }
    Err(RuntimeError::said(format!("it ended {MOST_RESTARTS} times within a minute")))
}

/// What was started again; where it was not, why.
fn kept<T>(again: Result<T, RuntimeError>, what: &str, complaint: &mut Option<String>) -> Option<T> {
    again.inspect_err(|error| *complaint = Some(format!("{what}: {}", crate::launch::text(error)))).ok()
}

/// All ports of the words of `-p`.
pub fn publications(words: &[String]) -> Result<Vec<PortMapping>, RuntimeError> {
    let mut all = Vec::new();
    for word in words {
        all.extend(PortMapping::parse(word)?);
    }
    Ok(all)
}

/// Writes the files about its network that a container sees over its image's own: from here, to there.
pub(crate) fn files(
    dir: &ContainerDir,
    plan: &Plan,
    name_server: Option<IpAddr>,
) -> Result<Vec<(PathBuf, &'static str)>, RuntimeError> {
    let name = plan.hostname();
    let added: Result<Vec<AddHost>, _> = plan
        .network
        .hosts
        .iter()
        .map(|(name, address)| AddHost::parse(&format!("{name}={address}"), name_server))
        .collect();
    let shared = plan.network.mode == NetworkMode::Host;
    let of_host = if shared { fs::read_to_string("/etc/hosts").ok() } else { None };
    let known = Hosts { hostname: &name, address: None, added: &added?, host_file: of_host.as_deref() };
    let dns = Dns {
        own_namespace: !shared,
        forwarder: name_server,
        servers: name_servers(&plan.network.dns)?,
        ..Dns::default()
    };
    let here = host_resolv_conf(Path::new("/"), !shared).on("cannot read", Path::new("/etc/resolv.conf"))?;
    let texts = [
        ("hosts", "/etc/hosts", hosts(&known)),
        ("hostname", "/etc/hostname", hostname(&name)?),
        ("resolv.conf", "/etc/resolv.conf", resolv_conf(&here, &dns).text),
    ];
    let mut files = Vec::new();
    for (file, target, text) in texts {
        let path = dir.run().join(file);
        fs::write(&path, text).on("cannot write", &path)?;
        files.push((path, target));
    }
    Ok(files)
}

/// The addresses of `--dns`.
fn name_servers(words: &[String]) -> Result<Vec<IpAddr>, RuntimeError> {
    let wrong = |word: &str| RuntimeError::Request(format!("`{word}` is not the address of a name server"));
    words.iter().map(|word| word.parse().map_err(|_| wrong(word))).collect()
}
