//! Device rules: parsing, printing, and what they allow.

use std::fmt;
use std::ops::BitOr;
use std::str::FromStr;

use crate::ConfineError;

/// The type of a device node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeviceKind {
    /// A character device, as all GPUs are.
    Char,
    Block,
    /// Both; only in rules.
    All,
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
    /// All three.
    pub const ANY: Self = Self(7);

    /// The kernel's bits (`BPF_DEVCG_ACC_*`).
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// From the kernel's bits; others are dropped.
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & 7)
    }

    fn each(self) -> impl Iterator<Item = u8> {
        [1, 2, 4].into_iter().filter(move |bit| self.0 & bit != 0)
    }
}

impl BitOr for Access {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DeviceRule {
    /// Which kind of device it matches.
    pub kind: DeviceKind,
    /// The major number; any if `None`.
    pub major: Option<u32>,
    /// The minor number; any if `None`.
    pub minor: Option<u32>,
    /// Which access it matches.
    pub access: Access,
    pub allow: bool,
}

impl DeviceRule {
    pub const fn allow(kind: DeviceKind, major: u32, minor: u32, access: Access) -> Self {
        Self { kind, major: Some(major), minor: Some(minor), access, allow: true }
    }

    fn matches(&self, kind: DeviceKind, major: u32, minor: u32) -> bool {
        (self.kind == DeviceKind::All || self.kind == kind)
            && self.major.is_none_or(|wanted| wanted == major)
            && self.minor.is_none_or(|wanted| wanted == minor)
    }
}

/// Whether rules allow all of the access to a device of kind `Char` or `Block`.
pub fn allowed(rules: &[DeviceRule], kind: DeviceKind, major: u32, minor: u32, access: Access) -> bool {
    access.each().all(|bit| {
        let last =
            rules.iter().rev().find(|rule| rule.access.bits() & bit != 0 && rule.matches(kind, major, minor));
        last.is_some_and(|rule| rule.allow)
    })
}

/// The rules of every container: the nodes that the OCI runtime specification requires (null, zero, full, random, urandom,
/// tty), pseudo-terminals, and creating nodes of any device, as runc allows: package managers create some, and a node that
/// cannot be opened is harmless.
pub fn standard_rules() -> Vec<DeviceRule> {
    let any = |kind| DeviceRule { kind, major: None, minor: None, access: Access::MAKE, allow: true };
    let char = |major, minor| DeviceRule::allow(DeviceKind::Char, major, minor, Access::ANY);
    vec![
        any(DeviceKind::Char),
        any(DeviceKind::Block),
        char(1, 3),
        char(1, 5),
        char(1, 7),
        char(1, 8),
        char(1, 9),
        char(5, 0),
        char(5, 2),
        DeviceRule {
            kind: DeviceKind::Char,
            major: Some(136),
            minor: None,
            access: Access::ANY,
            allow: true,
        },
    ]
}

impl fmt::Display for DeviceRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |number: Option<u32>| number.map_or_else(|| "*".to_owned(), |number| number.to_string());
        let kind = match self.kind {
            DeviceKind::Char => 'c',
            DeviceKind::Block => 'b',
            DeviceKind::All => 'a',
        };
        write!(f, "{kind} {}:{} ", number(self.major), number(self.minor))?;
        for (access, letter) in [(Access::READ, 'r'), (Access::WRITE, 'w'), (Access::MAKE, 'm')] {
            if self.access.bits() & access.bits() != 0 {
                write!(f, "{letter}")?;
            }
        }
        Ok(())
    }
}

/// Parses a rule that allows, in the syntax of `--device-cgroup-rule`: `c 195:0 rw`, `c 195:* rwm`, `a`.
impl FromStr for DeviceRule {
    type Err = ConfineError;

    fn from_str(text: &str) -> Result<Self, ConfineError> {
        parse(text).ok_or_else(|| ConfineError::DeviceRule { rule: text.chars().take(60).collect() })
    }
}

fn parse(text: &str) -> Option<DeviceRule> {
    let mut fields = text.split_ascii_whitespace();
    let kind = match fields.next()? {
        "c" => DeviceKind::Char,
        "b" => DeviceKind::Block,
        "a" => DeviceKind::All,
        _ => return None,
    };
    let Some(numbers) = fields.next() else {
        let whole = DeviceRule { kind, major: None, minor: None, access: Access::ANY, allow: true };
        return (kind == DeviceKind::All).then_some(whole);
    };
    let (major, minor) = numbers.split_once(':')?;
    let number = |text: &str| match text {
        "*" => Some(None),
        // `parse` accepts a plus sign.
        _ if !text.starts_with(|c: char| c.is_ascii_digit()) => None,
        _ => text.parse().ok().map(Some),
    };
    let (major, minor) = (number(major)?, number(minor)?);
    let mut bits = 0;
    for letter in fields.next()?.chars() {
        bits |= match letter {
            'r' => Access::READ.bits(),
            'w' => Access::WRITE.bits(),
            'm' => Access::MAKE.bits(),
            _ => return None,
        };
    }
    fields.next().is_none().then_some(DeviceRule {
        kind,
        major,
        minor,
        access: Access::from_bits(bits),
        allow: true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_parsed_as_it_is_printed() {
        for text in ["c 195:0 rw", "b 8:* r", "a *:* rwm", "c *:5 m"] {
            assert_eq!(text.parse::<DeviceRule>().unwrap().to_string(), text);
        }
        assert_eq!("a".parse::<DeviceRule>().unwrap().to_string(), "a *:* rwm");
    }

    #[test]
    fn text_that_is_not_a_rule_is_rejected() {
        for text in ["", "c", "d 1:3 r", "c 1 r", "c 1:3", "c 1:3 x", "c -1:3 r", "c +1:3 r", "c 1:3 r more"]
        {
            assert!(text.parse::<DeviceRule>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_last_rule_that_matches_decides() {
        let deny = DeviceRule { allow: false, ..DeviceRule::allow(DeviceKind::Char, 1, 3, Access::WRITE) };
        let rules = [DeviceRule::allow(DeviceKind::Char, 1, 3, Access::ANY), deny];
        assert!(allowed(&rules, DeviceKind::Char, 1, 3, Access::READ));
        assert!(!allowed(&rules, DeviceKind::Char, 1, 3, Access::READ | Access::WRITE));
        assert!(allowed(&[deny, rules[0]], DeviceKind::Char, 1, 3, Access::ANY));
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
