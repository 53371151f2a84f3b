//! Parts of a container group that a deployment does not support.

use cudock_facts::Facts;
use cudock_facts::finding::{Finding, Severity};
use cudock_facts::tables::Lifecycle;
use cudock_group::{Container, Group, NoteKind, PortProtocol, ProbeAction, Reading, VariableValue};

use crate::codes;
use crate::spec::placed::{capacity, gpu};
use crate::spec::requested::{requested_capacity, requested_gpu};

/// Everything that is lost, on machines of this size or profile.
pub(super) fn losses(
    facts: &Facts,
    reading: &Reading,
    container: &Container,
    size: Option<&str>,
) -> Vec<Finding> {
    let mut losses = only_in_azure(reading);
    losses.extend(size.and_then(|size| other_gpu(facts, container, size)));
    losses.extend(size.and_then(|size| smaller_machine(facts, container, size)));
    losses.extend(mounts_and_variables(&reading.group, container));
    losses.extend(parts(&reading.group, container));
    losses
}

fn lost(message: String, fix: impl Into<String>) -> Finding {
    Finding::new(codes::GROUP_PARTS, Severity::Warning, message, fix)
}

/// Parts that mean nothing on a single machine, and something in Azure. The location is where it is
/// deployed.
fn only_in_azure(reading: &Reading) -> Vec<Finding> {
    let fields =
        reading.notes.iter().filter(|note| note.kind == NoteKind::Ignored && note.field != "location");
    fields
        .map(|note| {
            lost(
                format!("`{}` is not deployed", note.field),
                "add it to an export of the deployment: `cudock export`",
            )
        })
        .collect()
}

/// A finding that the machine has another GPU than the requested one.
fn other_gpu(facts: &Facts, container: &Container, size: &str) -> Option<Finding> {
    let (asked, gpu) = (&requested_gpu(container)?.sku, gpu(facts, size)?);
    if gpu.split('-').any(|word| word.eq_ignore_ascii_case(asked)) {
        return None;
    }
    let has_asked = |row: &&cudock_facts::tables::Size| {
        row.lifecycle == Lifecycle::Available && row.gpu.as_ref().is_some_and(|gpu| gpu == asked)
    };
    let fix = match facts.sizes().size.iter().find(has_asked) {
        Some(row) => format!("--size {} has the one that is asked for", row.name),
        None => format!("no size of Azure has a {asked} anymore: measure again before you rely on times"),
    };
    Some(lost(format!("the group asks for a {asked}, and {size} has a {gpu}"), fix))
}

/// A finding that the machine has fewer processors or less memory than requested.
fn smaller_machine(facts: &Facts, container: &Container, size: &str) -> Option<Finding> {
    let ((cpus, memory), (has_cpus, has_memory)) = (requested_capacity(container)?, capacity(facts, size)?);
    if cpus <= has_cpus && memory <= has_memory {
        return None;
    }
    let message = format!(
        "the group asks for {cpus} processors and {memory:.1} GiB of memory, and {size} has {has_cpus} and {has_memory}"
    );
    Some(lost(message, "choose a larger one with --size: `cudock facts size` lists them"))
}

fn mounts_and_variables(group: &Group, container: &Container) -> Vec<Finding> {
    let mounts = container.mounts.iter().map(|mount| {
        let kind = group.volume(&mount.volume).map_or("unknown", |volume| volume.kind.name());
        lost(
            format!("the volume `{}` ({kind}) at {} is not mounted", mount.volume, mount.path),
            "put its files into the image, or read them from a storage account",
        )
    });
    let is_reference = |value: &VariableValue| matches!(value, VariableValue::Reference(_));
    let references = container.environment.iter().filter(|variable| is_reference(&variable.value));
    let references = references.map(|variable| {
        lost(
            format!("the variable `{}` refers to a key vault and is not set", variable.name),
            "give its value with --env, or let the program read the key vault",
        )
    });
    mounts.chain(references).collect()
}

fn parts(group: &Group, container: &Container) -> Vec<Finding> {
    let tcp = container.ports.iter().filter(|port| port.protocol == PortProtocol::Tcp).count();
    let is_single = container.ports.len() <= 1 && tcp == container.ports.len();
    let parts = [
        (
            container.liveness.is_some(),
            "the liveness probe is not deployed",
            "let the program end when it is broken",
        ),
        (
            container.readiness.as_ref().is_some_and(|probe| matches!(probe.action, ProbeAction::Exec(_))),
            "the readiness command is not deployed",
            "name a path with --ready-path",
        ),
        (container.security.is_some(), "the security context is not deployed", "set the user in the image"),
        (group.dns.is_some(), "the DNS settings are not deployed", "use names that Azure's resolver knows"),
        (!is_single, "only the first TCP port is deployed", "serve everything on one port"),
    ];
    let is_lost = parts.into_iter().filter(|(is_lost, ..)| *is_lost);
    is_lost.map(|(_, part, fix)| lost(part.to_owned(), fix)).collect()
}
