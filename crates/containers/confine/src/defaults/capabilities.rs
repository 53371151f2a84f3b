//! The capabilities of a container.

use crate::{Capability, CapabilityChange};

/// Docker's defaults: enough to install packages, change users and listen on low ports as root of the container, but
/// nothing that affects the host.
pub const STANDARD_CAPABILITIES: [Capability; 14] = [
    Capability::Chown,
    Capability::DacOverride,
    Capability::Fowner,
    Capability::Fsetid,
    Capability::Kill,
    Capability::Setgid,
    Capability::Setuid,
    Capability::Setpcap,
    Capability::NetBindService,
    Capability::NetRaw,
    Capability::SysChroot,
    Capability::Mknod,
    Capability::AuditWrite,
    Capability::Setfcap,
];

/// The capabilities after `--cap-add` and `--cap-drop`, by number, for the bounding, permitted and effective sets. The
/// inheritable set stays empty (CVE-2022-29162).
///
/// Names take precedence over `ALL`, as in docker: `--cap-drop ALL --cap-add CHOWN` leaves one, `--cap-add ALL --cap-drop
/// CHOWN` removes one. A capability that is both added and dropped by name is dropped.
pub fn capabilities(add: &[CapabilityChange], drop: &[CapabilityChange]) -> Vec<Capability> {
    let add_all = add.contains(&CapabilityChange::All);
    let drop_all = drop.contains(&CapabilityChange::All);
    let has = |capability: &Capability| {
        let one = CapabilityChange::One(*capability);
        let initial = add_all || (!drop_all && STANDARD_CAPABILITIES.contains(capability));
        !drop.contains(&one) && (add.contains(&one) || initial)
    };
    Capability::ALL.iter().copied().filter(has).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(names: &[&str]) -> Vec<CapabilityChange> {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    #[test]
    fn the_defaults_are_dockers_fourteen() {
        let got = capabilities(&[], &[]);
        assert_eq!(got.len(), 14);
        assert!(STANDARD_CAPABILITIES.iter().all(|one| got.contains(one)));
    }

    #[test]
    fn names_take_precedence_over_all() {
        assert_eq!(capabilities(&changes(&["CHOWN"]), &changes(&["all"])), [Capability::Chown]);
        let got = capabilities(&changes(&["ALL"]), &changes(&["CAP_CHOWN"]));
        assert_eq!(got.len(), Capability::ALL.len() - 1);
        assert!(!got.contains(&Capability::Chown));
    }

    #[test]
    fn what_is_added_and_dropped_is_dropped() {
        let got = capabilities(&changes(&["sys_ptrace"]), &changes(&["SYS_PTRACE"]));
        assert!(!got.contains(&Capability::SysPtrace));
        assert_eq!(got.len(), 14);
    }

    #[test]
    fn dropping_all_leaves_nothing() {
        assert!(capabilities(&[], &changes(&["ALL"])).is_empty());
    }
}
