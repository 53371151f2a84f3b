//! Installs a filter with seccomp(2).
#![allow(unsafe_code, reason = "no dependency wraps seccomp(2)")]

use std::io;

use super::assemble::Instruction;
use super::resolve::MAX_INSTRUCTIONS;

const SET_MODE_FILTER: libc::c_uint = 1;
/// Leaves speculative store bypass enabled, as runc does. Before Linux 5.16 a filter otherwise slowed down all code of the
/// container.
const SPEC_ALLOW: libc::c_ulong = 1 << 2;

const _: () = {
    assert!(size_of::<Instruction>() == size_of::<libc::sock_filter>());
    assert!(align_of::<Instruction>() == align_of::<libc::sock_filter>());
};

pub(super) fn install(program: &[Instruction]) -> io::Result<()> {
    match set_filter(program, SPEC_ALLOW) {
        // Kernels before 4.17 do not know the flag.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => set_filter(program, 0),
        other => other,
    }
}

fn set_filter(program: &[Instruction], flags: libc::c_ulong) -> io::Result<()> {
    let too_long = || io::Error::from_raw_os_error(libc::EINVAL);
    let length = u16::try_from(program.len()).ok().filter(|&length| usize::from(length) <= MAX_INSTRUCTIONS);
    let argument = libc::sock_fprog {
        len: length.ok_or_else(too_long)?,
        filter: program.as_ptr().cast::<libc::sock_filter>().cast_mut(),
    };
    // SAFETY: `argument` and the instructions it points to live until the call returns; the kernel only reads them. `len` is
    // their number, and `Instruction` has the layout of `sock_filter` (`repr(C)`, the same fields in the same order, size
    // and alignment checked above).
    let result = unsafe { libc::syscall(libc::SYS_seccomp, SET_MODE_FILTER, flags, &raw const argument) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
