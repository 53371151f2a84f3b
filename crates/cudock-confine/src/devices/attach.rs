//! Bringing a program to a cgroup.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;

use super::program::Program;
use crate::Error;
use crate::bpf;

/// How much the kernel's verifier may say about a program it refuses.
const LOG_BYTES: usize = 16 * 1024;

/// Puts all processes of a cgroup (v2), and of those below it, under the program, together with any that is there.
///
/// It stays until the cgroup is removed, whatever becomes of the caller. Needs `CAP_BPF` or `CAP_SYS_ADMIN` in the first
/// user namespace, so a rootless container has no device filter: it cannot make nodes either.
pub fn attach(cgroup: &Path, program: &Program) -> Result<(), Error> {
    let attach_error = |source| Error::DeviceAttach { cgroup: cgroup.to_owned(), source };
    let folder = File::open(cgroup).map_err(attach_error)?;
    let loaded = bpf::load_device_program(program.instructions(), &mut []).map_err(|source| {
        // Asked again only to hear why.
        let mut log = vec![0; LOG_BYTES];
        let _ = bpf::load_device_program(program.instructions(), &mut log);
        let said = log.split(|&byte| byte == 0).next().unwrap_or_default();
        Error::DeviceLoad { log: String::from_utf8_lossy(said).into_owned(), source }
    })?;
    bpf::attach_device_program(folder.as_fd(), &loaded).map_err(attach_error)
}
