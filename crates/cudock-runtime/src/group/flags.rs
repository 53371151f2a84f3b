//! What the flags of `cudock up` mean for a group.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cudock_base::UsageError;
use cudock_base::text::error_chain;
use cudock_group::{Group, Reading};
use cudock_host::first_gpu_name;
use cudock_netns::forward::{PortMapping, Protocol};

use super::make::Settings;
use crate::flags::existing_directory;
use crate::network::publications;
use crate::plan::{NetworkMode, NetworkPlan};

/// The network of a group with the ports that `--publish` names.
pub fn network(mode: NetworkMode, publish: &[String], group: &Group) -> Result<NetworkPlan, UsageError> {
    let given = publications(publish).map_err(|error| UsageError::new(error_chain(&error)))?;
    if mode == NetworkMode::Host && !given.is_empty() {
        return Err(UsageError::new(
            "--publish and --network host contradict each other: all ports are open already",
        ));
    }
    let publish = match mode {
        NetworkMode::Host => Vec::new(),
        _ => published(group, publish, &given),
    };
    Ok(NetworkPlan { mode, publish, ..NetworkPlan::default() })
}

/// All published ports: those of the flags, and those of the file that no flag mentions.
fn published(group: &Group, publish: &[String], given: &[PortMapping]) -> Vec<String> {
    let mut all = publish.to_vec();
    for port in group.address.iter().flat_map(|address| &address.ports) {
        let protocol = match port.protocol {
            cudock_group::Protocol::Tcp => Protocol::Tcp,
            cudock_group::Protocol::Udp => Protocol::Udp,
        };
        if !given.iter().any(|one| one.container_port == port.port && one.protocol == protocol) {
            all.push(format!("{port}:{port}/{protocol}", port = port.port));
        }
    }
    all
}

/// The values of `--volume NAME=DIR`.
pub fn volumes(given: &[String]) -> Result<BTreeMap<String, PathBuf>, UsageError> {
    let mut all = BTreeMap::new();
    for text in given {
        let wrong = || {
            UsageError::new(format!("`{text}` names no volume and its directory"))
                .hint("--volume share=./data")
        };
        let (name, path) = text
            .split_once('=')
            .filter(|(name, path)| !name.is_empty() && !path.is_empty())
            .ok_or_else(wrong)?;
        if all.insert(name.to_owned(), existing_directory(Path::new(path))?).is_some() {
            return Err(UsageError::new(format!("--volume: `{name}` for the second time")));
        }
    }
    Ok(all)
}

/// Refuses a name that a group cannot have.
pub fn check_name(name: &str) -> Result<(), UsageError> {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let valid = (1..=63).contains(&name.len())
        && name.bytes().all(inner)
        && !name.starts_with('-')
        && !name.ends_with('-');
    if valid {
        return Ok(());
    }
    Err(UsageError::new(format!("`{name}` cannot be the name of a group"))
        .hint("1 to 63 letters, digits and `-`, with a letter or digit at both ends"))
}

/// Refuses directories for volumes that the group does not have, and volumes that cannot be made on this machine and have
/// no directory. `file` is for errors.
pub fn check_volumes(file: &Path, group: &Group, settings: &Settings) -> Result<(), UsageError> {
    let given: Vec<&str> = settings.volumes.keys().map(String::as_str).collect();
    if let Some(unknown) = given.iter().find(|name| group.volume(name).is_none()) {
        let names: Vec<&str> = group.volumes.iter().map(|volume| volume.name.as_str()).collect();
        let error = UsageError::new(format!("--volume: the group has no volume `{unknown}`"));
        return Err(if names.is_empty() {
            error
        } else {
            error.hint(format!("it has {}", names.join(", ")))
        });
    }
    match group.missing_volumes(&given).first() {
        None => Ok(()),
        Some(volume) => Err(UsageError::new(format!(
            "{}:{}:{}: volume `{}` cannot be made here: it is of kind {}",
            file.display(),
            volume.span.line,
            volume.span.column,
            volume.name,
            volume.kind.name(),
        ))
        .hint(format!("give a directory for it: --volume {}=DIR", volume.name))),
    }
}

/// What users should know about a group that can run: what works differently than on Azure.
pub fn notes(file: &Path, reading: &Reading, settings: &Settings) -> Vec<String> {
    let group = &reading.group;
    let mut notes: Vec<String> =
        reading.notes.iter().map(|note| format!("{}:{note}", file.display())).collect();
    let escalates = |container: &&cudock_group::Container| {
        container.security.as_ref().is_some_and(|security| security.allow_privilege_escalation == Some(true))
    };
    notes.extend(group.all_containers().filter(escalates).map(|container| {
        format!(
            "{}: `allowPrivilegeEscalation` is not done here: programs gain no rights by being executed",
            container.name
        )
    }));
    if group.credentials.iter().any(|credential| credential.password.is_some()) {
        notes.push(
            "passwords of `imageRegistryCredentials` are not used here; sign in with `docker login` or \
             `podman login`"
                .to_owned(),
        );
    }
    if group.dns.as_ref().is_some_and(|dns| !dns.search.is_empty() || !dns.options.is_empty()) {
        notes.push("of `dnsConfig` only the name servers are used here".to_owned());
    }
    notes.extend(gpu_notes(group, settings));
    notes
}

/// Where this machine's GPUs are not of the kind that a container asks for.
fn gpu_notes(group: &Group, settings: &Settings) -> Vec<String> {
    let wanted = group
        .containers
        .iter()
        .filter_map(|container| Some((container.name.as_str(), container.resources.as_ref()?.gpu()?)));
    let wanted: Vec<_> = wanted.collect();
    if settings.without_gpus {
        return wanted
            .iter()
            .map(|(name, gpu)| format!("{name}: runs without GPUs, of which it asks for {}", gpu.count))
            .collect();
    }
    let root = settings.device_root.as_deref().or(settings.driver_root.as_deref()).unwrap_or(Path::new("/"));
    let Some(card) = (!wanted.is_empty()).then(|| first_gpu_name(root)).flatten() else { return Vec::new() };
    wanted.iter().filter_map(|(name, gpu)| Some(format!("{name}: {}", gpu.other_card(&card)?))).collect()
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
    fn ports_have_the_same_number_unless_a_flag_says_otherwise() {
        let group = cudock_group::read(TEXT).unwrap().group;
        assert_eq!(published(&group, &[], &[]), ["80:80/tcp", "53:53/udp"]);
        let publish = ["8080:80".to_owned(), "9:99".to_owned()];
        let given = publications(&publish).unwrap();
        assert_eq!(published(&group, &publish, &given), ["8080:80", "9:99", "53:53/udp"]);
        let publish = ["8053:53".to_owned()];
        let given = publications(&publish).unwrap();
        assert_eq!(published(&group, &publish, &given), ["8053:53", "80:80/tcp", "53:53/udp"]);
    }

    #[test]
    fn names_that_would_leave_their_directory_are_refused() {
        for wrong in ["", "..", "a/b", "-a", "a.b", "a b"] {
            assert!(check_name(wrong).is_err(), "{wrong}");
        }
        assert!(check_name("my-Group1").is_ok());
    }
}
