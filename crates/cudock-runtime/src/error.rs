//! What can go wrong with a container.

use std::io;
use std::path::{Path, PathBuf};

use cudock_base::{ErrorKind, Report, UsageError};

/// Why a container could not be made, watched or ended.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// A file or directory of ours, or a system call on one.
    #[error("{doing} {}", path.display())]
    File {
        /// What was tried: "cannot write".
        doing: &'static str,
        /// Which one.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A system call that names no file.
    #[error("{doing}")]
    System {
        /// What was tried.
        doing: &'static str,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A state file that cannot be read as one.
    #[error("{} is not what cudock wrote", path.display())]
    Damaged {
        /// Which one.
        path: PathBuf,
        /// What is wrong in it.
        #[source]
        source: serde_json::Error,
    },
    /// No container has that name or id.
    #[error("no container `{0}`")]
    Unknown(String),
    /// No group has that name.
    #[error("no group `{0}`")]
    UnknownGroup(String),
    /// Several ids begin so.
    #[error("`{0}` is the beginning of several ids")]
    Ambiguous(String),
    /// A name is taken.
    #[error("the name `{name}` is taken by container {id}")]
    NameTaken {
        /// The name.
        name: String,
        /// Who has it.
        id: String,
    },
    /// A container is not in the state an operation needs.
    #[error("container {name} is {is}, not {needed}")]
    State {
        /// Which container.
        name: String,
        /// How it is.
        is: String,
        /// How it would have to be.
        needed: &'static str,
    },
    /// The user or group does not exist in the image.
    #[error("{0}")]
    User(String),
    /// A flag or its value cannot be used.
    #[error(transparent)]
    Usage(#[from] UsageError),
    /// A word of the request means nothing.
    #[error("{0}")]
    Request(String),
    /// The program is not there: exit code 127.
    #[error("{0}")]
    NotFound(String),
    /// The program is there and cannot be executed: exit code 126.
    #[error("{0}")]
    NotExecutable(String),
    /// What a watcher said.
    #[error("{text}")]
    Reported {
        /// The exit code it stands for.
        code: i32,
        /// Why.
        text: String,
        /// The way out.
        hint: Option<String>,
    },
    /// The container could not be created.
    #[error("cannot create the container: {0}")]
    Create(String),
    /// This machine does not allow containers, or not in this way.
    #[error("{what}")]
    Host {
        /// What it does not allow.
        what: String,
        /// The way out.
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
    pub(crate) fn file(doing: &'static str, path: impl Into<PathBuf>, source: impl Into<io::Error>) -> Self {
        Self::File { doing, path: path.into(), source: source.into() }
    }

    pub(crate) fn system(doing: &'static str, source: impl Into<io::Error>) -> Self {
        Self::System { doing, source: source.into() }
    }

    /// Something that another process said went wrong outside.
    pub(crate) fn said(text: impl Into<String>) -> Self {
        Self::Reported { code: 3, text: text.into(), hint: None }
    }

    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::Unknown(_) => Some("`cudock ps --all` lists them".to_owned()),
            Self::UnknownGroup(_) => Some("`cudock groups` lists them".to_owned()),
            Self::Ambiguous(_) => Some("give more of the id, or the name".to_owned()),
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

/// Names the file that an operation failed on.
pub(crate) trait OnFile<T> {
    fn on(self, doing: &'static str, path: &Path) -> Result<T, RuntimeError>;
}

impl<T, E: Into<io::Error>> OnFile<T> for Result<T, E> {
    fn on(self, doing: &'static str, path: &Path) -> Result<T, RuntimeError> {
        self.map_err(|error| RuntimeError::file(doing, path, error))
    }
}

/// Names the system call that failed.
pub(crate) trait OnSystem<T> {
    fn when(self, doing: &'static str) -> Result<T, RuntimeError>;
}

impl<T, E: Into<io::Error>> OnSystem<T> for Result<T, E> {
    fn when(self, doing: &'static str) -> Result<T, RuntimeError> {
        self.map_err(|error| RuntimeError::system(doing, error))
    }
}
