//! Errors of settings.

use std::path::PathBuf;

use cudock_base::{ErrorKind, Report};
use cudock_project::ProjectError;

/// Settings with which nothing can be served.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error("--{flag} {value} is too large")]
    TooLarge { flag: &'static str, value: usize, max: usize },
    #[error("preferred size {rows} exceeds the batch limit of {max_batch} rows")]
    PreferredTooLarge { rows: usize, max_batch: usize },
    /// CUDA graphs are requested without sizes to capture.
    #[error("CUDA graphs need preferred sizes, and none are set")]
    GraphsWithoutSizes,
    /// A GPU is required, and the device is the CPU.
    #[error("a GPU is required, and the model would run on the CPU")]
    NoGpu,
    #[error("precision bf16 is for PyTorch models; ONNX models run in fp32 or fp16")]
    OnnxBf16,
    #[error("cannot serve {}: it is {name}", path.display())]
    ForeignFormat {
        path: PathBuf,
        name: &'static str,
        /// The command or call that exports it.
        export: &'static str,
    },
    /// A file of a pretrained model that cannot be read, or whose settings cannot be followed.
    #[error("{}: {problem}", path.display())]
    Pretrained { path: PathBuf, problem: String },
    /// A declared tensor has a size below -1.
    #[error("`{name}` has the size {size}")]
    TensorSize { name: String, size: i64 },
    #[error("`trust = true` in a file grants no trust: whoever wrote the model may have written the file")]
    TrustInFile,
    /// A file beside a model names another one outside of its directory.
    #[error("{} names {}, which is not in its directory", project_file.display(), file.display())]
    OutsideDirectory { file: PathBuf, project_file: PathBuf },
    /// An ONNX model appeared among Python models.
    #[error("ONNX Runtime is not loaded, because there was no ONNX model when the server started")]
    NoOnnxRuntime,
    #[error("{} not found", .0.display())]
    NotFound(PathBuf),
    /// `cudock.toml` names a model that does not exist.
    #[error("model {} not found", model.display())]
    ModelNotFound { model: PathBuf, project_file: PathBuf },
    /// An environment variable with something else than a port.
    #[error("{name} is `{value}`, which is not a port")]
    Port { name: &'static str, value: String },
    #[error(transparent)]
    Project(#[from] ProjectError),
}

impl Report for SettingsError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::NoGpu => ErrorKind::Outside,
            _ => ErrorKind::Input,
        }
    }

    fn hints(&self) -> Vec<String> {
        let hint = match self {
            Self::TooLarge { max, .. } => format!("the largest value is {max}"),
            Self::PreferredTooLarge { rows, .. } => format!("pass --max-batch {rows}"),
            Self::GraphsWithoutSizes => "pass --preferred, as --preferred 1,8,32".to_owned(),
            Self::NoGpu => "`cudock doctor` shows why no GPU is found".to_owned(),
            Self::OnnxBf16 => "pass --precision fp16".to_owned(),
            Self::ForeignFormat { export, .. } => format!("export it first: {export}"),
            Self::Pretrained { .. } => {
                "`[serve.image]`, `[serve.text]` or `labels` in a cudock.toml replace what the model's own files say"
                    .to_owned()
            }
            Self::TensorSize { .. } => "a size is -1 for any, or 0 and more".to_owned(),
            Self::TrustInFile => {
                "remove it, and pass --trust to `cudock serve` if you trust the model's author".to_owned()
            }
            Self::OutsideDirectory { .. } => {
                "name it with a flag, or serve the directory if the file is your own: cudock serve DIR".to_owned()
            }
            Self::NoOnnxRuntime => "restart the server".to_owned(),
            Self::NotFound(_) => {
                "name a model file, a directory with a cudock.toml, or a directory of models".to_owned()
            }
            Self::ModelNotFound { project_file, .. } => {
                format!("correct `model` in {}", project_file.display())
            }
            Self::Port { name, .. } => format!("unset {name}, or pass --port"),
            Self::Project(_) => return Vec::new(),
        };
        vec![hint]
    }
}
