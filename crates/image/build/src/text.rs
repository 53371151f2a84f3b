//! The report as text: the answer first, then what decides it.

use cudock_base::text::format::{count, fixed_bytes};
use cudock_base::text::table::{Align, TextTable};

use crate::report::{BuildReport, ImageReport, SizeNode};

/// Parts of an image that are listed in a tree, at each level.
const SHOWN: usize = 8;

/// The lines of a report; with `explain` the tree of sizes.
pub fn lines(report: &BuildReport, explain: bool) -> Vec<String> {
    let mut lines = vec![format!("{}  {}", report.name, report.digest)];
    let mut table = TextTable::report([
        ("GPU", Align::Left),
        ("compressed", Align::Right),
        ("unpacked", Align::Right),
        ("files", Align::Right),
        ("layers", Align::Right),
        ("left out", Align::Right),
    ]);
    for image in &report.images {
        let omitted: u64 = image.omitted.iter().map(|total| total.bytes).sum();
        let gpu = if image.gpu.is_empty() { "none (CPU)" } else { &image.gpu };
        table.row(vec![
            gpu.to_owned(),
            fixed_bytes(image.compressed),
            fixed_bytes(image.unpacked),
            image.files.to_string(),
            image.layers.len().to_string(),
            fixed_bytes(omitted),
        ]);
    }
    lines.extend(table.lines());
    for check in report.images.iter().flat_map(|image| &image.checks) {
        lines.push(format!("{}: {} ({})", check.target, check.verdict.name(), check.reason));
    }
    lines.extend(report.warnings.iter().map(|warning| format!("warning: {warning}")));
    if explain {
        report.images.iter().for_each(|image| tree(image, &mut lines));
    }
    lines.extend(
        report
            .destination
            .as_ref()
            .map(|destination| format!("written to {destination} ({})", report.compression)),
    );
    lines
}

fn tree(image: &ImageReport, lines: &mut Vec<String>) {
    lines.push(String::new());
    lines.push(format!("{} {}", fixed_bytes(image.unpacked), image.gpu));
    for group in &image.sizes {
        branch(group, 1, lines);
    }
    lines.push("left out:".to_owned());
    for total in &image.omitted {
        let files = count(total.files, "file");
        lines.push(format!("  {:>9}  {}: {files}: {}", fixed_bytes(total.bytes), total.rule, total.reason));
        for entry in total.largest.iter().filter(|entry| entry.bytes >= 1 << 20).take(4) {
            let reason = entry.reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
            lines.push(format!("    {:>9}  {}{reason}", fixed_bytes(entry.bytes), entry.path));
        }
    }
}

fn branch(node: &SizeNode, depth: usize, lines: &mut Vec<String>) {
    let reason = if node.reason.is_empty() { String::new() } else { format!("  ({})", node.reason) };
    lines.push(format!("{}{:>9}  {}{reason}", "  ".repeat(depth), fixed_bytes(node.bytes), node.name));
    for part in node.parts.iter().take(SHOWN) {
        branch(part, depth + 1, lines);
    }
    if let Some(rest) = node.parts.get(SHOWN..).filter(|rest| !rest.is_empty()) {
        let bytes = rest.iter().map(|part| part.bytes).sum();
        lines.push(format!("{}{:>9}  {} more", "  ".repeat(depth + 1), fixed_bytes(bytes), rest.len()));
    }
}
