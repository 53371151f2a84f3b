//! The network of a container: the namespace it is in, the ways in and out, and what it reads about them.
//!
//! Ways in and out are processes of their own, tied to the watcher: the kernel ends them with it.

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use cudock_netns::Namespace;
use cudock_netns::files::{AddHost, Dns, Hosts, host_resolv_conf, hostname, hosts, resolv_conf};
use cudock_netns::forward::{Forwarder, Listeners, Options as ForwardOptions, Publication};
use cudock_netns::outbound::{Found, Options as OutboundOptions, Outbound};

use crate::error::{OnFile, RuntimeError};
use crate::home::ContainerDir;
use crate::plan::{NetworkMode, NetworkPlan, Plan};

/// The hidden verb that [`Forwarder`] starts; its last word says what to forward.
pub const FORWARD_VERB: &str = "forward";

/// What was set up, and ends when this is dropped.
#[derive(Debug, Default)]
pub struct Network {
    path: Option<PathBuf>,
    forwarder: Option<Forwarder>,
    outbound: Option<Outbound>,
}

impl Network {
    /// Sets a container's network up. The namespace is bound to a file in `folder`, which only this process and those
    /// it starts can see, if its mount namespace is its own.
    pub fn set_up(folder: &Path, plan: &NetworkPlan) -> Result<Self, RuntimeError> {
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
        let path = folder.join("netns");
        namespace.bind_to(&path)?;
        let outbound = match plan.mode {
            NetworkMode::Pasta => {
                let found = Found::search(std::env::var_os("PATH").as_deref())?;
                Some(Outbound::start(&found, &namespace, OutboundOptions::default())?)
            }
            _ => None,
        };
        let forwarder = if listeners.is_empty() {
            None
        } else {
            let mut command = Command::new("/proc/self/exe");
            command.arg(FORWARD_VERB);
            Some(Forwarder::start(command, listeners, &namespace, ForwardOptions::default())?)
        };
        Ok(Self { path: Some(path), forwarder, outbound })
    }

    /// The namespace, by a path it can be joined by; none for this machine's own.
    pub fn namespace(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The ports that lead in, as they came out.
    pub fn ports(&self) -> Vec<String> {
        let publications = self.forwarder.iter().flat_map(Forwarder::publications);
        publications.map(ToString::to_string).collect()
    }

    /// Where name queries go inside, where a way out answers them itself.
    pub fn name_server(&self) -> Option<IpAddr> {
        self.outbound.as_ref().map(Outbound::name_server)
    }
}

/// All ports of the words of `-p`.
pub fn publications(words: &[String]) -> Result<Vec<Publication>, RuntimeError> {
    let mut all = Vec::new();
    for word in words {
        all.extend(Publication::parse(word)?);
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
    let known = Hosts { hostname: &name, address: None, added: &added?, of_host: of_host.as_deref() };
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
