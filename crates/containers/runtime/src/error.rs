//! Errors of this crate. Their texts contain names that an image or a container chose.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use cudock_base::text::printable;
use cudock_base::{ErrorKind, Report, UsageError};

#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    #[error("{action} {}", path.display())]
    File {
        /// The action that failed: "cannot write".
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("{action}")]
    System { action: &'static str, source: io::Error },
    #[error("{} is damaged", path.display())]
    Damaged { path: PathBuf, source: serde_json::Error },
    #[error("no container `{0}`")]
    Unknown(String),
    #[error("no group `{0}`")]
    UnknownGroup(String),
    #[error("`{0}` is a prefix of several ids")]
    Ambiguous(String),
    #[error("the name `{name}` is in use by container {id}")]
    NameTaken { name: String, id: String },
    #[error("container {name} is {is}, not {needed}")]
    State { name: String, is: String, needed: &'static str },
    /// The user or group does not exist in the image.
    #[error("{}", printable(.0))]
    User(String),
    #[error(transparent)]
    Usage(#[from] UsageError),
    #[error("{}", printable(.0))]
    Request(String),
    /// The program was not found: exit code 127.
    #[error("{}", printable(.0))]
    NotFound(String),
    /// The program cannot be executed: exit code 126.
    #[error("{}", printable(.0))]
    NotExecutable(String),
    #[error("{text}")]
    Reported { code: i32, text: String, hint: Option<String> },
    /// A signal ended the command before the container was started.
    #[error("interrupted before the container started")]
    Interrupted(nix::sys::signal::Signal),
    #[error("cannot create the container: {}", printable(.0))]
    Create(String),
    /// This machine lacks something that is needed.
    #[error("{what}")]
    Host { what: String, hint: String },
    #[error(transparent)]
    Inject(#[from] cudock_inject::InjectError),
    #[error(transparent)]
    Image(#[from] cudock_image::ImageError),
    #[error(transparent)]
    Unpack(#[from] cudock_image::unpack::UnpackError),
    #[error(transparent)]
    Confine(#[from] cudock_confine::ConfineError),
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

    pub(crate) fn state(name: &str, is: &dyn fmt::Display, needed: &'static str) -> Self {
        Self::State { name: name.to_owned(), is: is.to_string(), needed }
    }

    pub(crate) fn is_missing(&self) -> bool {
        matches!(self, Self::File { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// Whether the kernel refused a change to a file whose owner does not exist in the user namespace of a user without root. Its text for
    /// that is "Value too large for defined data type".
    fn is_unmapped_owner(&self) -> bool {
        let overflow = |error: &io::Error| error.raw_os_error() == Some(nix::libc::EOVERFLOW);
        let mut causes = std::iter::successors(std::error::Error::source(self), |cause| cause.source());
        causes.any(|cause| cause.downcast_ref::<io::Error>().is_some_and(overflow))
            || matches!(self, Self::Create(text) if text.contains("EOVERFLOW"))
    }

    /// An error that another process reported, or that has no more specific variant.
    pub(crate) fn reported(text: impl Into<String>) -> Self {
        Self::Reported { code: 3, text: text.into(), hint: None }
    }
}

/// The exit code of a command that fails with this error.
pub fn exit_code(error: &RuntimeError) -> i32 {
    match error {
        RuntimeError::Reported { code, .. } => *code,
        RuntimeError::Interrupted(signal) => 128 + *signal as i32,
        RuntimeError::NotFound(_) => 127,
        RuntimeError::NotExecutable(_) => 126,
        RuntimeError::User(_)
        | RuntimeError::Usage(_)
        | RuntimeError::Request(_)
        | RuntimeError::Unknown(_)
        | RuntimeError::UnknownGroup(_)
        | RuntimeError::Ambiguous(_)
        | RuntimeError::NameTaken { .. }
        | RuntimeError::State { .. } => 2,
        RuntimeError::Network(error) if !error.is_outside() => 2,
        RuntimeError::Image(error) if !error.is_outside() => 2,
        RuntimeError::Unpack(error) if !error.is_outside() => 2,
        RuntimeError::Inject(error) if !error.is_outside() => 2,
        _ => 3,
    }
}

impl Report for RuntimeError {
    fn kind(&self) -> ErrorKind {
        match exit_code(self) {
            2 => ErrorKind::Input,
            126 => ErrorKind::NotExecutable,
            127 => ErrorKind::ProgramNotFound,
            _ => match self {
                Self::Interrupted(signal) => {
                    ErrorKind::Signal(u8::try_from(*signal as i32).unwrap_or_default())
                }
                _ => ErrorKind::Outside,
            },
        }
    }

    fn hints(&self) -> Vec<String> {
        let hint = match self {
            Self::Usage(error) => return error.hints(),
            Self::Image(error) => return error.hints(),
            Self::Inject(error) => return error.hints(),
            Self::Unpack(error) => return error.hints(),
            Self::Unknown(_) => "`cudock ps --all` lists them".to_owned(),
            Self::UnknownGroup(_) => "`cudock groups` lists them".to_owned(),
            Self::Ambiguous(_) => "use more digits of the id, or the name".to_owned(),
            Self::NameTaken { name, .. } => format!("cudock rm {name}, or choose another name"),
            Self::State { name, needed: "stopped", .. } => {
                format!("cudock stop {name}, or cudock rm --force {name}")
            }
            Self::Host { hint, .. } => hint.clone(),
            Self::Reported { hint, .. } => return hint.iter().cloned().collect(),
            other if other.is_unmapped_owner() => {
                "files of other users cannot be changed without root: use a directory whose files are all yours, or an image; \
                 ranges in /etc/subuid and /etc/subgid, with newuidmap installed, allow more users in a container"
                    .to_owned()
            }
            _ => return Vec::new(),
        };
        vec![hint]
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

/// Adds what failed, and on which file, to an error.
pub(crate) trait OnError<T> {
    fn on(self, action: &'static str, path: &Path) -> Result<T, RuntimeError>;
    fn when(self, action: &'static str) -> Result<T, RuntimeError>;
}

impl<T, E: Into<io::Error>> OnError<T> for Result<T, E> {
    fn on(self, action: &'static str, path: &Path) -> Result<T, RuntimeError> {
        self.map_err(|error| RuntimeError::file(action, path, error))
    }

    fn when(self, action: &'static str) -> Result<T, RuntimeError> {
        self.map_err(|error| RuntimeError::system(action, error))
    }
}
