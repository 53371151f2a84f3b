//! Attaches a device program to a cgroup.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;

use super::program::Program;
use crate::ConfineError;
use crate::bpf;

/// Space for the verifier's log.
const LOG_BYTES: usize = 16 * 1024;

/// Applies a program to all processes of a cgroup (v2) and its descendants, in addition to programs already attached.
///
/// It stays until the cgroup is removed, even if the caller exits. Needs `CAP_BPF` or `CAP_SYS_ADMIN` in the initial user
/// namespace, so a rootless container has no device filter; it cannot create nodes either.
pub fn attach(cgroup: &Path, program: &Program) -> Result<(), ConfineError> {
    let attach_error = |source| ConfineError::DeviceAttach { cgroup: cgroup.to_owned(), source };
    let directory = File::open(cgroup).map_err(attach_error)?;
    let loaded = bpf::load_device_program(program.instructions(), &mut []).map_err(|source| {
        // Loaded once more for the verifier's log.
        let mut log = vec![0; LOG_BYTES];
        let _ = bpf::load_device_program(program.instructions(), &mut log);
        let text = log.split(|&byte| byte == 0).next().unwrap_or_default();
        ConfineError::DeviceLoad { log: String::from_utf8_lossy(text).into_owned(), source }
    })?;
    bpf::attach_device_program(directory.as_fd(), &loaded).map_err(attach_error)
}
