//! Lints and fixes files on disk or from standard input.

use std::io::Read;
use std::path::{Path, PathBuf};

use cudock_base::files::{FileError, rewrite_atomically};
use cudock_base::{ErrorKind, Report, UsageError};
use cudock_facts::finding::Finding;

use crate::discover::discover;
use crate::fix::diff;
use crate::{FileReport, Linter, SettingsError, source};

/// The path that stands for standard input.
const INPUT: &str = "-";

/// How fixes are handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FixMode {
    /// Report findings only.
    Off,
    /// Show what would change.
    Preview,
    /// Change the file; for standard input, the text.
    Apply,
}

/// A file with its findings.
#[derive(Debug)]
pub struct LintedFile {
    /// The name of the file in findings.
    pub name: String,
    /// The text that the findings are about.
    pub text: String,
    pub findings: Vec<Finding>,
    /// Whether a finding reaches the level from which the command fails.
    pub fails: bool,
    /// The number of findings that were fixed.
    pub fixed: usize,
    /// The changes that fixes would make, as a unified diff.
    pub preview: Option<String>,
    pub is_input: bool,
}

impl LintedFile {
    pub fn report(&self) -> FileReport<'_> {
        FileReport {
            path: &self.name,
            findings: self.findings.iter().map(Into::into).collect(),
            fixed: self.fixed,
            diff: self.preview.as_deref(),
        }
    }
}

/// A file that cannot be linted.
#[derive(Debug, thiserror::Error)]
pub enum LintError {
    #[error(transparent)]
    Read(#[from] UsageError),
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error(transparent)]
    Write(#[from] FileError),
}

impl Report for LintError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Read(error) => error.kind(),
            Self::Settings(error) => error.kind(),
            Self::Write(error) => error.kind(),
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Read(error) => error.hints(),
            Self::Settings(error) => error.hints(),
            Self::Write(error) => error.hints(),
        }
    }
}

/// The Dockerfiles that paths stand for, each once: files, those in directories, `-`.
pub fn dockerfiles(paths: &[PathBuf]) -> Result<Vec<PathBuf>, UsageError> {
    let mut files: Vec<PathBuf> = Vec::new();
    for path in paths {
        let found = if path.is_dir() { discover(path) } else { vec![path.clone()] };
        for file in found {
            if !files.contains(&file) {
                files.push(file);
            }
        }
    }
    if files.is_empty() {
        let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        return Err(UsageError::new(format!("no Dockerfile found in {}", paths.join(", ")))
            .hint("name the file: cudock lint FILE"));
    }
    Ok(files)
}

impl Linter<'_> {
    /// Lints a file, and fixes it if asked to; `input` is read for `-`.
    pub fn lint_file(
        &mut self,
        path: &Path,
        input: impl Read,
        mode: FixMode,
    ) -> Result<LintedFile, LintError> {
        let is_input = path == Path::new(INPUT);
        let name = if is_input { "<stdin>".to_owned() } else { path.display().to_string() };
        let text = if is_input { source::read_from(&name, input) } else { source::read_file(path) }?;
        // Settings and build context of standard input are those of the current directory.
        let path = if is_input { Path::new("Dockerfile") } else { path };
        let settings = self.settings(path)?;
        let mut file =
            LintedFile { name, text, findings: Vec::new(), fails: false, fixed: 0, preview: None, is_input };
        if mode == FixMode::Off {
            file.findings = self.lint(&settings, path, &file.name, &file.text);
        } else {
            let (fixed, remaining) = self.fix(&settings, path, &file.name, &file.text);
            if mode == FixMode::Preview {
                file.preview = Some(diff(&file.name, &file.text, &fixed.text));
                file.findings = self.lint(&settings, path, &file.name, &file.text);
            } else {
                if fixed.applied > 0 && !is_input {
                    rewrite_atomically(path, fixed.text.as_bytes()).map_err(FileError::at("write", path))?;
                }
                (file.text, file.findings, file.fixed) = (fixed.text, remaining, fixed.applied);
            }
        }
        file.fails = file.findings.iter().any(|finding| settings.fail_level.is_reached_by(finding.severity));
        Ok(file)
    }
}
