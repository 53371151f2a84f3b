//! What to keep in each file of a job, and what became of it.

use cudock_facts::version::Capability;

use super::{SlimPlan, plan};
use crate::read::Binary;

#[derive(Debug, Clone, Copy)]
pub struct SlimJob<'a> {
    /// The GPUs that the code must still run on.
    pub targets: &'a [Capability],
    /// Other GPUs to report about.
    pub gpus: &'a [Capability],
    /// Whether to make files shorter, too.
    pub compact: bool,
}

#[derive(Debug)]
pub struct Slimmed {
    /// The path; in a wheel, the path of the wheel, `!/` and the name of the member.
    pub path: String,
    pub bytes_before: u64,
    pub bytes_after: u64,
    /// The length after, without holes.
    pub written: u64,
    pub plan: SlimPlan,
    /// Why it was not changed, or only partly.
    pub warning: Option<String>,
}

pub(super) fn planned(path: String, bytes: &[u8], binary: &Binary, job: &SlimJob<'_>) -> Slimmed {
    let warning = signed(bytes);
    // A signature covers every byte, so such a file is not changed.
    let plan =
        if warning.is_some() { SlimPlan::default() } else { plan(binary, bytes, job.targets, job.gpus) };
    let length = bytes.len() as u64;
    let written = length - plan.patches.iter().map(|patch| patch.zeros).sum::<u64>().min(length);
    Slimmed { path, bytes_before: length, bytes_after: length, written, plan, warning }
}

/// Why a file must not be changed: it has an appended signature.
fn signed(bytes: &[u8]) -> Option<String> {
    let tail = bytes.get(bytes.len().saturating_sub(28)..).unwrap_or_default();
    tail.starts_with(b"~Module signature appended~")
        .then(|| "it is signed, and a change would invalidate the signature".to_owned())
}
