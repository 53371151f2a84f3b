//! The two bpf(2) commands needed here: load a device program and attach it.
#![allow(unsafe_code, reason = "no dependency wraps bpf(2)")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// An eBPF instruction, laid out as `struct bpf_insn`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Instruction {
    pub code: u8,
    /// The registers: the destination in the lower four bits, the source in the upper.
    pub registers: u8,
    /// The jump distance, or the offset to load from.
    pub offset: i16,
    pub immediate: i32,
}

const PROG_LOAD: libc::c_int = 5;
const PROG_ATTACH: libc::c_int = 8;
const PROG_TYPE_CGROUP_DEVICE: u32 = 15;
const ATTACH_CGROUP_DEVICE: u32 = 6;
/// The programs of this cgroup and of its ancestors all run, and all must allow.
const ALLOW_MULTI: u32 = 1 << 1;

/// The start of `union bpf_attr` for `BPF_PROG_LOAD`; the kernel reads missing fields as zero.
#[repr(C)]
struct Load {
    prog_type: u32,
    instruction_count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
}

/// The start of `union bpf_attr` for `BPF_PROG_ATTACH`.
#[repr(C)]
struct Attach {
    target: u32,
    program: u32,
    kind: u32,
    flags: u32,
}

const _: () = {
    assert!(size_of::<Instruction>() == 8);
    assert!(size_of::<Load>() == 64);
    assert!(size_of::<Attach>() == 16);
};

/// Loads a device program. If the verifier rejects it, its log is written to `log`, truncated to fit.
pub(crate) fn load_device_program(program: &[Instruction], log: &mut [u8]) -> io::Result<OwnedFd> {
    /// A signal that arrives while the kernel verifies the program makes the call fail with EAGAIN.
    const TRIES: usize = 8;
    let mut result = load_once(program, log);
    for _ in 1..TRIES {
        match &result {
            Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => result = load_once(program, log),
            _ => break,
        }
    }
    result
}

fn load_once(program: &[Instruction], log: &mut [u8]) -> io::Result<OwnedFd> {
    let license = c"Apache-2.0";
    let attribute = Load {
        prog_type: PROG_TYPE_CGROUP_DEVICE,
        instruction_count: u32::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?,
        instructions: address(program.as_ptr()),
        license: address(license.as_ptr()),
        log_level: u32::from(!log.is_empty()),
        log_size: u32::try_from(log.len()).map_err(|_| io::ErrorKind::InvalidInput)?,
        log: if log.is_empty() { 0 } else { address(log.as_mut_ptr()) },
        kernel_version: 0,
        flags: 0,
        name: *b"cudock_devices\0\0",
    };
    // SAFETY: `attribute` is a `union bpf_attr` of the passed size, as BPF_PROG_LOAD reads it. Everything it points to lives
    // until the call returns: `program`, with its length and the layout of `bpf_insn`, and the NUL-terminated `license` are
    // only read; `log` is borrowed mutably and written up to its length.
    let descriptor =
        unsafe { libc::syscall(libc::SYS_bpf, PROG_LOAD, &raw const attribute, size_of::<Load>()) };
    let descriptor = RawFd::try_from(descriptor).map_err(|_| io::ErrorKind::InvalidData)?;
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just created this descriptor (closed on exec); nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Attaches a loaded device program to an open cgroup directory, in addition to existing ones.
pub(crate) fn attach_device_program(cgroup: BorrowedFd<'_>, program: &OwnedFd) -> io::Result<()> {
    let number = |fd: BorrowedFd<'_>| u32::try_from(fd.as_raw_fd()).map_err(|_| io::ErrorKind::InvalidInput);
    let attribute = Attach {
        target: number(cgroup)?,
        program: number(program.as_fd())?,
        kind: ATTACH_CGROUP_DEVICE,
        flags: ALLOW_MULTI,
    };
    // SAFETY: `attribute` is a `union bpf_attr` of the passed size, as BPF_PROG_ATTACH reads it; it holds two descriptors
    // that are open during the call, and no pointers.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, PROG_ATTACH, &raw const attribute, size_of::<Attach>()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// An address as the kernel's structures hold it.
fn address<T>(pointer: *const T) -> u64 {
    pointer.addr() as u64
}
