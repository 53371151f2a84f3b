//! Errors of this crate.

use std::io;
use std::path::{Path, PathBuf};

use cudock_base::{ErrorKind, Report, UsageError};

/// Why an operation on a container failed.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// An operation on a file or directory failed.
    #[error("{action} {}", path.display())]
    File {
        /// What failed: "cannot write".
        action: &'static str,
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A system call without a file failed.
    #[error("{action}")]
    System {
        /// What failed.
        action: &'static str,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A state file cannot be parsed.
    #[error("{} is damaged", path.display())]
    Damaged {
        path: PathBuf,
        /// The cause.
        #[source]
        source: serde_json::Error,
    },
    /// No container has that name or id.
    #[error("no container `{0}`")]
    Unknown(String),
    /// No group has that name.
    #[error("no group `{0}`")]
    UnknownGroup(String),
    /// Several ids have this prefix.
    #[error("`{0}` is a prefix of several ids")]
    Ambiguous(String),
    #[error("the name `{name}` is in use by container {id}")]
    NameTaken {
        name: String,
        /// The container that has it.
        id: String,
    },
    /// A container is not in the state an operation needs.
    #[error("container {name} is {is}, not {needed}")]
    State {
        /// Which container.
        name: String,
        /// Its state.
        is: String,
        /// The state it must be in.
        needed: &'static str,
    },
    /// The user or group does not exist in the image.
    #[error("{0}")]
    User(String),
    /// A flag or its value cannot be used.
    #[error(transparent)]
    Usage(#[from] UsageError),
    /// The request is invalid.
    #[error("{0}")]
    Request(String),
    /// The program was not found: exit code 127.
    #[error("{0}")]
    NotFound(String),
    /// The program cannot be executed: exit code 126.
    #[error("{0}")]
    NotExecutable(String),
    /// An error that another process reported.
    #[error("{text}")]
    Reported {
        /// The exit code for it.
        code: i32,
        /// The message.
        text: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// The container could not be created.
    #[error("cannot create the container: {0}")]
    Create(String),
    /// This machine lacks something that is needed.
    #[error("{what}")]
    Host {
        /// What is missing.
        what: String,
        /// What to do about it.
        hint: String,
    },
    /// The GPUs cannot be mapped in.
    #[error(transparent)]
    Inject(#[from] cudock_inject::InjectError),
    /// The image cannot be opened.
    #[error(transparent)]
    Image(#[from] cudock_image::ImageError),
    /// The image cannot be unpacked.
    #[error(transparent)]
    Unpack(#[from] cudock_image::unpack::UnpackError),
    /// The confinement cannot be set up.
    #[error(transparent)]
    Confine(#[from] cudock_confine::ConfineError),
    /// The network cannot be set up.
    #[error(transparent)]
    Network(#[from] cudock_netns::NetnsError),
}

impl RuntimeError {
    pub(crate) fn file(action: &'static str, path: impl Into<PathBuf>, source: impl Into<io::Error>) -> Self {
        Self::File { action, path: path.into(), source: source.into() }
    }

    pub(crate) fn system(action: &'static str, source: impl Into<io::Error>) -> Self {
        Self::System { action, source: source.into() }
    }

    /// An error that another process reported, or that has no more specific variant.
    pub(crate) fn reported(text: impl Into<String>) -> Self {
        Self::Reported { code: 3, text: text.into(), hint: None }
    }

    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::Unknown(_) => Some("`cudock ps --all` lists them".to_owned()),
            Self::UnknownGroup(_) => Some("`cudock groups` lists them".to_owned()),
            Self::Ambiguous(_) => Some("use more digits of the id, or the name".to_owned()),
            Self::NameTaken { name, .. } => Some(format!("cudock rm {name}, or choose another name")),
            Self::State { name, needed: "stopped", .. } => {
                Some(format!("cudock stop {name}, or cudock rm --force {name}"))
            }
            Self::Usage(error) => error.hints().first().cloned(),
            Self::Host { hint, .. } => Some(hint.clone()),
            Self::Reported { hint, .. } => hint.clone(),
            Self::Image(error) => error.hints().pop(),
            Self::Inject(error) => error.hints().pop(),
            Self::Unpack(error) => error.hints().pop(),
            _ => None,
        }
    }
}

impl Report for RuntimeError {
    fn kind(&self) -> ErrorKind {
        match crate::exit_code(self) {
            2 => ErrorKind::Input,
            126 => ErrorKind::NotExecutable,
            127 => ErrorKind::ProgramNotFound,
            _ => ErrorKind::Outside,
        }
    }

    fn hints(&self) -> Vec<String> {
        self.hint().into_iter().collect()
    }
}

/// An error with its causes, without those that repeat it, as libcontainer's do.
pub(crate) fn error_text(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let cause = error.to_string();
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
        source = error.source();
    }
    text
}

/// Adds the file to an error.
pub(crate) trait OnFile<T> {
    fn on(self, action: &'static str, path: &Path) -> Result<T, RuntimeError>;
}

impl<T, E: Into<io::Error>> OnFile<T> for Result<T, E> {
    fn on(self, action: &'static str, path: &Path) -> Result<T, RuntimeError> {
        self.map_err(|error| RuntimeError::file(action, path, error))
    }
}

/// Adds what failed to an error.
pub(crate) trait OnSystem<T> {
    fn when(self, action: &'static str) -> Result<T, RuntimeError>;
}

impl<T, E: Into<io::Error>> OnSystem<T> for Result<T, E> {
    fn when(self, action: &'static str) -> Result<T, RuntimeError> {
        self.map_err(|error| RuntimeError::system(action, error))
    }
}
