//! The file of a group: found, read, and everything wrong in it told at once.

use std::path::{Path, PathBuf};

use cudock_group::{Group, Reading};
use cudock_runtime::group::Settings;

use crate::failure::Failure;
use crate::output::{BLUE, DIM, styled};

/// What `up` runs.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// The file of a group.
    Group(PathBuf),
    /// A folder with a project.
    Project(PathBuf),
}

/// The names a group's file has in a folder.
const NAMES: [&str; 2] = ["group.yaml", "group.yml"];

/// What the words name: a file, or what is in a folder.
pub(super) fn source(folder: Option<&Path>, file: Option<&Path>) -> Result<Source, Failure> {
    if let Some(file) = file {
        return Ok(Source::Group(file.to_owned()));
    }
    let folder = folder.unwrap_or(Path::new("."));
    if folder.is_file() {
        return Err(Failure::input(format!("{} is a file, not a folder", folder.display()))
            .hint(format!("cudock up -f {}", folder.display())));
    }
    if folder.join("cudock.toml").is_file() {
        return Ok(Source::Project(folder.to_owned()));
    }
    match NAMES.iter().map(|name| folder.join(name)).find(|file| file.is_file()) {
        Some(file) => Ok(Source::Group(file)),
        None => {
            Err(Failure::input(format!("{} has neither a group.yaml nor a cudock.toml", folder.display()))
                .hint("cudock up -f FILE names the file of a group"))
        }
    }
}

/// Reads the file of a group.
pub(super) fn group(file: &Path) -> Result<(String, Reading), Failure> {
    let text = crate::input::text(file)?;
    match cudock_group::read(&text) {
        Ok(reading) => Ok((text, reading)),
        Err(error) => {
            // One after another, as compilers print them; the last is the error of this command.
            let mut faults = error.faults().iter().map(|fault| {
                let place = format!("{}:{}:{}", file.display(), fault.span.line, fault.span.column);
                Failure::input(format!("{place}: {}", fault.problem)).hint(fault.hint())
            });
            let mut last = faults.next().unwrap_or_else(|| Failure::input(error.to_string()));
            for fault in faults {
                last.print();
                last = fault;
            }
            Err(last)
        }
    }
}

/// Volumes that cannot be made here need a folder.
pub(super) fn check_volumes(file: &Path, group: &Group, settings: &Settings) -> Result<(), Failure> {
    let given: Vec<&str> = settings.volumes.keys().map(String::as_str).collect();
    if let Some(unknown) = given.iter().find(|name| group.volume(name).is_none()) {
        let names: Vec<&str> = group.volumes.iter().map(|volume| volume.name.as_str()).collect();
        let failure = Failure::input(format!("--volume: the group has no volume `{unknown}`"));
        return Err(if names.is_empty() {
            failure
        } else {
            failure.hint(format!("it has {}", names.join(", ")))
        });
    }
    match group.missing_volumes(&given).first() {
        None => Ok(()),
        Some(volume) => Err(Failure::input(format!(
            "{}:{}:{}: volume `{}` cannot be made here: it is of kind {}",
            file.display(),
            volume.span.line,
            volume.span.column,
            volume.name,
            volume.kind.name(),
        ))
        .hint(format!("give a folder for it: --volume {}=DIR", volume.name))),
    }
}

/// What is worth knowing about a good group.
pub(super) fn print_notes(file: &Path, reading: &Reading, settings: &Settings) {
    for note in &reading.notes {
        anstream::eprintln!("{}: {}:{note}", styled(BLUE, "note"), file.display());
    }
    let allowed = |container: &&cudock_group::Container| {
        container.security.as_ref().is_some_and(|security| security.allow_privilege_escalation == Some(true))
    };
    for container in reading.group.all_containers().filter(allowed) {
        anstream::eprintln!(
            "{}: {}: `allowPrivilegeEscalation` is not done here: programs gain no rights by being executed",
            styled(BLUE, "note"),
            container.name,
        );
    }
    let passwords = reading.group.credentials.iter().any(|credential| credential.password.is_some());
    if passwords {
        anstream::eprintln!(
            "{}: passwords of `imageRegistryCredentials` are not used here; sign in with `docker login` or \
             `podman login`",
            styled(BLUE, "note"),
        );
    }
    if reading.group.dns.as_ref().is_some_and(|dns| !dns.search.is_empty() || !dns.options.is_empty()) {
        anstream::eprintln!("{}: of `dnsConfig` only the name servers are used here", styled(BLUE, "note"),);
    }
    for words in other_cards(&reading.group, settings) {
        anstream::eprintln!("{}: {words}", styled(BLUE, "note"));
    }
    for word in &settings.network.publish {
        anstream::eprintln!("{} {word}", styled(DIM, "publishes"));
    }
}

/// Where this machine's GPUs are not of the kind that a container asks for.
fn other_cards(group: &Group, settings: &Settings) -> Vec<String> {
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
    let Some(card) = (!wanted.is_empty()).then(|| card(root)).flatten() else { return Vec::new() };
    wanted.iter().filter_map(|(name, gpu)| Some(format!("{name}: {}", gpu.other_card(&card)?))).collect()
}

/// The name of the first GPU, as the kernel's module tells it.
fn card(root: &Path) -> Option<String> {
    let folder = std::fs::read_dir(root.join("proc/driver/nvidia/gpus")).ok()?;
    let mut gpus: Vec<PathBuf> = folder.flatten().map(|entry| entry.path()).collect();
    gpus.sort();
    let text = std::fs::read_to_string(gpus.first()?.join("information")).ok()?;
    let model = text.lines().find_map(|line| line.strip_prefix("Model:"))?;
    Some(model.trim().to_owned())
}
