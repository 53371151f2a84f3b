use std::fmt;
use std::str::FromStr;

use super::{Capability, ParseError, as_text, number};

/// How far a target's code carries beyond the card it is named after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Variant {
    /// `sm_90`: later minors of the major too.
    Plain,
    /// `sm_100f`: the cards of its family, from its own minor on.
    Family,
    /// `sm_90a`: that capability alone.
    Specific,
}

impl Variant {
    fn suffix(self) -> &'static str {
        match self {
            Variant::Plain => "",
            Variant::Family => "f",
            Variant::Specific => "a",
        }
    }
}

/// Machine code's target: `sm_75`, `sm_90a`, `sm_103f`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SmArch {
    capability: Capability,
    variant: Variant,
}

/// PTX's target: `compute_90`, `compute_90a`. A type apart from [`SmArch`], because what PTX for an
/// architecture can run on is another question than what machine code for it can run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PtxArch {
    capability: Capability,
    variant: Variant,
}

/// Capabilities of integrated GPUs, which desktop code of the same major does not promise to run on.
const INTEGRATED: [Capability; 5] = [
    Capability::new(5, 3),
    Capability::new(6, 2),
    Capability::new(7, 2),
    Capability::new(8, 7),
    Capability::new(10, 1),
];

impl SmArch {
    /// `sm_…` for a capability.
    pub const fn new(capability: Capability, variant: Variant) -> Self {
        Self { capability, variant }
    }

    /// The capability the target is named after.
    pub const fn capability(self) -> Capability {
        self.capability
    }

    /// Plain, family- or architecture-specific.
    pub const fn variant(self) -> Variant {
        self.variant
    }

    /// Whether the driver of a card with this capability loads machine code for this target.
    ///
    /// Same major and a minor at least as high; `a` code on its own capability alone; integrated GPUs on their
    /// own number alone. (From CUDA 13.2 on, desktop code also runs on 7.2 and 8.7: whoever knows which toolkit
    /// wrote the code may relax this.)
    pub fn runs_on(self, card: Capability) -> bool {
        let (code, card) = (self.capability.current(), card.current());
        if code == card {
            return true;
        }
        let integrated = |capability| INTEGRATED.contains(&capability);
        self.variant != Variant::Specific
            && code.major() == card.major()
            && code.minor() <= card.minor()
            && !integrated(code)
            && !integrated(card)
    }
}

impl PtxArch {
    /// `compute_…` for a capability.
    pub const fn new(capability: Capability, variant: Variant) -> Self {
        Self { capability, variant }
    }

    /// The capability the target is named after.
    pub const fn capability(self) -> Capability {
        self.capability
    }

    /// Plain, family- or architecture-specific.
    pub const fn variant(self) -> Variant {
        self.variant
    }

    /// Whether a driver that understands the PTX's language can compile it for a card with this capability.
    pub fn compiles_for(self, card: Capability) -> bool {
        let (code, card) = (self.capability.current(), card.current());
        match self.variant {
            Variant::Plain => card >= code,
            Variant::Family => card.major() == code.major() && card.minor() >= code.minor(),
            Variant::Specific => card == code,
        }
    }
}

fn parse(text: &str, prefix: &str) -> Option<(Capability, Variant)> {
    let rest = text.strip_prefix(prefix)?;
    let (digits, variant) = match rest.as_bytes().last()? {
        b'a' => (rest.strip_suffix('a')?, Variant::Specific),
        b'f' => (rest.strip_suffix('f')?, Variant::Family),
        _ => (rest, Variant::Plain),
    };
    let capability = Capability::from_number(number(digits)?)?;
    // `sm_075` would be another spelling of the same target.
    (capability.number().to_string() == digits).then_some((capability, variant))
}

impl fmt::Display for SmArch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}{}", self.capability.number(), self.variant.suffix())
    }
}

impl fmt::Display for PtxArch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "compute_{}{}", self.capability.number(), self.variant.suffix())
    }
}

impl FromStr for SmArch {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (capability, variant) =
            parse(text, "sm_").ok_or_else(|| ParseError::new("machine-code target", text, "sm_90a"))?;
        Ok(Self { capability, variant })
    }
}

impl FromStr for PtxArch {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (capability, variant) =
            parse(text, "compute_").ok_or_else(|| ParseError::new("PTX target", text, "compute_90"))?;
        Ok(Self { capability, variant })
    }
}

as_text!(SmArch);
as_text!(PtxArch);
