//! Profiles from files: what is accepted, and what is rejected with which message.

use std::error::Error as _;

use cudock_confine::seccomp::{Abi, Action, Filter, MAX_PROFILE_BYTES, Profile};
use cudock_confine::{Capability, ConfineError};
use proptest::prelude::*;

use crate::support::here;

/// The action for a call of 64-bit x86.
fn decide(profile: &Profile, capabilities: &[Capability], number: u32, first: u64) -> Action {
    let arch = Abi::X86_64.audit_number();
    profile.decisions(&here(capabilities)).unwrap().of(arch, number, &[first, 0, 0, 0, 0, 0])
}

const READ: u32 = 0;
const SOCKET: u32 = 41;
const CLONE: u32 = 56;
const MOUNT: u32 = 165;

/// All that the form has, in one profile.
const FULL: &str = r#"{
    "defaultAction": "SCMP_ACT_ERRNO",
    "defaultErrnoRet": 1,
    "archMap": [
        {"architecture": "SCMP_ARCH_X86_64", "subArchitectures": ["SCMP_ARCH_X86", "SCMP_ARCH_X32"]},
        {"architecture": "SCMP_ARCH_S390X", "subArchitectures": null}
    ],
    "flags": ["SECCOMP_FILTER_FLAG_LOG"],
    "syscalls": [
        {"names": ["read", "riscv_hwprobe"], "action": "SCMP_ACT_ALLOW", "args": null, "comment": "", "includes": {}, "excludes": {}},
        {"name": "write", "action": "SCMP_ACT_LOG"},
        {"names": ["mount"], "action": "SCMP_ACT_ALLOW", "includes": {"caps": ["CAP_SYS_ADMIN"]}},
        {"names": ["ptrace"], "action": "SCMP_ACT_ALLOW", "includes": {"minKernel": "4.8"}},
        {"names": ["clone"], "action": "SCMP_ACT_ALLOW", "excludes": {"caps": ["CAP_SYS_ADMIN"], "arches": ["s390", "s390x"]},
         "args": [{"index": 0, "value": 2114060288, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}]},
        {"names": ["socket"], "action": "SCMP_ACT_ALLOW",
         "args": [{"index": 0, "value": 1, "op": "SCMP_CMP_EQ"}, {"index": 0, "value": 2, "op": "SCMP_CMP_EQ"}]},
        {"names": ["kill"], "action": "SCMP_ACT_ERRNO", "errno": "ENOSYS", "errnoRet": 38},
        {"names": ["tkill"], "action": "SCMP_ACT_KILL_PROCESS"}
    ]
}"#;

#[test]
fn a_profile_in_dockers_form_is_understood() {
    let profile = Profile::from_json(FULL.as_bytes()).unwrap();
    let none: &[Capability] = &[];
    assert_eq!(decide(&profile, none, READ, 0), Action::Allow);
    assert_eq!(decide(&profile, none, 1, 0), Action::Log);
    assert_eq!(decide(&profile, none, MOUNT, 0), Action::Errno(1));
    assert_eq!(decide(&profile, &[Capability::SysAdmin], MOUNT, 0), Action::Allow);
    assert_eq!(decide(&profile, none, 101, 0), Action::Allow);
    assert_eq!(decide(&profile, none, CLONE, 0x11), Action::Allow);
    assert_eq!(decide(&profile, none, CLONE, 0x1000_0011), Action::Errno(1));
    assert_eq!(decide(&profile, &[Capability::SysAdmin], CLONE, 0x11), Action::Errno(1));
    assert_eq!(decide(&profile, none, 62, 0), Action::Errno(38));
    assert_eq!(decide(&profile, none, 200, 0), Action::KillProcess);
    let x86 = profile.decisions(&here(none)).unwrap().of(Abi::X86.audit_number(), 3, &[0; 6]);
    assert_eq!(x86, Action::Allow);
    Filter::new(&profile, &here(none)).unwrap();
}

/// A profile of other people's making, with all that the form has.
#[test]
fn the_profile_podman_brings_is_understood() {
    let path = "/usr/share/containers/seccomp.json";
    let Ok(text) = std::fs::read(path) else {
        cudock_testkit::missing("podman", format_args!("{path} not found"));
        return;
    };
    let profile = Profile::from_json(&text).unwrap();
    let there = here(&[Capability::Chown]);
    let filter = Filter::new(&profile, &there).unwrap();
    eprintln!("{} instructions", filter.instructions().len());
    assert_eq!(decide(&profile, &[], READ, 0), Action::Allow);
    assert_eq!(decide(&profile, &[], 246, 0), Action::Errno(1), "kexec_load");
    assert_eq!(decide(&profile, &[], 321, 0), Action::Errno(1), "bpf");
    assert_eq!(decide(&profile, &[Capability::SysAdmin], 321, 0), Action::Allow, "bpf");
}

#[test]
fn several_conditions_on_one_argument_are_alternatives_as_with_runc() {
    let profile = Profile::from_json(FULL.as_bytes()).unwrap();
    assert_eq!(decide(&profile, &[], SOCKET, 1), Action::Allow);
    assert_eq!(decide(&profile, &[], SOCKET, 2), Action::Allow);
    assert_eq!(decide(&profile, &[], SOCKET, 3), Action::Errno(1));
}

#[test]
fn a_profile_that_opens_no_other_way_into_the_kernel_has_none() {
    let profile = Profile::from_json(br#"{"defaultAction": "SCMP_ACT_ALLOW"}"#).unwrap();
    assert_eq!(decide(&profile, &[], MOUNT, 0), Action::Allow);
    let x86 = profile.decisions(&here(&[])).unwrap().of(Abi::X86.audit_number(), 3, &[0; 6]);
    assert_eq!(x86, Action::KillProcess);
}

/// The error with its cause, as a user sees both.
fn with_cause(error: &ConfineError) -> String {
    error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
}

#[test]
fn invalid_profiles_are_rejected_with_the_reason() {
    let rule = |rule: &str| format!(r#"{{"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [{rule}]}}"#);
    for (profile, wanted) in [
        ("[]".to_owned(), "the seccomp profile is not in docker's format"),
        ("{}".to_owned(), "missing field `defaultAction`"),
        (r#"{"defaultAction": "ALLOW"}"#.to_owned(), "defaultAction: unknown action `ALLOW`"),
        (rule(r#"{"names": ["read"], "action": "SCMP_ACT_ALLOW", "exclude": {}}"#), "unknown field `exclude`"),
        (rule(r#"{"names": ["read"], "action": "SCMP_ACT_NOTIFY"}"#), "syscalls[0]: SCMP_ACT_NOTIFY is not supported"),
        (rule(r#"{"name": "a", "names": ["b"], "action": "SCMP_ACT_ALLOW"}"#), "has both `name` and `names`"),
        (rule(r#"{"names": [], "action": "SCMP_ACT_ALLOW"}"#), "names no system call"),
        (
            rule(r#"{"names": ["read"], "action": "SCMP_ACT_ERRNO", "errnoRet": 4096}"#),
            "4096 is not an error number",
        ),
        (
            rule(r#"{"names": ["read"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1, "errno": "ENOSYS"}"#),
            "error number 1 does not match the name, which is 38",
        ),
        (
            rule(r#"{"names": ["read"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 6, "value": 0, "op": "SCMP_CMP_EQ"}]}"#),
            "a system call has no argument 6",
        ),
        (
            rule(r#"{"names": ["read"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 0, "value": 0, "op": "="}]}"#),
            "unknown comparison `=`",
        ),
        (
            rule(r#"{"names": ["read"], "action": "SCMP_ACT_ALLOW", "includes": {"caps": ["CAP_SYS_ADMN"]}}"#),
            "did you mean `CAP_SYS_ADMIN`?",
        ),
        (
            rule(r#"{"names": ["read"], "action": "SCMP_ACT_ALLOW", "includes": {"minKernel": "new"}}"#),
            "`new` is not a kernel version",
        ),
        (
            r#"{"defaultAction": "SCMP_ACT_ERRNO", "architectures": ["x86"]}"#.to_owned(),
            "unknown architecture `x86`",
        ),
        (
            r#"{"defaultAction": "SCMP_ACT_ERRNO", "architectures": ["SCMP_ARCH_X86"], "archMap": [{"architecture": "SCMP_ARCH_X86_64"}]}"#
                .to_owned(),
            "use one of them",
        ),
        (
            r#"{"defaultAction": "SCMP_ACT_ERRNO", "listenerPath": "/run/listen"}"#.to_owned(),
            "notifications are not supported",
        ),
        (r#"{"defaultAction": "SCMP_ACT_ERRNO", "flags": ["FAST"]}"#.to_owned(), "unknown flag `FAST`"),
    ] {
        let error = Profile::from_json(profile.as_bytes()).expect_err(&profile);
        assert!(with_cause(&error).contains(wanted), "{profile}\n{}", with_cause(&error));
    }
}

#[test]
fn a_profile_that_is_too_large_is_not_even_parsed() {
    let error = Profile::from_json(&vec![b' '; MAX_PROFILE_BYTES + 1]).unwrap_err();
    assert!(matches!(error, ConfineError::ProfileSize { .. }));
}

#[test]
fn more_rules_than_a_program_can_hold_are_refused_before_they_take_memory() {
    let argument = r#"{"index": 0, "value": 1, "op": "SCMP_CMP_EQ"}"#;
    let arguments = vec![argument; 60].join(",");
    let names =
        vec![r#""read","write","open","close","stat","fstat","lstat","poll","mmap","brk""#; 40].join(",");
    let rule = format!(r#"{{"names": [{names}], "action": "SCMP_ACT_ALLOW", "args": [{arguments}]}}"#);
    let count = (MAX_PROFILE_BYTES - 100) / (rule.len() + 1);
    let profile =
        format!(r#"{{"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [{}]}}"#, vec![rule; count].join(","));
    let profile = Profile::from_json(profile.as_bytes()).unwrap();
    let error = Filter::new(&profile, &here(&[])).unwrap_err();
    assert!(matches!(error, ConfineError::FilterLength { .. }));
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = Profile::from_json(&bytes);
    }

    /// A good profile with a few bytes changed gets further in than noise.
    #[test]
    fn no_damage_to_a_good_profile_makes_the_reader_panic(
        damage in prop::collection::vec((0..FULL.len(), any::<u8>()), 1..6)
    ) {
        let mut bytes = FULL.as_bytes().to_vec();
        for (at, byte) in damage {
            bytes[at] = byte;
        }
        if let Ok(profile) = Profile::from_json(&bytes) {
            let _ = Filter::new(&profile, &here(&[]));
        }
    }
}
