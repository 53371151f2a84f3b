//! Device rules, and what they allow.

use std::ops::BitOr;

/// The type of a device node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeviceKind {
    /// A character device, as all GPUs are.
    Char,
    Block,
}

/// Any of reading, writing and creating a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Access(u8);

impl Access {
    /// Creating the node.
    pub const MAKE: Self = Self(1);
    /// Opening it for reading.
    pub const READ: Self = Self(2);
    /// Opening it for writing.
    pub const WRITE: Self = Self(4);
    pub const ANY: Self = Self(7);

    /// The kernel's bits (`BPF_DEVCG_ACC_*`).
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// The access that the kernel's bits stand for; other bits are ignored.
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & 7)
    }
}

impl BitOr for Access {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Allows access to devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DeviceRule {
    pub kind: DeviceKind,
    /// The major number; any if `None`.
    pub major: Option<u32>,
    /// The minor number; any if `None`.
    pub minor: Option<u32>,
    pub access: Access,
}

impl DeviceRule {
    pub const fn new(kind: DeviceKind, major: u32, minor: u32, access: Access) -> Self {
        Self { kind, major: Some(major), minor: Some(minor), access }
    }
}

/// Whether rules together allow all of the access to a device.
pub fn allowed(rules: &[DeviceRule], kind: DeviceKind, major: u32, minor: u32, access: Access) -> bool {
    let matching = rules.iter().filter(|rule| {
        rule.kind == kind
            && rule.major.is_none_or(|wanted| wanted == major)
            && rule.minor.is_none_or(|wanted| wanted == minor)
    });
    matching.fold(access.bits(), |left, rule| left & !rule.access.bits()) == 0
}

/// The rules of every container: the nodes that the OCI runtime specification requires (null, zero, full, random, urandom,
/// tty), pseudo-terminals, and creating nodes of any device, as runc allows: package managers create some, and a node that
/// cannot be opened is harmless.
pub fn standard_rules() -> Vec<DeviceRule> {
    let make = |kind| DeviceRule { kind, major: None, minor: None, access: Access::MAKE };
    let mut rules = vec![make(DeviceKind::Char), make(DeviceKind::Block)];
    let nodes = [(1, 3), (1, 5), (1, 7), (1, 8), (1, 9), (5, 0), (5, 2)];
    rules.extend(nodes.map(|(major, minor)| DeviceRule::new(DeviceKind::Char, major, minor, Access::ANY)));
    rules.push(DeviceRule { kind: DeviceKind::Char, major: Some(136), minor: None, access: Access::ANY });
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_combined_for_the_access_they_name() {
        let rule = |access| DeviceRule::new(DeviceKind::Char, 1, 3, access);
        let allows = |rules: &[DeviceRule], access| allowed(rules, DeviceKind::Char, 1, 3, access);
        assert!(allows(&[rule(Access::READ), rule(Access::WRITE)], Access::READ | Access::WRITE));
        assert!(!allows(&[rule(Access::READ)], Access::READ | Access::WRITE));
        assert!(!allowed(&[rule(Access::ANY)], DeviceKind::Block, 1, 3, Access::READ));
    }

    #[test]
    fn the_standard_rules_open_no_disk_memory_or_gpu() {
        let rules = standard_rules();
        for (kind, major, minor) in [
            (DeviceKind::Block, 8, 0),
            (DeviceKind::Block, 259, 0),
            (DeviceKind::Char, 1, 1),
            (DeviceKind::Char, 1, 4),
            (DeviceKind::Char, 10, 200),
            (DeviceKind::Char, 10, 229),
            (DeviceKind::Char, 195, 0),
            (DeviceKind::Char, 195, 255),
            (DeviceKind::Char, 5, 1),
        ] {
            assert!(!allowed(&rules, kind, major, minor, Access::READ), "{kind:?} {major}:{minor}");
            assert!(!allowed(&rules, kind, major, minor, Access::WRITE), "{kind:?} {major}:{minor}");
            assert!(allowed(&rules, kind, major, minor, Access::MAKE), "{kind:?} {major}:{minor}");
        }
        assert!(allowed(&rules, DeviceKind::Char, 1, 3, Access::ANY));
        assert!(allowed(&rules, DeviceKind::Char, 136, 7, Access::READ | Access::WRITE));
    }
}
