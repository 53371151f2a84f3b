use super::{as_major_minor, as_text, number};

/// A GPU's compute capability, such as 9.0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Capability {
    major: u8,
    minor: u8,
}

impl Capability {
    /// The capability `major.minor`.
    ///
    /// # Panics
    ///
    /// If the minor version has more than one digit, which no `sm_` name can express.
    pub const fn new(major: u8, minor: u8) -> Self {
        assert!(minor <= 9, "a capability's minor is one digit");
        Self { major, minor }
    }

    /// The number in `sm_90` or `sm_121`: the last digit is the minor version.
    pub fn from_number(number: u16) -> Option<Self> {
        let major = u8::try_from(number / 10).ok().filter(|major| *major > 0)?;
        let minor = u8::try_from(number % 10).ok()?;
        Some(Self { major, minor })
    }

    pub const fn major(self) -> u8 {
        self.major
    }

    pub const fn minor(self) -> u8 {
        self.minor
    }

    /// The number that the newest toolkits use for the same GPU: Thor was 10.1 up to CUDA 12.9 and is 11.0 since.
    #[must_use]
    pub fn current(self) -> Self {
        if self == Self::new(10, 1) { Self::new(11, 0) } else { self }
    }

    /// 90 of 9.0, as target names write it.
    pub fn number(self) -> u16 {
        u16::from(self.major) * 10 + u16::from(self.minor)
    }
}

as_major_minor!(Capability, "compute capability", "8.6", (1.., 0..=9));
