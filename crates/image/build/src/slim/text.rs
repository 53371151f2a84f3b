//! The result of slimming an image, as text.

use cudock_base::text::format::{count, fixed_bytes};

use crate::slim::ImageReport;

/// `4 of 7 layers changed   5.1 GB -> 2.2 GB stored` and the new digest.
pub fn lines(report: &ImageReport) -> Vec<String> {
    let changed = report.layers.iter().filter(|layer| layer.digest_before != layer.digest_after).count();
    let layers = format!(
        "{changed} of {} changed   {} -> {} stored",
        count(report.layers.len(), "layer"),
        fixed_bytes(report.bytes_before),
        fixed_bytes(report.bytes_after),
    );
    let mut lines = vec![layers];
    if !report.unused_libraries.is_empty() {
        let bytes = report.unused_libraries.values().sum();
        let names: Vec<&str> =
            report.unused_libraries.keys().map(|path| path.rsplit('/').next().unwrap_or(path)).collect();
        lines.push(format!("removed   {} of unused libraries: {}", fixed_bytes(bytes), names.join(", ")));
    }
    lines.push(format!("image {}", report.digest_after));
    lines
}
