use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::header::table_file;

table_file! {
    /// `messages.toml`: what GPU containers say when they fail.
    pub struct Messages = "messages" {
        pub message: Vec<Message> by |row| row.id.clone(),
        /// Messages that share a shape. A look-up sees each member as a message of its own.
        pub family: Vec<Family> by |row| row.id.clone(),
        pub cuda_error: Vec<CudaError> by |row| row.code.to_string(),
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Message {
    pub id: String,
    /// A regular expression, multi-line, that finds it in a log.
    pub pattern: String,
    pub sample: String,
    /// Other wordings.
    #[serde(default)]
    pub samples: Vec<String>,
    pub layer: Layer,
    pub phase: Phase,
    pub title: String,
    pub cause: String,
    pub fix: Vec<String>,
    pub cuda_code: Option<u16>,
    /// A command that distinguishes several causes.
    pub probe: Option<String>,
    /// More general messages that are not worth reporting where this one is found.
    #[serde(default)]
    pub wins_over: Vec<String>,
    /// Set where it only shows that something failed before.
    #[serde(default)]
    pub symptom: bool,
    pub note: Option<String>,
    /// Set where the fix depends on a number in the message and is computed from the tables.
    pub advice: Option<Advice>,
    pub source: Vec<String>,
}

/// How a fix is computed from what a message says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Advice {
    /// The first group is the driver's CUDA version as `cudaDriverGetVersion` writes it (12020): name what runs on it.
    DriverCuda,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Family {
    /// Prefix of the ids of its members.
    pub id: String,
    /// The pattern, with `{key}` for the word.
    pub pattern: String,
    pub sample: String,
    pub layer: Layer,
    pub phase: Phase,
    /// The title, with `{key}` for the word and `{title}` for the member's own.
    pub title: String,
    /// Fixes for members that have none of their own.
    #[serde(default)]
    pub fix: Vec<String>,
    /// Messages that are not worth reporting where a member is found.
    #[serde(default)]
    pub wins_over: Vec<String>,
    pub source: Vec<String>,
    pub member: Vec<Member>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// The word; a regular expression where several words mean the same.
    pub key: String,
    /// The word in the id and in the sample, where the key is an expression.
    pub name: Option<String>,
    pub title: String,
    pub cause: String,
    /// Fixes; the family's if empty.
    #[serde(default)]
    pub fix: Vec<String>,
    /// Other wordings, which the family's pattern finds as well.
    #[serde(default)]
    pub samples: Vec<String>,
    /// A further pattern that finds it.
    pub also: Option<String>,
    /// Set where it only shows that something failed before.
    #[serde(default)]
    pub symptom: bool,
}

/// Which part of the stack a message comes from, lowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Layer {
    /// Azure's control plane.
    Azure,
    /// The GPU, its fabric or the virtual GPU.
    Device,
    Driver,
    /// The NVIDIA Container Toolkit and what starts containers.
    Toolkit,
    Image,
    Framework,
}

/// When a message appears, earliest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    Build,
    /// Creating the cloud resource.
    Deploy,
    Pull,
    Start,
    /// The program finding its GPU.
    Init,
    Run,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CudaError {
    pub code: u16,
    pub name: String,
    pub text: String,
    /// What the driver API calls it: `CUDA_ERROR_NO_BINARY_FOR_GPU`.
    pub driver_name: Option<String>,
    pub meaning: Option<String>,
    /// What to do, where no message says it.
    #[serde(default)]
    pub fix: Vec<String>,
    pub since: Option<String>,
    pub source: Vec<String>,
}
