use std::fmt;
use std::str::FromStr;

use super::{Capability, ParseError, as_text, number};

/// Which GPUs the code of a target runs on, besides those of its own capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Variant {
    /// `sm_90`: also later minor versions of the same major version.
    Plain,
    /// `sm_100f`: the GPUs of its family, from its own minor version on.
    Family,
    /// `sm_90a`: that capability only.
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

/// Defines a target: a capability and a variant, with a prefix for its text form.
macro_rules! define_target {
    ($(#[$doc:meta])* $name:ident, $prefix:literal, $kind:literal, $example:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name {
            capability: Capability,
            variant: Variant,
        }

        impl $name {
            #[doc = concat!("`", $prefix, "…` for a capability.")]
            pub const fn new(capability: Capability, variant: Variant) -> Self {
                Self { capability, variant }
            }

            /// The capability in the name of the target.
            pub const fn capability(self) -> Capability {
                self.capability
            }

            /// Plain, family- or architecture-specific.
            pub const fn variant(self) -> Variant {
                self.variant
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}{}"), self.capability.number(), self.variant.suffix())
            }
        }

        impl FromStr for $name {
            type Err = ParseError;

            fn from_str(text: &str) -> Result<Self, ParseError> {
                let (capability, variant) =
                    parse(text, $prefix).ok_or_else(|| ParseError::new($kind, text, $example))?;
                Ok(Self { capability, variant })
            }
        }

        as_text!($name);
    };
}

define_target!(
    /// The target of machine code: `sm_75`, `sm_90a`, `sm_103f`.
    SmArch,
    "sm_",
    "machine-code target",
    "sm_90a"
);
define_target!(
    /// The target of PTX: `compute_90`, `compute_90a`. Its compatibility rules differ from those of [`SmArch`].
    PtxArch,
    "compute_",
    "PTX target",
    "compute_90"
);

/// Capabilities of integrated GPUs, on which desktop code of the same major version is not guaranteed to run.
const INTEGRATED: [Capability; 5] = [
    Capability::new(5, 3),
    Capability::new(6, 2),
    Capability::new(7, 2),
    Capability::new(8, 7),
    Capability::new(10, 1),
];

impl SmArch {
    /// Whether a GPU with this capability runs machine code for this target.
    ///
    /// It needs the same major version and a minor version at least as high; `a` code and integrated GPUs need their exact
    /// capability. (From CUDA 13.2 on, desktop code also runs on 7.2 and 8.7; callers that know the toolkit may relax this.)
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
    /// Whether a driver that supports the PTX version can compile it for a GPU with this capability.
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
    // `sm_075` is not a valid spelling of `sm_75`.
    (capability.number().to_string() == digits).then_some((capability, variant))
}
