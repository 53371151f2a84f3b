//! Prints groups as tables.

use std::path::Path;
use std::time::Duration;

use cudock_base::text::format::age;
use cudock_base::text::table::TextTable;
use cudock_group::Reading;
use cudock_runtime::container::status::now;
use cudock_runtime::group::{self, GroupSettings, GroupStatus, MemberStatus};

use crate::output::{self, DIM, line, status, styled};

/// Prints notes about a group, and its published ports.
pub(crate) fn notes(file: &Path, reading: &Reading, settings: &GroupSettings) {
    for note in group::flags::notes(file, reading, settings) {
        output::note(note);
    }
    for port in &settings.network.publish {
        status(format!("{} {port}", styled(DIM, "publishes")));
    }
}

/// Prints a table; with `details`, a row for each container.
pub(crate) fn list(groups: &[GroupStatus], details: bool) {
    let rows = groups.iter().map(row).collect();
    output::table(&TextTable::list(&["NAME", "STATE", "READY", "PORTS", "AGE"], rows));
    for group in groups.iter().filter(|_| details) {
        line("");
        let rows = group.containers.iter().map(member).collect();
        output::table(&TextTable::list(&["CONTAINER", "PHASE", "READY", "RESTARTS", "WHY"], rows));
        if let Some(error) = &group.error {
            line(format!("\n{error}"));
        }
    }
}

fn row(group: &GroupStatus) -> Vec<String> {
    let lasting = || group.containers.iter().filter(|container| !container.init);
    let ready = lasting().filter(|container| container.ready).count();
    vec![
        group.name.clone(),
        group.state.to_string(),
        format!("{ready}/{}", lasting().count()),
        if group.ports.is_empty() { "-".to_owned() } else { group.ports.join(", ") },
        age(Duration::from_millis(now().saturating_sub(group.created))),
    ]
}

fn member(container: &MemberStatus) -> Vec<String> {
    let kind = if container.init { " (init)" } else { "" };
    vec![
        format!("{}{kind}", container.name),
        container.phase.to_string(),
        if container.ready { "yes" } else { "no" }.to_owned(),
        container.restarts.to_string(),
        container.reason.clone().unwrap_or_else(|| "-".to_owned()),
    ]
}
