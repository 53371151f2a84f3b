//! The inputs of a workload, and helpers that every part of it uses.

use std::fmt;

use cudock_base::UsageError;
use cudock_facts::Facts;
use cudock_facts::version::Date;
use cudock_plan::Assumption;
use cudock_project::{Manifest, Project, WorkloadFlags};

use crate::assumptions::Assumed;
use crate::inputs::Inputs;
use crate::origin::Origin;

/// File, flags and tables, and the assumptions so far.
#[derive(Clone)]
pub(crate) struct WorkloadBuilder<'a> {
    pub(crate) facts: &'a Facts,
    pub(crate) project: &'a Project,
    pub(crate) flags: &'a WorkloadFlags,
    pub(crate) inputs: &'a Inputs,
    pub(crate) today: Date,
    pub(crate) assumptions: Vec<Assumption>,
    /// The GPU that a benchmark report names.
    pub(crate) measured_on: Option<String>,
    /// Why the model that is named could not be read.
    pub(crate) unread_model: Option<String>,
}

impl<'a> WorkloadBuilder<'a> {
    pub(crate) fn new(
        facts: &'a Facts,
        project: &'a Project,
        flags: &'a WorkloadFlags,
        inputs: &'a Inputs,
        today: Date,
    ) -> Self {
        let assumptions = Vec::new();
        Self { facts, project, flags, inputs, today, assumptions, measured_on: None, unread_model: None }
    }

    pub(crate) fn file(&self) -> &'a Manifest {
        &self.project.manifest
    }

    /// Uses the value of a row of the table, and records it as an assumption.
    pub(crate) fn default<T: Clone>(&mut self, row: &Assumed<T>) -> T {
        self.assume(&row.key, row.shown.as_str(), row.note.as_str());
        row.value.clone()
    }

    /// Records a value that was inferred or assumed.
    pub(crate) fn assume(&mut self, about: &str, value: impl Into<String>, source: impl Into<String>) {
        self.assumptions.push(Assumption::new(about, value, source));
    }

    pub(crate) fn describe(&self, origin: Origin) -> String {
        match origin {
            Origin::Flag(flag) => flag.to_owned(),
            Origin::Key(key) => format!("given in {}", self.project.text.location(key)),
        }
    }

    /// The error for an invalid value, with the nearest valid name.
    pub(crate) fn invalid(
        &self,
        origin: Origin,
        problem: impl fmt::Display,
        near: Option<&str>,
    ) -> UsageError {
        self.invalid_entry(origin, None, problem, near)
    }

    /// The same for one entry of a list or table.
    pub(crate) fn invalid_entry(
        &self,
        origin: Origin,
        entry: Option<&str>,
        problem: impl fmt::Display,
        near: Option<&str>,
    ) -> UsageError {
        match origin {
            Origin::Flag(flag) => UsageError::new(format!("{flag}: {problem}")).near(near.as_slice()),
            Origin::Key(key) => {
                let (text, near) = (&self.project.text, near.map(str::to_owned));
                let error = match entry {
                    Some(entry) => text.key_error(&format!("{key}.{entry}"), problem.to_string(), near),
                    None => text.value_error(key, problem.to_string(), near),
                };
                UsageError::new(error.to_string())
            }
        }
    }

    /// The value, which must not be zero.
    pub(crate) fn above_zero<T: Default + PartialEq>(
        &self,
        given: Option<(T, Origin)>,
        problem: &str,
    ) -> Result<Option<T>, UsageError> {
        match given {
            Some((value, origin)) if value == T::default() => Err(self.invalid(origin, problem, None)),
            other => Ok(other.map(|(value, _)| value)),
        }
    }

    /// The error for a value that needs another one.
    pub(crate) fn incomplete(&self, origin: Origin, problem: impl fmt::Display) -> UsageError {
        match origin {
            Origin::Flag(flag) => UsageError::new(format!("{flag}: {problem}")),
            Origin::Key(key) => {
                UsageError::new(self.project.text.key_error(key, problem.to_string(), None).to_string())
            }
        }
    }
}

/// The first of some flags or keys that is given.
pub(crate) fn first_given(names: &[(&'static str, bool)]) -> Option<&'static str> {
    names.iter().find(|(_, given)| *given).map(|(name, _)| *name)
}

/// The names of a flag, or those of the file.
pub(crate) fn names_of<'n>(
    flag: &'n [String],
    flag_name: &'static str,
    key: &'n [String],
    key_name: &'static str,
) -> (&'n [String], Origin) {
    if flag.is_empty() { (key, Origin::Key(key_name)) } else { (flag, Origin::Flag(flag_name)) }
}

/// The flag's value, or the file's.
pub(crate) fn flag_or_key<T>(
    flag: Option<T>,
    flag_name: &'static str,
    key: Option<T>,
    key_name: &'static str,
) -> Option<(T, Origin)> {
    flag.map(|value| (value, Origin::Flag(flag_name)))
        .or_else(|| key.map(|value| (value, Origin::Key(key_name))))
}
