//! Evaluates the start gate: whether the NVIDIA container tools start an image on a host at all.
//!
//! An image declares its requirements in `NVIDIA_REQUIRE_*`. nvidia-container-cli evaluates them before the container's
//! first process runs, but its message only shows the first alternative: users read "please update your driver" even
//! if another GPU or another driver branch would be enough.
//!
//! Two programs evaluate these variables. This follows libnvidia-container (C), which the legacy mode uses; the
//! toolkit's own evaluation (Go) is for Tegra only. Differences of the C version:
//! - it rejects unknown properties; Go ignores them;
//! - it evaluates from the left and stops early, so it never reaches an error after a satisfied alternative; Go rejects
//!   the whole value;
//! - it ignores the case of brands and property names;
//! - it compares versions of any number of parts; Go expects semantic versions and rejects `driver>=525.60.13.1` and
//!   leading zeros such as `525.60.03`.

mod evaluate;
mod legacy;
mod term;

use std::collections::BTreeMap;

use cudock_facts::version::{Capability, CudaVersion, DriverVersion};

use evaluate::{GateInputs, TermOutcome};
use legacy::major_minor;
pub use term::{GrammarError, Op, Property, Term};

const PREFIX: &str = "NVIDIA_REQUIRE_";
const JETPACK: &str = "NVIDIA_REQUIRE_JETPACK";
const REQUIRE_CUDA: &str = "NVIDIA_REQUIRE_CUDA";
const DISABLE: &str = "NVIDIA_DISABLE_REQUIRE";
const CUDA_VERSION: &str = "CUDA_VERSION";

/// The limit of nvidia-container-cli.
const MOST_REQUIREMENTS: usize = 32;

/// One variable: alternatives, of which one must hold, of conditions, which must all hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateRequirement {
    /// The variable's name; `CUDA_VERSION` if it is implied by that.
    pub variable: String,
    pub text: String,
    /// Its parsed value. An error is kept at its position, since it only matters if the evaluation reaches it.
    pub alternatives: Vec<Vec<Result<Term, GrammarError>>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Gate {
    /// `NVIDIA_DISABLE_REQUIRE` is set: nothing is evaluated.
    pub disabled: bool,
    /// All of these must hold.
    pub requirements: Vec<GateRequirement>,
    /// An error at which the toolkit stops before it runs nvidia-container-cli.
    pub broken: Option<GrammarError>,
}

/// The properties of a host that the gate depends on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GateHost {
    /// The newest CUDA version that the host's driver supports.
    pub cuda: Option<CudaVersion>,
    pub driver: Option<DriverVersion>,
    /// The GPUs that the container will see. If empty, conditions on GPUs are satisfied.
    pub gpus: Vec<GateGpu>,
}

/// The properties of a GPU that the gate depends on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GateGpu {
    pub capability: Option<Capability>,
    /// Its brand as NVML names it: `Tesla`, `GeForce`, `NvidiaRTX` …
    pub brand: Option<String>,
}

/// The alternative that is closest to being satisfied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NearMiss {
    pub alternative: String,
    /// Its first unsatisfied condition.
    pub failed: Term,
}

/// Whether the container starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GateVerdict {
    /// All variables are satisfied for all GPUs.
    Open,
    /// The image or the user disabled the gate.
    Disabled,
    /// A variable is not satisfied, whatever the unknown properties of the host are.
    Refused {
        /// The first unsatisfied variable by name. The toolkit passes them in no fixed order.
        variable: String,
        /// The value in the message: up to its first space.
        first_alternative: String,
        /// The best alternative: preferably one that another driver satisfies instead of another GPU, then the one with
        /// the fewest unsatisfied conditions, then a newer driver before an older one, then the smallest difference.
        closest: NearMiss,
        /// The GPU that it was evaluated for.
        gpu: Option<usize>,
    },
    /// It depends on an unknown property. A container tool that does not know it either starts the container.
    Unknown {
        variable: String,
        /// The first alternative that may be satisfied.
        alternative: String,
        missing: Vec<Property>,
        /// The GPU that it was evaluated for.
        gpu: Option<usize>,
    },
    /// The evaluation reaches an invalid condition: the container does not start.
    Malformed(GrammarError),
}

impl GateVerdict {
    /// The message that the user sees if the container does not start.
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

impl GateRequirement {
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
    Term::parse(text, position).map_err(|message| GrammarError::new(variable, text, position, message))
}

/// The non-empty parts between separators, each with its offset.
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
    /// Parses the requirements in the environment of a container.
    pub fn from_env(environment: &BTreeMap<String, String>) -> Self {
        // What Go's strconv.ParseBool parses as true.
        let disabled = environment
            .get(DISABLE)
            .is_some_and(|value| ["1", "t", "T", "TRUE", "true", "True"].contains(&value.as_str()));
        let mut gate = Self { disabled, ..Self::default() };
        let variables = environment
            .range(PREFIX.to_owned()..)
            .take_while(|(name, _)| name.starts_with(PREFIX))
            .filter(|(name, _)| !name.starts_with(JETPACK));
        gate.requirements.extend(variables.map(|(name, value)| GateRequirement::read(name, value)));
        let set = |name: &str| environment.get(name).filter(|value| !value.is_empty());
        if let (Some(version), None) = (set(CUDA_VERSION), set(REQUIRE_CUDA)) {
            match major_minor(version) {
                Some(version) => {
                    gate.requirements.push(GateRequirement::read(CUDA_VERSION, &format!("cuda>={version}")));
                }
                None => gate.broken = Some(GrammarError::new(CUDA_VERSION, version, 0, "not a version")),
            }
        }
        if let (None, Some(one_more)) = (&gate.broken, gate.requirements.get(MOST_REQUIREMENTS)) {
            gate.broken = Some(GrammarError::new(&one_more.variable, &one_more.text, 0, TOO_MANY));
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
            let inputs = GateInputs { host, card };
            for requirement in &self.requirements {
                let variable = requirement.variable.clone();
                match inputs.evaluate(requirement) {
                    TermOutcome::Met => {}
                    TermOutcome::Assumed(alternative, missing) => {
                        if verdict == GateVerdict::Open {
                            verdict = GateVerdict::Unknown { variable, alternative, missing, gpu };
                        }
                    }
                    TermOutcome::Unmet(closest) => {
                        let first_alternative =
                            requirement.text.split(' ').next().unwrap_or_default().to_owned();
                        return GateVerdict::Refused { variable, first_alternative, closest, gpu };
                    }
                    TermOutcome::Malformed(error) => return GateVerdict::Malformed(error),
                }
            }
        }
        verdict
    }
}
