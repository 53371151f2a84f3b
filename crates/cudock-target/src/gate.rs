//! The start gate: whether the NVIDIA container tools start an image on a host at all.
//!
//! An image says what it needs in `NVIDIA_REQUIRE_*`. nvidia-container-cli evaluates them before the container's
//! first process runs, and its message shows only the first alternative of what was asked; so people read "please
//! update your driver" where another card, or another branch, would have done.
//!
//! Two programs evaluate these variables. This follows libnvidia-container (C), which stands in the legacy path; the
//! toolkit's own evaluation (Go) serves Tegra only. Where they differ, C:
//! - refuses an unknown property, where Go skips it;
//! - evaluates from the left and stops early, so a mistake behind a met alternative is never seen, where Go refuses
//!   the whole value;
//! - compares brands and property names without regard to case;
//! - compares versions of any number of parts, where Go wants semantic versions and so refuses `driver>=525.60.13.1`
//!   and leading zeros such as `525.60.03`.

mod evaluate;
mod legacy;
mod term;

use std::collections::BTreeMap;

use cudock_facts::version::{Capability, CudaVersion, DriverVersion};

use evaluate::{Outcome, Seen};
use legacy::major_minor;
pub use term::{GrammarError, Op, Property, Term};

const PREFIX: &str = "NVIDIA_REQUIRE_";
const JETPACK: &str = "NVIDIA_REQUIRE_JETPACK";
const REQUIRE_CUDA: &str = "NVIDIA_REQUIRE_CUDA";
const DISABLE: &str = "NVIDIA_DISABLE_REQUIRE";
const CUDA_VERSION: &str = "CUDA_VERSION";

/// How many requirements nvidia-container-cli takes.
const MOST_REQUIREMENTS: usize = 32;

/// One variable: alternatives, of which one must hold, of conditions, which must all hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// The variable's name; `CUDA_VERSION` if it is implied by that.
    pub variable: String,
    /// Its value.
    pub text: String,
    /// Its value, read. A mistake stays in its place, because it counts only if evaluation gets there.
    pub alternatives: Vec<Vec<Result<Term, GrammarError>>>,
}

/// What an image asks of a host.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Gate {
    /// `NVIDIA_DISABLE_REQUIRE` is set: nothing is evaluated.
    pub disabled: bool,
    /// All of these must hold.
    pub requirements: Vec<Requirement>,
    /// The toolkit stops at this before it asks nvidia-container-cli.
    pub broken: Option<GrammarError>,
}

/// What the gate looks at.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GateHost {
    /// The newest CUDA version the host's driver serves.
    pub cuda: Option<CudaVersion>,
    /// The host's driver.
    pub driver: Option<DriverVersion>,
    /// The cards the container will see. None: conditions on cards count as met.
    pub gpus: Vec<GateGpu>,
}

/// A card, as far as the gate looks at it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GateGpu {
    /// Its compute capability.
    pub capability: Option<Capability>,
    /// Its brand as NVML names it: `Tesla`, `GeForce`, `NvidiaRTX` …
    pub brand: Option<String>,
}

/// The alternative that came nearest, and why it did not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NearMiss {
    /// The alternative as written.
    pub alternative: String,
    /// Its first condition that does not hold.
    pub failed: Term,
}

/// Whether the container starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GateVerdict {
    /// Every variable holds for every card.
    Open,
    /// The image, or whoever started it, turned the gate off.
    Disabled,
    /// A variable does not hold, whatever else may come to be known of the host.
    Refused {
        /// The first variable that does not hold. The toolkit hands them over in no fixed order; here it is by name.
        variable: String,
        /// What the message shows: the value up to its first space.
        first_alternative: String,
        /// The alternative to aim for: one that another driver could meet before one that asks for another card,
        /// then the one with the fewest unmet conditions, then a newer driver before an older, then the least far.
        closest: NearMiss,
        /// Which card it was evaluated for.
        gpu: Option<usize>,
    },
    /// It depends on what is not known here. A container tool that does not know it either lets the container start.
    Unknown {
        /// The variable it depends on.
        variable: String,
        /// The first alternative that may hold.
        alternative: String,
        /// What would have to be known.
        missing: Vec<Property>,
        /// Which card it was evaluated for.
        gpu: Option<usize>,
    },
    /// A condition that evaluation reaches cannot be read: the container does not start.
    Malformed(GrammarError),
}

impl GateVerdict {
    /// The line the user sees, if the container does not start.
    pub fn refusal_message(&self) -> Option<String> {
        match self {
            Self::Open | Self::Disabled | Self::Unknown { .. } => None,
            Self::Refused { first_alternative, .. } => {
                let hint = if first_alternative.starts_with("cuda>=") {
                    ", please update your driver to a newer version, or use an earlier cuda container"
                } else {
                    ""
                };
                let condition = format!("unsatisfied condition: {first_alternative}{hint}");
                Some(format!("nvidia-container-cli: requirement error: {condition}"))
            }
            Self::Malformed(error) if error.variable == CUDA_VERSION => {
                Some("failed to get requirements failed to get version: invalid CUDA version: invalid version string".to_owned())
            }
            Self::Malformed(error) if error.message == TOO_MANY => {
                Some(format!("nvidia-container-cli: input error: {TOO_MANY}"))
            }
            Self::Malformed(_) => Some("nvidia-container-cli: requirement error: invalid expression".to_owned()),
        }
    }
}

const TOO_MANY: &str = "too many requirements";

impl Requirement {
    fn read(variable: &str, text: &str) -> Self {
        let alternatives = pieces(text, ' ', 0)
            .map(|(start, alternative)| {
                let terms = pieces(alternative, ',', start);
                terms.map(|(position, term)| read_term(variable, term, position)).collect()
            })
            .collect();
        Self { variable: variable.to_owned(), text: text.to_owned(), alternatives }
    }

    /// The alternatives as written, in the order of `alternatives`.
    fn written(&self) -> impl Iterator<Item = &str> {
        pieces(&self.text, ' ', 0).map(|(_, alternative)| alternative)
    }
}

fn read_term(variable: &str, text: &str, position: usize) -> Result<Term, GrammarError> {
    Term::parse(text, position).map_err(|message| GrammarError {
        variable: variable.to_owned(),
        text: text.to_owned(),
        position,
        message,
    })
}

/// What lies between separators, without what is empty, each with its place.
fn pieces(text: &str, separator: char, base: usize) -> impl Iterator<Item = (usize, &str)> {
    let mut next = base;
    text.split(separator)
        .map(move |piece| {
            let start = next;
            next += piece.len() + separator.len_utf8();
            (start, piece)
        })
        .filter(|(_, piece)| !piece.is_empty())
}

impl Gate {
    /// What an image's environment, with what the user added to it, asks of a host.
    pub fn from_env(environment: &BTreeMap<String, String>) -> Self {
        // The words that Go's strconv.ParseBool takes for true.
        let disabled = environment
            .get(DISABLE)
            .is_some_and(|value| ["1", "t", "T", "TRUE", "true", "True"].contains(&value.as_str()));
        let mut gate = Self { disabled, ..Self::default() };
        let asked = environment
            .range(PREFIX.to_owned()..)
            .take_while(|(name, _)| name.starts_with(PREFIX))
            .filter(|(name, _)| !name.starts_with(JETPACK));
        gate.requirements.extend(asked.map(|(name, value)| Requirement::read(name, value)));
        let set = |name: &str| environment.get(name).filter(|value| !value.is_empty());
        if let (Some(version), None) = (set(CUDA_VERSION), set(REQUIRE_CUDA)) {
            match major_minor(version) {
                Some(version) => {
                    gate.requirements.push(Requirement::read(CUDA_VERSION, &format!("cuda>={version}")));
                }
                None => gate.broken = Some(mistake(CUDA_VERSION, version, "not a version")),
            }
        }
        if let (None, Some(one_more)) = (&gate.broken, gate.requirements.get(MOST_REQUIREMENTS)) {
            gate.broken = Some(mistake(&one_more.variable, &one_more.text, TOO_MANY));
        }
        gate
    }

    /// Whether the container starts on `host`.
    pub fn judge(&self, host: &GateHost) -> GateVerdict {
        if self.disabled {
            return GateVerdict::Disabled;
        }
        if let Some(error) = &self.broken {
            return GateVerdict::Malformed(error.clone());
        }
        let cards: Vec<(Option<usize>, Option<&GateGpu>)> = if host.gpus.is_empty() {
            vec![(None, None)]
        } else {
            host.gpus.iter().enumerate().map(|(index, card)| (Some(index), Some(card))).collect()
        };
        let mut verdict = GateVerdict::Open;
        for (gpu, card) in cards {
            let seen = Seen { host, card };
            for requirement in &self.requirements {
                let variable = requirement.variable.clone();
                match seen.evaluate(requirement) {
                    Outcome::Met => {}
                    Outcome::Assumed { alternative, missing } => {
                        if verdict == GateVerdict::Open {
                            verdict = GateVerdict::Unknown { variable, alternative, missing, gpu };
                        }
                    }
                    Outcome::Unmet(closest) => {
                        let first_alternative =
                            requirement.text.split(' ').next().unwrap_or_default().to_owned();
                        return GateVerdict::Refused { variable, first_alternative, closest, gpu };
                    }
                    Outcome::Malformed(error) => return GateVerdict::Malformed(error),
                }
            }
        }
        verdict
    }
}

fn mistake(variable: &str, text: &str, message: &'static str) -> GrammarError {
    GrammarError { variable: variable.to_owned(), text: text.to_owned(), position: 0, message }
}
