//! `[image]`: what the image of the project is made of.

use std::collections::BTreeMap;
use std::path::PathBuf;

use cudock_base::Arch;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::one_or_many;
use crate::json_schema;

/// What `cudock lock` and `cudock build` make an image of. Paths are relative to the project's directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ImageBuild {
    /// The version of Python, `"3.13"`; without `suite`, it chooses the Debian release.
    #[schemars(extend("pattern" = r"^3\.[0-9]+$"))]
    pub python: Option<String>,
    /// Requirement files: `"requirements.txt"`.
    #[serde(deserialize_with = "one_or_many::names")]
    #[schemars(schema_with = "json_schema::names")]
    pub requirements: Vec<String>,
    /// A `pyproject.toml`. If there is a `uv.lock` beside it, its versions are used.
    pub pyproject: Option<PathBuf>,
    /// The model that the image contains; that of `[workload]` if absent.
    pub model: Option<PathBuf>,
    /// A compiled program, which is the default of `entrypoint`.
    pub program: Option<PathBuf>,
    /// The command of the image. Without one and without a program, `cudock serve` serves the model.
    #[serde(deserialize_with = "one_or_many::names")]
    #[schemars(schema_with = "json_schema::names")]
    pub entrypoint: Vec<String>,
    /// Further Debian packages: `["libgomp1"]`.
    #[serde(deserialize_with = "one_or_many::names")]
    #[schemars(schema_with = "json_schema::names")]
    pub packages: Vec<String>,
    /// GPUs, Azure sizes or architectures that the image is for: `["T4", "sm_90"]`. It runs on CPUs only without any.
    #[serde(deserialize_with = "one_or_many::names")]
    #[schemars(schema_with = "json_schema::names")]
    pub targets: Vec<String>,
    /// The processor.
    #[schemars(with = "String", extend("enum" = Arch::SPELLINGS))]
    pub arch: Arch,
    /// The Debian or Ubuntu release: `"trixie"`.
    pub suite: Option<String>,
    /// User and group of the program: `"65532:65532"`.
    pub user: Option<String>,
    /// Environment variables.
    pub env: BTreeMap<String, String>,
    /// The working directory: `"/app"`.
    pub workdir: Option<String>,
    /// Ports on which the program listens.
    pub ports: Vec<u16>,
    /// Files and directories to copy, by their absolute path in the image: `{ "/app" = "src" }`.
    #[schemars(extend("propertyNames" = {"pattern": "^/"}))]
    pub files: BTreeMap<String, PathBuf>,
    /// Rules that leave files out, on or off: `{ tests = false }`.
    pub rules: BTreeMap<String, bool>,
}
