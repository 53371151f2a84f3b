//! Prints groups as tables.

use std::path::Path;

use cudock_group::Reading;
use cudock_runtime::group::{self, GroupSettings, GroupStatus, MemberStatus};
use cudock_runtime::status::now;

use crate::output::{self, BOLD, DIM, line, status, styled};
use crate::verbs::containers::ago;

/// Prints notes about a group, and its published ports.
pub(super) fn notes(file: &Path, reading: &Reading, settings: &GroupSettings) {
    for note in group::flags::notes(file, reading, settings) {
        output::note(note);
    }
    for port in &settings.network.publish {
        status(format!("{} {port}", styled(DIM, "publishes")));
    }
}

/// Prints a table; with `details`, a row for each container.
pub(super) fn list(groups: &[GroupStatus], details: bool) {
    let head = ["NAME", "STATE", "READY", "PORTS", "AGE"].map(str::to_owned);
    let rows: Vec<[String; 5]> = std::iter::once(head).chain(groups.iter().map(row)).collect();
    print(&rows);
    for group in groups.iter().filter(|_| details) {
        line("");
        let head = ["CONTAINER", "PHASE", "READY", "RESTARTS", "WHY"].map(str::to_owned);
        let rows: Vec<[String; 5]> =
            std::iter::once(head).chain(group.containers.iter().map(member)).collect();
        print(&rows);
        if let Some(error) = &group.error {
            line(format!("\n{error}"));
        }
    }
}

fn row(group: &GroupStatus) -> [String; 5] {
    let lasting = || group.containers.iter().filter(|container| !container.init);
    let ready = lasting().filter(|container| container.ready).count();
    [
        group.name.clone(),
        group.state.to_string(),
        format!("{ready}/{}", lasting().count()),
        if group.ports.is_empty() { "-".to_owned() } else { group.ports.join(", ") },
        ago(now().saturating_sub(group.created)),
    ]
}

fn member(container: &MemberStatus) -> [String; 5] {
    let kind = if container.init { " (init)" } else { "" };
    [
        format!("{}{kind}", container.name),
        container.phase.to_string(),
        if container.ready { "yes" } else { "no" }.to_owned(),
        container.restarts.to_string(),
        container.reason.clone().unwrap_or_else(|| "-".to_owned()),
    ]
}

fn print(rows: &[[String; 5]]) {
    let mut widths = [0_usize; 5];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    for (index, row) in rows.iter().enumerate() {
        let cells: Vec<String> =
            row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        let text = cells.join("  ").trim_end().to_owned();
        line(if index == 0 { styled(BOLD, &text) } else { text });
    }
}
