//! Errors as the user sees them: what and where, then a hint with the next thing to type.

use std::process::ExitCode;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
pub(crate) use cudock_base::text::error_chain as chain;
use cudock_base::{ErrorKind, Report, did_you_mean};

use crate::output::{BLUE, RED, styled};

/// How a verb that ran to its end came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It holds, or was done.
    Yes,
    /// The answer is no.
    No,
    /// What the program in a container ended with.
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

/// Why a verb did not run to its end.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    place: Option<Place>,
    hints: Vec<String>,
    code: u8,
}

/// A place in a file, with the text to show.
#[derive(Debug)]
struct Place {
    path: String,
    text: String,
    span: std::ops::Range<usize>,
}

impl Failure {
    /// The call or the input is bad: exit code 2.
    pub(crate) fn input(message: impl Into<String>) -> Self {
        Self { message: message.into(), place: None, hints: Vec::new(), code: ErrorKind::Input.exit_code() }
    }

    /// The outside failed: exit code 3.
    pub(crate) fn outside(message: impl Into<String>) -> Self {
        Self { code: ErrorKind::Outside.exit_code(), ..Self::input(message) }
    }

    /// With an exit code of its own.
    pub(crate) fn with_code(message: impl Into<String>, code: u8) -> Self {
        Self { code, ..Self::input(message) }
    }

    /// Adds what to do next.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// "did you mean", if anything is near.
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
        match &self.place {
            None => anstream::eprintln!("{}: {}", styled(RED, "error"), self.message),
            Some(place) => {
                let end = place.span.end.max(place.span.start + 1).min(place.text.len());
                let span = place.span.start.min(end)..end;
                let shown = Snippet::source(place.text.as_str()).path(place.path.as_str());
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

/// What a library's error says, as the user sees it.
impl<E: Report> From<E> for Failure {
    fn from(error: E) -> Self {
        let place = error.excerpt().map(|excerpt| Place {
            path: excerpt.path.display().to_string(),
            text: excerpt.text.to_owned(),
            span: excerpt.span.clone(),
        });
        let message = chain(&error);
        let message = match place {
            // Only the first line of a long message fits a title; the excerpt shows the rest.
            Some(_) => message.lines().next().unwrap_or_default().to_owned(),
            None => message,
        };
        Self { message, place, hints: error.hints(), code: error.kind().exit_code() }
    }
}
