//! Interprets the flags of `cudock up`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cudock_base::UsageError;
use cudock_base::files::read_text;
use cudock_base::text::error_chain;
use cudock_group::{GROUP_NAME_RULE, Group, Reading, is_group_name};
use cudock_host::first_gpu_name;
use cudock_netns::forward::{PortMapping, Protocol};

use crate::container::config::{NetworkConfig, NetworkMode};
use crate::flags::existing_directory;
use crate::start::network::parse_ports;

/// Settings from the command line.
#[derive(Debug, Clone, Default)]
pub struct GroupSettings {
    /// The network of the group, and its published ports.
    pub network: NetworkConfig,
    pub volumes: BTreeMap<String, PathBuf>,
    /// The root of the driver's files, if not this machine's.
    pub driver_root: Option<PathBuf>,
    /// The root of the device nodes, if not the driver's root.
    pub device_root: Option<PathBuf>,
    pub without_gpus: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub enum UpSource {
    Group(PathBuf),
    /// A directory with a project to serve.
    Project(PathBuf),
}

const FILE_NAMES: [&str; 2] = ["group.yaml", "group.yml"];

/// Finds what `cudock up` runs: a file, or what is in a directory.
pub fn find_source(directory: Option<&Path>, file: Option<&Path>) -> Result<UpSource, UsageError> {
    if let Some(file) = file {
        return Ok(UpSource::Group(file.to_owned()));
    }
    let directory = directory.unwrap_or(Path::new("."));
    let shown = directory.display();
    if directory.is_file() {
        return Err(UsageError::new(format!("{shown} is a file, not a directory"))
            .hint(format!("cudock up -f {shown}")));
    }
    if directory.join("cudock.toml").is_file() {
        return Ok(UpSource::Project(directory.to_owned()));
    }
    let file = FILE_NAMES.iter().map(|name| directory.join(name)).find(|file| file.is_file());
    file.map(UpSource::Group).ok_or_else(|| {
        UsageError::new(format!("{shown} has neither a group.yaml nor a cudock.toml"))
            .hint("name the group file: cudock up -f FILE")
    })
}

/// Reads a group file. Returns its text and the group, or all errors in it.
pub fn read_file(file: &Path) -> Result<(String, Reading), Vec<UsageError>> {
    let text = read_text(file).map_err(|error| vec![error])?;
    match cudock_group::read(&text) {
        Ok(reading) => Ok((text, reading)),
        Err(error) => Err(error
            .faults
            .into_iter()
            .map(|fault| {
                let position = format!("{}:{}:{}", file.display(), fault.span.line, fault.span.column);
                UsageError::new(format!("{position}: {}", fault.message)).hint(fault.hint)
            })
            .collect()),
    }
}

/// The network of a group with the ports that `--publish` names.
pub fn network(mode: NetworkMode, publish: &[String], group: &Group) -> Result<NetworkConfig, UsageError> {
    let ports = parse_ports(publish).map_err(|error| UsageError::new(error_chain(&error)))?;
    if mode == NetworkMode::Host && !ports.is_empty() {
        return Err(UsageError::new(
            "--publish and --network host contradict each other: all ports are open already",
        ));
    }
    let publish = match mode {
        NetworkMode::Host => Vec::new(),
        _ => published(group, publish, &ports),
    };
    Ok(NetworkConfig { mode, publish, ..NetworkConfig::default() })
}

/// All published ports: those of the flags, and those of the file that no flag mentions.
fn published(group: &Group, publish: &[String], ports: &[PortMapping]) -> Vec<String> {
    let mut all = publish.to_vec();
    for port in group.address.iter().flat_map(|address| &address.ports) {
        let protocol = match port.protocol {
            cudock_group::PortProtocol::Tcp => Protocol::Tcp,
            cudock_group::PortProtocol::Udp => Protocol::Udp,
        };
        if !ports.iter().any(|one| one.container_port == port.port && one.protocol == protocol) {
            all.push(format!("{port}:{port}/{protocol}", port = port.port));
        }
    }
    all
}

pub fn volumes(values: &[String]) -> Result<BTreeMap<String, PathBuf>, UsageError> {
    let mut all = BTreeMap::new();
    for text in values {
        let invalid = || {
            UsageError::new(format!("`{text}` is not a volume and its directory"))
                .hint("--volume share=./data")
        };
        let (name, path) = text
            .split_once('=')
            .filter(|(name, path)| !name.is_empty() && !path.is_empty())
            .ok_or_else(invalid)?;
        if all.insert(name.to_owned(), existing_directory(Path::new(path))?).is_some() {
            return Err(UsageError::new(format!("--volume: `{name}` is repeated")));
        }
    }
    Ok(all)
}

pub fn check_name(name: &str) -> Result<(), UsageError> {
    if is_group_name(name) {
        return Ok(());
    }
    Err(UsageError::new(format!("`{name}` is not a valid group name")).hint(GROUP_NAME_RULE))
}

/// Checks that `--volume` names volumes of the group, and that every volume that cannot be created here has a directory.
/// `file` is for errors.
pub fn check_volumes(file: &Path, group: &Group, settings: &GroupSettings) -> Result<(), UsageError> {
    let named: Vec<&str> = settings.volumes.keys().map(String::as_str).collect();
    if let Some(unknown) = named.iter().find(|name| group.volume(name).is_none()) {
        let existing: Vec<&str> = group.volumes.iter().map(|volume| volume.name.as_str()).collect();
        let error = UsageError::new(format!("--volume: the group has no volume `{unknown}`"));
        return Err(if existing.is_empty() {
            error
        } else {
            error.hint(format!("it has {}", existing.join(", ")))
        });
    }
    match group.missing_volumes(&named).first() {
        None => Ok(()),
        Some(volume) => Err(UsageError::new(format!(
            "{}:{}:{}: volume `{}` of kind {} is not supported here",
            file.display(),
            volume.span.line,
            volume.span.column,
            volume.name,
            volume.kind.name(),
        ))
        .hint(format!("give a directory for it: --volume {}=DIR", volume.name))),
    }
}

/// Differences from Azure, as notes.
pub fn notes(file: &Path, reading: &Reading, settings: &GroupSettings) -> Vec<String> {
    let group = &reading.group;
    let mut notes: Vec<String> =
        reading.notes.iter().map(|note| format!("{}:{note}", file.display())).collect();
    let escalates = |container: &&cudock_group::Container| {
        container.security.as_ref().is_some_and(|security| security.allow_privilege_escalation == Some(true))
    };
    notes.extend(group.all_containers().filter(escalates).map(|container| {
        format!(
            "{}: `allowPrivilegeEscalation` is ignored: programs never gain privileges by being executed",
            container.name
        )
    }));
    if group.credentials.iter().any(|credential| credential.password.is_some()) {
        notes.push(
            "passwords of `imageRegistryCredentials` are not used; sign in with `docker login` or `podman login`"
                .to_owned(),
        );
    }
    if group.dns.as_ref().is_some_and(|dns| !dns.search.is_empty() || !dns.options.is_empty()) {
        notes.push("only the name servers of `dnsConfig` are used".to_owned());
    }
    notes.extend(gpu_notes(group, settings));
    notes
}

/// Notes about GPUs of this machine that differ from those that containers request.
fn gpu_notes(group: &Group, settings: &GroupSettings) -> Vec<String> {
    let wanted = group
        .containers
        .iter()
        .filter_map(|container| Some((container.name.as_str(), container.resources.as_ref()?.gpu.as_ref()?)));
    let wanted: Vec<_> = wanted.collect();
    if settings.without_gpus {
        return wanted
            .iter()
            .map(|(name, gpu)| format!("{name}: runs without GPUs, although it requests {}", gpu.count))
            .collect();
    }
    let root = settings.device_root.as_deref().or(settings.driver_root.as_deref()).unwrap_or(Path::new("/"));
    let Some(card) = (!wanted.is_empty()).then(|| first_gpu_name(root)).flatten() else { return Vec::new() };
    wanted.iter().filter_map(|(name, gpu)| Some(format!("{name}: {}", gpu.other_card(&card)?))).collect()
}

#[cfg(test)]
mod tests {
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
    fn ports_have_the_same_number_unless_a_flag_changes_it() {
        let group = cudock_group::read(TEXT).unwrap().group;
        assert_eq!(published(&group, &[], &[]), ["80:80/tcp", "53:53/udp"]);
        let publish = ["8080:80".to_owned(), "9:99".to_owned()];
        let ports = parse_ports(&publish).unwrap();
        assert_eq!(published(&group, &publish, &ports), ["8080:80", "9:99", "53:53/udp"]);
        let publish = ["8053:53".to_owned()];
        let ports = parse_ports(&publish).unwrap();
        assert_eq!(published(&group, &publish, &ports), ["8053:53", "80:80/tcp", "53:53/udp"]);
    }

    #[test]
    fn names_that_would_leave_their_directory_are_rejected() {
        for invalid in ["", "..", "a/b", "-a", "a.b", "a b"] {
            assert!(check_name(invalid).is_err(), "{invalid}");
        }
        assert!(check_name("my-Group1").is_ok());
    }
}
