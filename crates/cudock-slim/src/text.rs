//! What became of an image, as text.

use cudock_base::format::{count, fixed_bytes};

use crate::ImageReport;

/// `4 of 7 layers changed   5.1 GB -> 2.2 GB stored` and the new digest.
pub fn lines(report: &ImageReport) -> Vec<String> {
    let changed = report.layers.iter().filter(|layer| layer.digest_before != layer.digest_after).count();
    let layers = format!(
        "{changed} of {} changed   {} -> {} stored",
        count(report.layers.len(), "layer"),
        fixed_bytes(report.bytes_before),
        fixed_bytes(report.bytes_after),
    );
    vec![layers, format!("image {}", report.digest_after)]
}
