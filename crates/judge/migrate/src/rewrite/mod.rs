//! Writes the files that replace an old one: sweeps of `HyperDrive`, container groups, programs for azure-batch 14.
//!
//! Anything that cannot be translated is a finding with its line, and never left out in silence.

mod batch;
mod container_apps;
mod hyperdrive;
mod python;
mod sweep;
mod sweep_files;

use std::ops::Range;

use cudock_base::{Date, LineIndex};
use cudock_facts::Facts;
use cudock_facts::finding::{Finding, Severity, TextRegion};
use schemars::JsonSchema;
use serde::Serialize;

use crate::judge::codes;

/// A file that replaces an old one, or a part of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NewFile {
    pub name: String,
    pub text: String,
}

/// What became of an old file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Translation {
    /// Empty if nothing in the file can be translated.
    pub files: Vec<NewFile>,
    /// What could not be translated, or has to be looked at.
    pub findings: Vec<Finding>,
}

/// Where a file is translated.
#[derive(Clone, Copy)]
struct Source<'a> {
    facts: &'a Facts,
    day: Date,
    region: Option<&'a str>,
    path: &'a str,
    text: &'a str,
}

/// Translates a file. `path` is for findings and names; the day and region decide which GPUs are on sale.
pub fn translate(facts: &Facts, day: Date, region: Option<&str>, path: &str, text: &str) -> Translation {
    let source = Source { facts, day, region, path, text };
    let mut writer = Writer { index: LineIndex::new(text), path, translation: Translation::default() };
    if hyperdrive::is_found(text) {
        hyperdrive::translate(source, &mut writer);
    }
    if batch::is_found(text) {
        batch::translate(source, &mut writer);
    }
    if cudock_group::is_group(text) {
        container_apps::translate(source, &mut writer);
    }
    let mut translation = writer.translation;
    if translation.files.is_empty() && translation.findings.is_empty() {
        translation.findings.push(Finding::new(
            codes::NOT_TRANSLATED,
            Severity::Error,
            format!("{path}: nothing to translate"),
            "pass a HyperDrive program, a container group in YAML, or a program for azure-batch 14",
        ));
    }
    translation.findings.sort_by_key(|finding| {
        finding.location.as_ref().map_or(usize::MAX, |location| location.region.span.start)
    });
    translation
}

/// Collects the files and findings of a translation.
struct Writer<'a> {
    index: LineIndex<'a>,
    path: &'a str,
    translation: Translation,
}

impl Writer<'_> {
    fn file(&mut self, name: impl Into<String>, text: String) {
        self.translation.files.push(NewFile { name: name.into(), text });
    }

    /// Something that the new files do not have, or that has to be changed in them.
    fn lost(&mut self, bytes: Range<usize>, message: impl Into<String>, fix: impl Into<String>) {
        self.report(Severity::Warning, Some(bytes), message.into(), fix.into());
    }

    /// Something to do besides.
    fn note(&mut self, bytes: Range<usize>, message: impl Into<String>, fix: impl Into<String>) {
        self.report(Severity::Note, Some(bytes), message.into(), fix.into());
    }

    /// The reason why nothing is written.
    fn failed(&mut self, bytes: Range<usize>, message: impl Into<String>, fix: impl Into<String>) {
        self.report(Severity::Error, Some(bytes), message.into(), fix.into());
    }

    fn report(&mut self, severity: Severity, bytes: Option<Range<usize>>, message: String, fix: String) {
        let finding = Finding::new(codes::NOT_TRANSLATED, severity, message, fix);
        self.translation.findings.push(match bytes {
            Some(bytes) => finding.at(self.path, TextRegion::new(&self.index, bytes)),
            None => finding,
        });
    }
}
