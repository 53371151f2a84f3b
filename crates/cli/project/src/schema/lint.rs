//! `[lint]`: which rules apply to the project's Dockerfiles, and what they are judged for.

use std::collections::BTreeMap;

use cudock_facts::finding::Severity;
use cudock_facts::version::DriverVersion;
use schemars::JsonSchema;
use serde::Deserialize;

use super::one_or_many;
use crate::json_schema;

/// How `cudock lint` judges the Dockerfiles of the project. Rules are named by code (`CD0702`) or name (`missing-tag`).
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Lint {
    /// The target: a GPU, an Azure size, or `cpu`.
    #[serde(rename = "for")]
    pub target: Option<String>,
    /// The driver of the target: `"535.161.08"`, or a branch: `"535"`.
    #[schemars(with = "Option<String>")]
    pub driver: Option<DriverVersion>,
    /// Rules that do not apply; `all` stands for every rule.
    #[serde(deserialize_with = "one_or_many::names")]
    #[schemars(schema_with = "json_schema::names")]
    pub disable: Vec<String>,
    /// Rules that apply even if `disable` has them.
    #[serde(deserialize_with = "one_or_many::names")]
    #[schemars(schema_with = "json_schema::names")]
    pub enable: Vec<String>,
    /// The severity of rules, where it differs from their own.
    pub severity: BTreeMap<String, Severity>,
    /// The severity from which findings make the exit code 1.
    pub fail_level: Option<FailLevel>,
}

/// The severity from which findings make a command fail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, clap::ValueEnum, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FailLevel {
    #[default]
    Error,
    Warning,
    Note,
    /// Never.
    None,
}

impl FailLevel {
    /// Whether a finding makes the command fail.
    pub fn is_reached_by(self, severity: Severity) -> bool {
        match self {
            Self::Error => severity >= Severity::Error,
            Self::Warning => severity >= Severity::Warning,
            Self::Note => severity >= Severity::Note,
            Self::None => false,
        }
    }
}
