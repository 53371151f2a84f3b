//! Lints files with the settings that hold for them: flags over `cudock.toml` over defaults.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use cudock_base::{Date, ErrorKind, LineIndex, Report};
use cudock_compat::BuildContext;
use cudock_dockerfile::SyntaxError;
use cudock_facts::Facts;
use cudock_facts::finding::{Finding, Severity, TextRegion};
use cudock_facts::version::DriverVersion;
use cudock_project::{FILE_NAME, FailLevel, Project, ProjectError};
use cudock_target::{Target, TargetError};

use crate::online::ImageCheck;
use crate::selection::Selection;
use crate::{Fixed, LintOptions, LintTarget, codes, fix_all, lint};

/// Settings of the user for all files.
#[derive(Debug, Clone, Default)]
pub struct LintFlags {
    /// A GPU, an Azure size, or `cpu`.
    pub target: Option<String>,
    pub driver: Option<DriverVersion>,
    pub fail_level: Option<FailLevel>,
}

/// How a file is linted.
#[derive(Debug, Default)]
pub struct LintSettings {
    pub target: Option<LintTarget>,
    pub selection: Selection,
    pub fail_level: FailLevel,
}

/// Settings that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error(transparent)]
    Project(#[from] ProjectError),
    #[error(transparent)]
    Target(#[from] TargetError),
    #[error("a driver without a GPU")]
    DriverAlone,
}

impl Report for SettingsError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Input
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Project(error) => error.hints(),
            Self::Target(error) => error.hints(),
            Self::DriverAlone => vec!["name the GPU, too: --for H100".to_owned()],
        }
    }
}

/// Lints files, and reads each `cudock.toml` once.
pub struct Linter<'f> {
    facts: &'f Facts,
    today: Date,
    flags: LintFlags,
    settings: HashMap<Option<PathBuf>, Rc<LintSettings>>,
    /// Sends requests to registries, with `--online`.
    images: Option<&'f ImageCheck>,
}

impl<'f> Linter<'f> {
    /// A linter. `images` sends requests to registries; without it, none are sent.
    pub fn new(facts: &'f Facts, today: Date, flags: LintFlags, images: Option<&'f ImageCheck>) -> Self {
        Self { facts, today, flags, settings: HashMap::new(), images }
    }

    /// The settings for a file: those of the nearest `cudock.toml` in a directory above it, and the flags.
    pub fn settings(&mut self, path: &Path) -> Result<Rc<LintSettings>, SettingsError> {
        let manifest = nearest_manifest(path);
        if let Some(known) = self.settings.get(&manifest) {
            return Ok(Rc::clone(known));
        }
        let settings = Rc::new(self.read_settings(manifest.as_deref())?);
        self.settings.insert(manifest, Rc::clone(&settings));
        Ok(settings)
    }

    fn read_settings(&self, manifest: Option<&Path>) -> Result<LintSettings, SettingsError> {
        let flags = &self.flags;
        let project = manifest.map(Project::read).transpose()?;
        let lint = project.as_ref().map(|project| &project.manifest.lint);
        let (name, driver) = if flags.target.is_some() {
            (flags.target.as_ref(), flags.driver)
        } else {
            let driver = lint.and_then(|lint| lint.driver);
            (lint.and_then(|lint| lint.target.as_ref()), flags.driver.or(driver))
        };
        if name.is_none() && driver.is_some() {
            return Err(SettingsError::DriverAlone);
        }
        let target = name.map(|name| Target::named(self.facts, name, driver, self.today)).transpose();
        let target = target.map_err(|error| match &project {
            Some(project) if flags.target.is_none() => {
                let near = error.near.first().cloned();
                SettingsError::Project(project.text.value_error("lint.for", error.message, near))
            }
            _ => SettingsError::Target(error),
        })?;
        let selection = project
            .as_ref()
            .map(|project| Selection::read(self.facts, &project.manifest.lint, &project.text));
        let fail_level = flags.fail_level.or(lint.and_then(|lint| lint.fail_level));
        Ok(LintSettings {
            target: target.map(|gpu| gpu.map_or(LintTarget::Cpu, |gpu| LintTarget::Gpu(Box::new(gpu)))),
            selection: selection.transpose()?.unwrap_or_default(),
            fail_level: fail_level.unwrap_or_default(),
        })
    }

    /// The findings of a text; one about its syntax if it cannot be parsed. `path` is where its build context is, and
    /// `name` is what findings call it.
    pub fn lint(&self, settings: &LintSettings, path: &Path, name: &str, text: &str) -> Vec<Finding> {
        self.with_options(settings, path, text, |options| lint(name, text, options))
            .unwrap_or_else(|error| vec![of_syntax(name, text, &error)])
    }

    /// Fixes a text; also returns the findings that remain.
    pub fn fix(&self, settings: &LintSettings, path: &Path, name: &str, text: &str) -> (Fixed, Vec<Finding>) {
        let fixed = self.with_options(settings, path, text, |options| fix_all(name, text, options));
        fixed.unwrap_or_else(|error| {
            (Fixed { text: text.to_owned(), applied: 0 }, vec![of_syntax(name, text, &error)])
        })
    }

    /// Calls a function with what holds for a file.
    fn with_options<T>(
        &self,
        settings: &LintSettings,
        path: &Path,
        text: &str,
        call: impl FnOnce(&LintOptions<'_>) -> T,
    ) -> T {
        let files = BuildContext::of_dockerfile(path, text);
        let arch = match &settings.target {
            Some(LintTarget::Gpu(target)) => target.traits.cpu,
            _ => None,
        };
        call(&LintOptions {
            facts: self.facts,
            target: settings.target.as_ref(),
            files: &files,
            arch: arch.unwrap_or_default(),
            selection: &settings.selection,
            images: self.images,
        })
    }
}

/// The nearest `cudock.toml` above a file.
fn nearest_manifest(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    path.ancestors().skip(1).map(|directory| directory.join(FILE_NAME)).find(|manifest| manifest.is_file())
}

fn of_syntax(name: &str, text: &str, error: &SyntaxError) -> Finding {
    let lines: Vec<&str> = text.split_inclusive('\n').take(error.line).collect();
    let length: usize = lines.iter().map(|line| line.len()).sum();
    let last = lines.last().map_or(0, |line| line.len());
    let end = length - last + lines.last().map_or(0, |line| line.trim_end().len());
    let region = TextRegion::new(&LineIndex::new(text), length - last..end);
    Finding::new(codes::SYNTAX, Severity::Error, &error.message, "").at(name, region)
}
