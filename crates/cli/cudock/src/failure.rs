//! Errors as the user sees them: what failed and where, then a hint with the next command.

use std::process::ExitCode;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
pub(crate) use cudock_base::text::error_chain as chain;
use cudock_base::{ErrorKind, Report, did_you_mean};

use crate::output::{BLUE, RED, styled};

/// The result of a verb that completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Success, or a positive answer.
    Yes,
    /// A negative answer.
    No,
    /// The exit code of the program in a container.
    Program(i32),
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Yes => ExitCode::SUCCESS,
            Outcome::No => ExitCode::from(1),
            Outcome::Program(code) => ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)),
        }
    }
}

/// An error that ended a verb.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    excerpt: Option<SourceExcerpt>,
    hints: Vec<String>,
    code: u8,
}

/// A part of a file to show with the error.
#[derive(Debug)]
struct SourceExcerpt {
    path: String,
    text: String,
    span: std::ops::Range<usize>,
}

impl Failure {
    /// Invalid arguments or input: exit code 2.
    pub(crate) fn input(message: impl Into<String>) -> Self {
        Self { message: message.into(), excerpt: None, hints: Vec::new(), code: ErrorKind::Input.exit_code() }
    }

    /// A failure of the system, the network or a device: exit code 3.
    pub(crate) fn outside(message: impl Into<String>) -> Self {
        Self { code: ErrorKind::Outside.exit_code(), ..Self::input(message) }
    }

    /// An error with a specific exit code.
    pub(crate) fn with_code(message: impl Into<String>, code: u8) -> Self {
        Self { code, ..Self::input(message) }
    }

    /// Adds a hint.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Adds "did you mean" if there are similar names.
    pub(crate) fn near(self, names: &[impl AsRef<str>]) -> Self {
        match did_you_mean(names) {
            Some(hint) => self.hint(hint),
            None => self,
        }
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }

    pub(crate) fn print(&self) {
        match &self.excerpt {
            None => anstream::eprintln!("{}: {}", styled(RED, "error"), self.message),
            Some(excerpt) => {
                let end = excerpt.span.end.max(excerpt.span.start + 1).min(excerpt.text.len());
                let span = excerpt.span.start.min(end)..end;
                let shown = Snippet::source(excerpt.text.as_str()).path(excerpt.path.as_str());
                let report = Group::with_title(Level::ERROR.primary_title(self.message.as_str()))
                    .element(shown.annotation(AnnotationKind::Primary.span(span)));
                anstream::eprintln!("{}", Renderer::styled().render(&[report]));
            }
        }
        for hint in &self.hints {
            anstream::eprintln!("{}: {hint}", styled(BLUE, "hint"));
        }
    }
}

impl<E: Report> From<E> for Failure {
    fn from(error: E) -> Self {
        let excerpt = error.excerpt().map(|excerpt| SourceExcerpt {
            path: excerpt.path.display().to_string(),
            text: excerpt.text.to_owned(),
            span: excerpt.span.clone(),
        });
        let message = chain(&error);
        let message = match excerpt {
            // Only the first line of a long message fits a title; the excerpt shows the rest.
            Some(_) => message.lines().next().unwrap_or_default().to_owned(),
            None => message,
        };
        Self { message, excerpt, hints: error.hints(), code: error.kind().exit_code() }
    }
}
