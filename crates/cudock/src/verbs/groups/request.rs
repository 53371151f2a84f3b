//! What the words of `up` mean.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cudock_group::Group;
use cudock_netns::forward::{PortMapping, Protocol};
use cudock_netns::outbound::OutboundTool;
use cudock_runtime::group::Settings;
use cudock_runtime::network::publications;
use cudock_runtime::plan::{NetworkMode, NetworkPlan};

use super::args::{GpuChoice, UpArgs};
use crate::failure::{Failure, chain};
use crate::verbs::containers::NetworkChoice;

/// What was asked for beside the file.
pub(super) fn settings(words: &UpArgs, group: &Group) -> Result<Settings, Failure> {
    Ok(Settings {
        network: network(words, group)?,
        volumes: volumes(&words.volume)?,
        driver_root: words.driver_root.as_deref().map(folder).transpose()?,
        device_root: words.device_root.as_deref().map(folder).transpose()?,
        without_gpus: words.gpus == GpuChoice::None,
    })
}

fn network(words: &UpArgs, group: &Group) -> Result<NetworkPlan, Failure> {
    let mode = match words.network {
        NetworkChoice::None => NetworkMode::None,
        NetworkChoice::Host => NetworkMode::Host,
        NetworkChoice::Pasta => NetworkMode::Pasta,
        NetworkChoice::Auto => match OutboundTool::search(std::env::var_os("PATH").as_deref()) {
            Ok(_) => NetworkMode::Pasta,
            Err(_) => NetworkMode::None,
        },
    };
    let asked = publications(&words.publish).map_err(|error| Failure::input(chain(&error)))?;
    if mode == NetworkMode::Host && !asked.is_empty() {
        return Err(Failure::input(
            "--publish and --network host contradict each other: all ports are open already",
        ));
    }
    let publish = match mode {
        NetworkMode::Host => Vec::new(),
        _ => published(group, &words.publish, &asked),
    };
    Ok(NetworkPlan { mode, publish, ..NetworkPlan::default() })
}

/// The words of all published ports: those that were asked for, and the file's for which nothing was.
fn published(group: &Group, words: &[String], asked: &[PortMapping]) -> Vec<String> {
    let mut all = words.to_vec();
    for port in group.address.iter().flat_map(|address| &address.ports) {
        let protocol = match port.protocol {
            cudock_group::Protocol::Tcp => Protocol::Tcp,
            cudock_group::Protocol::Udp => Protocol::Udp,
        };
        if !asked.iter().any(|one| one.container_port == port.port && one.protocol == protocol) {
            all.push(format!("{port}:{port}/{protocol}", port = port.port));
        }
    }
    all
}

fn volumes(words: &[String]) -> Result<BTreeMap<String, PathBuf>, Failure> {
    let mut all = BTreeMap::new();
    for word in words {
        let wrong = || {
            Failure::input(format!("`{word}` names no volume and its folder")).hint("--volume share=./data")
        };
        let (name, path) = word
            .split_once('=')
            .filter(|(name, path)| !name.is_empty() && !path.is_empty())
            .ok_or_else(wrong)?;
        if all.insert(name.to_owned(), folder(Path::new(path))?).is_some() {
            return Err(Failure::input(format!("--volume: `{name}` for the second time")));
        }
    }
    Ok(all)
}

/// A folder that exists, from the root on.
fn folder(path: &Path) -> Result<PathBuf, Failure> {
    let wrong = |error| Failure::input(format!("cannot read {}: {error}", path.display()));
    let whole = path.canonicalize().map_err(wrong)?;
    if whole.is_dir() {
        Ok(whole)
    } else {
        Err(Failure::input(format!("{} is not a folder", path.display())))
    }
}

/// A name as the file could have it.
pub(super) fn checked_name(name: &str) -> Result<String, Failure> {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let good = (1..=63).contains(&name.len())
        && name.bytes().all(inner)
        && !name.starts_with('-')
        && !name.ends_with('-');
    if good {
        return Ok(name.to_owned());
    }
    Err(Failure::input(format!("`{name}` cannot be the name of a group"))
        .hint("1 to 63 letters, digits and `-`, with a letter or digit at both ends"))
}

/// Goes to the file's folder, from which its paths count.
pub(super) fn stand_beside(file: &Path) -> Result<(), Failure> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::env::set_current_dir(folder)
        .map_err(|error| Failure::outside(format!("cannot go to {}: {error}", folder.display())))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

    use super::*;

    const TEXT: &str = "
name: g
properties:
  containers:
  - name: a
    properties: {image: x, ports: [{port: 80}, {port: 53, protocol: UDP}]}
  ipAddress: {type: Public, ports: [{port: 80}, {port: 53, protocol: UDP}]}
";

    #[test]
    fn ports_have_the_same_number_unless_another_is_asked_for() {
        let group = cudock_group::read(TEXT).unwrap().group;
        assert_eq!(published(&group, &[], &[]), ["80:80/tcp", "53:53/udp"]);
        let words = ["8080:80".to_owned(), "9:99".to_owned()];
        let asked = publications(&words).unwrap();
        assert_eq!(published(&group, &words, &asked), ["8080:80", "9:99", "53:53/udp"]);
        let words = ["8053:53".to_owned()];
        let asked = publications(&words).unwrap();
        assert_eq!(published(&group, &words, &asked), ["8053:53", "80:80/tcp", "53:53/udp"]);
    }

    #[test]
    fn names_that_would_leave_their_folder_are_refused() {
        for wrong in ["", "..", "a/b", "-a", "a.b", "a b"] {
            assert!(checked_name(wrong).is_err(), "{wrong}");
        }
        assert_eq!(checked_name("my-Group1").unwrap(), "my-Group1");
    }
}
