//! System-call numbers by name.
//!
//! A profile names calls; the kernel compares numbers, which differ between ABIs. The numbers come from the `syscalls`
//! crate. Numbers are never reused, so a newer table only grows.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use ::syscalls::{aarch64, x86, x86_64};

use super::abi::Abi;

/// Calls of Linux 6.19 that the crate does not have yet. Since 5.1, new calls have the same number on every architecture.
const NEWER: [(&str, u32); 1] = [("listns", 470)];

/// The name of call 79 of aarch64, which the crate names `fstatat`, in the kernel's table and in docker's profiles.
const AARCH64_FSTATAT: &str = "newfstatat";

/// Calls with 64-bit times exist on 32-bit architectures only, but the crate lists them for aarch64, too.
const TIME64: std::ops::RangeInclusive<u32> = 403..=423;

type Numbers = BTreeMap<&'static str, u32>;

pub(super) fn number(abi: Abi, name: &str) -> Option<u32> {
    numbers(abi).get(name).copied()
}

/// The name with a static lifetime, if any ABI has such a call.
pub(super) fn known(name: &str) -> Option<&'static str> {
    let find = |abi| numbers(abi).get_key_value(name).map(|(name, _)| *name);
    [Abi::X86_64, Abi::X86, Abi::Aarch64].into_iter().find_map(find)
}

pub(super) fn numbers(abi: Abi) -> &'static Numbers {
    static NUMBERS: OnceLock<[Numbers; 3]> = OnceLock::new();
    let [x86_64, x86, aarch64] = NUMBERS.get_or_init(|| {
        // `Sysno::iter` of 0.8.1 omits the last call.
        let x86_64 = (0..x86_64::Sysno::table_size()).filter_map(x86_64::Sysno::new);
        let x86 = (0..x86::Sysno::table_size()).filter_map(x86::Sysno::new);
        let aarch64 = (0..aarch64::Sysno::table_size()).filter_map(aarch64::Sysno::new);
        let x86_64 = x86_64.filter_map(|call| entry(call.name(), call.id()));
        let x86 = x86.filter_map(|call| entry(call.name(), call.id()));
        let aarch64 = aarch64
            .filter_map(|call| match call {
                aarch64::Sysno::fstatat => entry(AARCH64_FSTATAT, call.id()),
                _ => entry(call.name(), call.id()),
            })
            .filter(|(_, number)| !TIME64.contains(number));
        [x86_64.chain(NEWER).collect(), x86.chain(NEWER).collect(), aarch64.chain(NEWER).collect()]
    });
    match abi {
        Abi::X86_64 => x86_64,
        Abi::X86 => x86,
        Abi::Aarch64 => aarch64,
    }
}

/// A row of the crate's table, in which `break` is spelled as a raw identifier.
fn entry(name: &'static str, id: i32) -> Option<(&'static str, u32)> {
    Some((name.trim_start_matches("r#"), u32::try_from(id).ok()?))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_number_is_listed_twice() {
        for abi in [Abi::X86_64, Abi::X86, Abi::Aarch64] {
            let distinct: BTreeSet<u32> = numbers(abi).values().copied().collect();
            assert_eq!(distinct.len(), numbers(abi).len(), "{abi:?}");
        }
    }

    #[test]
    fn the_numbers_are_those_of_linux_6_19() {
        for (name, expected) in [
            ("read", [Some(0), Some(3), Some(63)]),
            ("open", [Some(2), Some(5), None]),
            ("newfstatat", [Some(262), None, Some(79)]),
            ("socketcall", [None, Some(102), None]),
            ("break", [None, Some(17), None]),
            ("clock_gettime64", [None, Some(403), None]),
            ("pidfd_getfd", [Some(438); 3]),
            ("listns", [Some(470); 3]),
            ("fstatat", [None; 3]),
        ] {
            assert_eq!(
                [Abi::X86_64, Abi::X86, Abi::Aarch64].map(|abi| number(abi, name)),
                expected,
                "{name}"
            );
        }
        let counts = [Abi::X86_64, Abi::X86, Abi::Aarch64].map(|abi| numbers(abi).len());
        assert_eq!(counts, [384, 460, 326]);
    }

    /// Where the kernel's headers are installed, every call they list is compared with the table.
    #[test]
    fn the_numbers_are_those_of_the_kernels_headers() {
        for (abi, header) in [(Abi::X86_64, "unistd_64.h"), (Abi::X86, "unistd_32.h")] {
            let path = format!("/usr/include/x86_64-linux-gnu/asm/{header}");
            let Ok(text) = std::fs::read_to_string(&path) else {
                cudock_testkit::missing("kernel-headers", format_args!("{path} is not here"));
                continue;
            };
            let defined = text.lines().filter_map(|line| line.strip_prefix("#define __NR_")?.split_once(' '));
            for (name, expected) in defined {
                assert_eq!(number(abi, name), expected.trim().parse().ok(), "{name} in {header}");
            }
        }
    }
}
