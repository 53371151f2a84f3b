//! Containers as people read them.

use std::time::Duration;

use cudock_base::text::format::age;
use cudock_base::text::printable;
use cudock_runtime::container::home::short_id;
use cudock_runtime::container::status::now;
use cudock_runtime::engine::Summary;

use crate::output::{BOLD, line, styled, width};

pub(crate) fn list(containers: &[Summary]) {
    let heads = ["ID", "NAME", "IMAGE", "COMMAND", "STATE", "GPUS", "PORTS"];
    let rows: Vec<[String; 7]> = containers.iter().map(row).collect();
    let mut widths = heads.map(str::len);
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    // The image and the command give way where the terminal is narrow.
    let spaces = 2 * (heads.len() - 1);
    for column in [3, 2] {
        let excess = (widths.iter().sum::<usize>() + spaces).saturating_sub(width());
        if let Some(width) = widths.get_mut(column) {
            *width = width.saturating_sub(excess).max(12);
        }
    }
    line(styled(BOLD, &joined(&heads.map(str::to_owned), &widths)));
    for row in &rows {
        line(joined(row, &widths));
    }
}

fn row(container: &Summary) -> [String; 7] {
    [
        short_id(&container.id).to_owned(),
        container.name.clone(),
        printable(&container.image).into_owned(),
        printable(&container.command).into_owned(),
        state(container),
        container.gpus.clone().unwrap_or_else(|| "-".to_owned()),
        joined_or_dash(&container.ports),
    ]
}

fn state(container: &Summary) -> String {
    let since = |moment: Option<u64>| moment.map(age_of).unwrap_or_default();
    match (container.state.as_str(), container.exit_code) {
        ("running", _) if container.ready == Some(false) => {
            format!("running {}, not ready", since(container.started))
        }
        ("running", _) => format!("running {}", since(container.started)),
        ("exited", Some(_)) if container.out_of_memory => "exited (out of memory)".to_owned(),
        (state, Some(code)) => format!("{state} ({code})"),
        (state, None) => state.to_owned(),
    }
}

/// The time since a moment in milliseconds since 1970.
pub(crate) fn age_of(moment: u64) -> String {
    age(Duration::from_millis(now().saturating_sub(moment)))
}

pub(crate) fn joined_or_dash(names: &[String]) -> String {
    if names.is_empty() { "-".to_owned() } else { names.join(", ") }
}

fn joined(cells: &[String; 7], widths: &[usize; 7]) -> String {
    let padded: Vec<String> = cells
        .iter()
        .zip(widths)
        .map(|(cell, &width)| {
            let shown: String = if cell.chars().count() > width {
                cell.chars().take(width.saturating_sub(1)).chain(['…']).collect()
            } else {
                cell.clone()
            };
            format!("{shown:width$}")
        })
        .collect();
    padded.join("  ").trim_end().to_owned()
}
