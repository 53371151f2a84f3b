use serde::{Deserialize, Serialize};

use super::header::{Header, row, table_file};

/// `messages.toml`: what GPU containers say when they fail.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Messages {
    /// Age and sources.
    pub table: Header,
    /// Messages.
    #[serde(default)]
    pub message: Vec<Message>,
    /// CUDA's error numbers.
    #[serde(default)]
    pub cuda_error: Vec<CudaError>,
}

/// A message, what causes it and what to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// Its name.
    pub id: String,
    /// A regular expression, multi-line, that finds it in a log.
    pub pattern: String,
    /// One such message.
    pub sample: String,
    /// Other wordings.
    #[serde(default)]
    pub samples: Vec<String>,
    /// Which part of the stack it comes from.
    pub layer: Layer,
    /// When it appears.
    pub phase: Phase,
    /// What went wrong, in a few words.
    pub title: String,
    /// Why.
    pub cause: String,
    /// What to do, most likely first.
    pub fix: Vec<String>,
    /// The CUDA error number behind it.
    pub cuda_code: Option<u16>,
    /// A command that tells several causes apart.
    pub probe: Option<String>,
    /// More general messages that are not worth reporting where this one is found.
    #[serde(default)]
    pub wins_over: Vec<String>,
    /// Set where it only shows that something failed before.
    #[serde(default)]
    pub symptom: bool,
    /// What else to know.
    pub note: Option<String>,
    /// Where it was read.
    pub source: Vec<String>,
}

/// Which part of the stack a message comes from, lowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layer {
    /// Azure's control plane.
    Azure,
    /// The GPU, its fabric or the virtual GPU.
    Device,
    /// The NVIDIA driver of the host.
    Driver,
    /// The NVIDIA Container Toolkit and what starts containers.
    Toolkit,
    /// What is in the image.
    Image,
    /// The framework and its libraries.
    Framework,
}

/// When a message appears, earliest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Building the image.
    Build,
    /// Creating the cloud resource.
    Deploy,
    /// Pulling the image.
    Pull,
    /// Starting the container.
    Start,
    /// The program finding its GPU.
    Init,
    /// The program at work.
    Run,
}

/// A CUDA error number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CudaError {
    /// 209
    pub code: u16,
    /// cudaErrorNoKernelImageForDevice
    pub name: String,
    /// CUDA's own words.
    pub text: String,
    /// What it comes down to.
    pub meaning: Option<String>,
    /// Since when it exists.
    pub since: Option<String>,
    /// Where it was read.
    pub source: Vec<String>,
}

row!(Message, |row| row.id.clone());
row!(CudaError, |row| row.code.to_string());
table_file!(Messages, "messages", [message, cuda_error]);
