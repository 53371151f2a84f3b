//! Errors of a `cudock.toml`, with their location.

use std::path::{Path, PathBuf};

use cudock_base::{ErrorKind, LineIndex, Report};

/// A `cudock.toml` that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error(
        "{}:{line}:{column}: {problem}{}",
        path.display(),
        suggestion.as_ref().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default()
    )]
    Parse {
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The column in characters, from 1.
        column: usize,
        problem: String,
        /// The known name that is nearest to the unknown one.
        suggestion: Option<String>,
    },
}

impl Report for ProjectError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Input
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Read { .. } => {
                vec!["name a cudock.toml or its directory, or describe the workload with flags".to_owned()]
            }
            Self::Parse { .. } => Vec::new(),
        }
    }
}

impl ProjectError {
    pub(crate) fn parse(path: &Path, text: &str, error: &toml::de::Error) -> Self {
        let message = error.message();
        let suggestion = nearest(message);
        // The list of all known keys is long; the nearest one is what helps.
        let problem = match message.split_once(", expected ") {
            Some((problem, _)) if suggestion.is_some() => problem.to_owned(),
            _ => message.trim_end().replace('\n', "; "),
        };
        Self::at(path, text, error.span().map_or(0, |span| span.start), problem, suggestion)
    }

    /// An error at a byte of the text.
    pub(crate) fn at(
        path: &Path,
        text: &str,
        offset: usize,
        problem: String,
        suggestion: Option<String>,
    ) -> Self {
        let (line, column) = LineIndex::new(text).location(offset);
        Self::Parse { path: path.to_owned(), line, column, problem, suggestion }
    }
}

/// The known name most similar to the unknown one, read from "unknown field `a`, expected one of `b`, `c`".
fn nearest(message: &str) -> Option<String> {
    let mut quoted = message.split('`').skip(1).step_by(2);
    let unknown = quoted.next().filter(|_| message.starts_with("unknown"))?;
    cudock_base::text::suggest::closest(unknown, quoted).map(str::to_owned)
}
