//! Rules about devices, and what they say.

use std::fmt;
use std::io;
use std::ops::BitOr;
use std::path::Path;
use std::str::FromStr;

use crate::Error;

/// The kind of a device node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A character device, as all GPUs are.
    Char,
    /// A block device.
    Block,
    /// In a rule: either.
    All,
}

/// What is done with a node: any of reading, writing, making.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Access(u8);

impl Access {
    /// Making the node.
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

    /// Of the kernel's bits; others are dropped.
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

/// One rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rule {
    /// Of which kind of device it speaks.
    pub kind: Kind,
    /// The driver's number, any where none is given.
    pub major: Option<u32>,
    /// The device's number with that driver, any where none is given.
    pub minor: Option<u32>,
    /// Of which access it speaks.
    pub access: Access,
    /// Whether it allows.
    pub allow: bool,
}

impl Rule {
    /// Allows one device.
    pub const fn allow(kind: Kind, major: u32, minor: u32, access: Access) -> Self {
        Self { kind, major: Some(major), minor: Some(minor), access, allow: true }
    }

    /// Allows the device of this node. The numbers come from the node itself: those of NVIDIA's newer drivers
    /// (`nvidia-uvm`, `nvidia-caps`) are given out anew at each start of the machine.
    pub fn of_node(path: &Path, access: Access) -> io::Result<Self> {
        use rustix::fs::FileType;
        let stat = rustix::fs::stat(path)?;
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::CharacterDevice => Kind::Char,
            FileType::BlockDevice => Kind::Block,
            _ => {
                let what = format!("{} is no device node", path.display());
                return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
            }
        };
        Ok(Self::allow(kind, rustix::fs::major(stat.st_rdev), rustix::fs::minor(stat.st_rdev), access))
    }

    fn speaks_of(&self, kind: Kind, major: u32, minor: u32) -> bool {
        (self.kind == Kind::All || self.kind == kind)
            && self.major.is_none_or(|wanted| wanted == major)
            && self.minor.is_none_or(|wanted| wanted == minor)
    }
}

/// Whether rules allow all of an access to a device of kind `Char` or `Block`.
pub fn allowed(rules: &[Rule], kind: Kind, major: u32, minor: u32, access: Access) -> bool {
    access.each().all(|bit| {
        let last = rules
            .iter()
            .rev()
            .find(|rule| rule.access.bits() & bit != 0 && rule.speaks_of(kind, major, minor));
        last.is_some_and(|rule| rule.allow)
    })
}

/// What every container may use: the nodes the OCI runtime specification promises (null, zero, full, random, urandom,
/// tty), its own pseudo-terminals, and making nodes of any device, as runc allows: a node it cannot open is of no use,
/// and package managers make some.
pub fn standard_rules() -> Vec<Rule> {
    let any = |kind| Rule { kind, major: None, minor: None, access: Access::MAKE, allow: true };
    let char = |major, minor| Rule::allow(Kind::Char, major, minor, Access::ANY);
    vec![
        any(Kind::Char),
        any(Kind::Block),
        char(1, 3),
        char(1, 5),
        char(1, 7),
        char(1, 8),
        char(1, 9),
        char(5, 0),
        char(5, 2),
        Rule { kind: Kind::Char, major: Some(136), minor: None, access: Access::ANY, allow: true },
    ]
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |number: Option<u32>| number.map_or_else(|| "*".to_owned(), |number| number.to_string());
        let kind = match self.kind {
            Kind::Char => 'c',
            Kind::Block => 'b',
            Kind::All => 'a',
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

/// Reads a rule that allows, in the words of `--device-cgroup-rule`: `c 195:0 rw`, `c 195:* rwm`, `a`.
impl FromStr for Rule {
    type Err = Error;

    fn from_str(given: &str) -> Result<Self, Error> {
        read(given).ok_or_else(|| Error::DeviceRule { given: given.chars().take(60).collect() })
    }
}

fn read(given: &str) -> Option<Rule> {
    let mut words = given.split_ascii_whitespace();
    let kind = match words.next()? {
        "c" => Kind::Char,
        "b" => Kind::Block,
        "a" => Kind::All,
        _ => return None,
    };
    let Some(numbers) = words.next() else {
        let whole = Rule { kind, major: None, minor: None, access: Access::ANY, allow: true };
        return (kind == Kind::All).then_some(whole);
    };
    let (major, minor) = numbers.split_once(':')?;
    let number = |text: &str| match text {
        "*" => Some(None),
        // `parse` takes a plus sign, and nobody means one.
        _ if !text.starts_with(|c: char| c.is_ascii_digit()) => None,
        _ => text.parse().ok().map(Some),
    };
    let (major, minor) = (number(major)?, number(minor)?);
    let mut bits = 0;
    for letter in words.next()?.chars() {
        bits |= match letter {
            'r' => Access::READ.bits(),
            'w' => Access::WRITE.bits(),
            'm' => Access::MAKE.bits(),
            _ => return None,
        };
    }
    words.next().is_none().then_some(Rule {
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
    fn a_rule_is_read_as_it_is_written() {
        for text in ["c 195:0 rw", "b 8:* r", "a *:* rwm", "c *:5 m"] {
            assert_eq!(text.parse::<Rule>().unwrap().to_string(), text);
        }
        assert_eq!("a".parse::<Rule>().unwrap().to_string(), "a *:* rwm");
    }

    #[test]
    fn what_is_no_rule_is_refused() {
        for text in ["", "c", "d 1:3 r", "c 1 r", "c 1:3", "c 1:3 x", "c -1:3 r", "c +1:3 r", "c 1:3 r more"]
        {
            assert!(text.parse::<Rule>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_last_rule_that_speaks_of_an_access_decides() {
        let deny = Rule { allow: false, ..Rule::allow(Kind::Char, 1, 3, Access::WRITE) };
        let rules = [Rule::allow(Kind::Char, 1, 3, Access::ANY), deny];
        assert!(allowed(&rules, Kind::Char, 1, 3, Access::READ));
        assert!(!allowed(&rules, Kind::Char, 1, 3, Access::READ | Access::WRITE));
        assert!(allowed(&[deny, rules[0]], Kind::Char, 1, 3, Access::ANY));
    }

    #[test]
    fn the_standard_rules_open_no_disk_no_memory_and_no_gpu() {
        let rules = standard_rules();
        for (kind, major, minor) in [
            (Kind::Block, 8, 0),
            (Kind::Block, 259, 0),
            (Kind::Char, 1, 1),
            (Kind::Char, 1, 4),
            (Kind::Char, 10, 200),
            (Kind::Char, 10, 229),
            (Kind::Char, 195, 0),
            (Kind::Char, 195, 255),
            (Kind::Char, 5, 1),
        ] {
            assert!(!allowed(&rules, kind, major, minor, Access::READ), "{kind:?} {major}:{minor}");
            assert!(!allowed(&rules, kind, major, minor, Access::WRITE), "{kind:?} {major}:{minor}");
            assert!(allowed(&rules, kind, major, minor, Access::MAKE), "{kind:?} {major}:{minor}");
        }
        assert!(allowed(&rules, Kind::Char, 1, 3, Access::ANY));
        assert!(allowed(&rules, Kind::Char, 136, 7, Access::READ | Access::WRITE));
    }
}
