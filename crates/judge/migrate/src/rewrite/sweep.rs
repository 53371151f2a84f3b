//! A sweep, independent of the file that describes it.

use std::collections::BTreeMap;

use serde_json::Value as Json;

/// A sweep, independent of the file that describes it.
#[derive(Debug, Default)]
pub(super) struct SweepDescription {
    pub(super) name: Option<String>,
    pub(super) command: Vec<CommandPart>,
    pub(super) source_directory: String,
    pub(super) parameters: Vec<SweepParameter>,
    pub(super) sampler: &'static str,
    pub(super) policy: Option<Described>,
    pub(super) metric: String,
    pub(super) goal: &'static str,
    pub(super) trials: u64,
    pub(super) concurrent: Option<u64>,
    pub(super) minutes: u64,
    pub(super) environment: TrialEnvironment,
    /// The name of a cluster.
    pub(super) compute: Option<String>,
    pub(super) size: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum CommandPart {
    Text(String),
    /// Data that Machine Learning provides.
    Input(String),
}

#[derive(Debug)]
pub(super) struct SweepParameter {
    pub(super) name: String,
    /// The option of the program: `--learning-rate`.
    pub(super) flag: String,
    pub(super) distribution: Described,
}

/// A distribution or policy: its kind and its arguments.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Described {
    pub(super) kind: &'static str,
    pub(super) fields: BTreeMap<&'static str, Json>,
}

/// Where a trial runs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum TrialEnvironment {
    #[default]
    Unknown,
    Image(String),
    /// A registered environment.
    Registered(String),
}
