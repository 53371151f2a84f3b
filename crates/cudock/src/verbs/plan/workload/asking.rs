//! What every part of the workload is put together with.

use std::fmt;
use std::path::PathBuf;

use cudock_facts::Facts;
use cudock_facts::version::Date;
use cudock_plan::Assumption;
use cudock_project::{Manifest, Project};

use super::PlanFlags;
use crate::failure::Failure;

/// File, flags and tables, and what has been assumed so far.
#[derive(Clone)]
pub(super) struct Asking<'a> {
    pub(super) facts: &'a Facts,
    pub(super) project: &'a Project,
    pub(super) flags: &'a PlanFlags,
    pub(super) today: Date,
    pub(super) assumptions: Vec<Assumption>,
    /// The GPU that a measurement names.
    pub(super) measured_on: Option<String>,
    /// Why the model that is named could not be read.
    pub(super) unread_model: Option<String>,
}

/// Where a value was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Given {
    /// By a flag.
    Flag(&'static str),
    /// By a key of the file.
    Key(&'static str),
}

impl<'a> Asking<'a> {
    pub(super) fn new(facts: &'a Facts, project: &'a Project, flags: &'a PlanFlags, today: Date) -> Self {
        Self { facts, project, flags, today, assumptions: Vec::new(), measured_on: None, unread_model: None }
    }

    pub(super) fn file(&self) -> &'a Manifest {
        &self.project.manifest
    }

    /// Writes down what was taken for want of something given.
    pub(super) fn assume(&mut self, about: &str, value: impl Into<String>, source: impl Into<String>) {
        self.assumptions.push(Assumption {
            about: about.to_owned(),
            value: value.into(),
            source: source.into(),
        });
    }

    /// Where a value was given, in words.
    pub(super) fn source(&self, given: Given) -> String {
        match given {
            Given::Flag(flag) => flag.to_owned(),
            Given::Key(key) => format!("given in {}", self.project.places.name(key)),
        }
    }

    /// The failure that a value cannot be, with what was meant perhaps.
    pub(super) fn wrong(&self, given: Given, problem: impl fmt::Display, near: Option<&str>) -> Failure {
        self.wrong_part(given, None, problem, near)
    }

    /// The same for the name of one entry of a list or table.
    pub(super) fn wrong_part(
        &self,
        given: Given,
        part: Option<&str>,
        problem: impl fmt::Display,
        near: Option<&str>,
    ) -> Failure {
        match given {
            Given::Flag(flag) => {
                let near: Vec<&str> = near.into_iter().collect();
                Failure::input(format!("{flag}: {problem}")).near(&near)
            }
            Given::Key(key) => {
                let (places, near) = (&self.project.places, near.map(str::to_owned));
                match part {
                    Some(part) => {
                        places.unknown_name(&format!("{key}.{part}"), problem.to_string(), near).into()
                    }
                    None => places.wrong_value(key, problem.to_string(), near).into(),
                }
            }
        }
    }

    /// The failure that something given needs something else beside it.
    pub(super) fn lacks(&self, given: Given, problem: impl fmt::Display) -> Failure {
        match given {
            Given::Flag(flag) => Failure::input(format!("{flag}: {problem}")),
            Given::Key(key) => self.project.places.wrong_key(key, problem.to_string()).into(),
        }
    }

    /// A path of the file starts in its folder.
    pub(super) fn beside(&self, path: &std::path::Path) -> PathBuf {
        self.project.folder.join(path)
    }
}

/// The flag's value, or the file's.
pub(super) fn either<T>(
    flag: Option<T>,
    flag_name: &'static str,
    key: Option<T>,
    key_name: &'static str,
) -> Option<(T, Given)> {
    flag.map(|value| (value, Given::Flag(flag_name)))
        .or_else(|| key.map(|value| (value, Given::Key(key_name))))
}
