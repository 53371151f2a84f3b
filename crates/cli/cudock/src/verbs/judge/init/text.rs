//! The report of `cudock init`.

use std::path::Path;

use cudock_cli::InitArgs;
use cudock_compat::Target;
use cudock_init::{Choice, Detected, Installer, ProjectKind, Scaffold};
use schemars::JsonSchema;
use serde::Serialize;

use crate::output::{self, BOLD, TableUsed, line, styled, wrapped};

#[derive(Serialize, JsonSchema)]
pub(crate) struct InitReport<'a> {
    schema: u8,
    kind: ProjectKind,
    /// What installs the Python packages.
    installer: Option<Installer>,
    /// The file by which the kind was detected.
    file: &'a str,
    /// None for machines without a GPU.
    target: Option<&'a Target>,
    choices: &'a [Choice],
    notes: &'a [String],
    files: Vec<FileReport<'a>>,
    /// Whether the files were written.
    written: bool,
    tables: &'a [TableUsed],
}

#[derive(Serialize, JsonSchema)]
struct FileReport<'a> {
    /// Relative to the project's directory.
    path: &'a str,
    text: &'a str,
}

impl<'a> InitReport<'a> {
    pub(crate) fn new(
        detected: &'a Detected,
        target: Option<&'a Target>,
        scaffold: &'a Scaffold,
        args: &InitArgs,
        tables: &'a [TableUsed],
    ) -> Self {
        let file = |file: &'a cudock_init::GeneratedFile| FileReport { path: file.path, text: &file.text };
        Self {
            schema: 1,
            kind: detected.kind,
            installer: detected.installer,
            file: &detected.file,
            target,
            choices: &scaffold.choices,
            notes: &scaffold.notes,
            files: scaffold.files.iter().map(file).collect(),
            written: !args.print,
            tables,
        }
    }
}

/// Prints the files, as `head` separates them.
pub(crate) fn files(scaffold: &Scaffold) {
    for (index, file) in scaffold.files.iter().enumerate() {
        let blank = if index == 0 { "" } else { "\n" };
        line(format!("{blank}==> {} <==", file.path));
        line(file.text.trim_end_matches('\n'));
    }
    notes(scaffold);
}

/// Prints what was written, what was chosen, and what to do next.
pub(crate) fn summary(
    (name, directory): (&str, &Path),
    detected: &Detected,
    target: Option<&Target>,
    scaffold: &Scaffold,
) {
    let names: Vec<&str> = scaffold.files.iter().map(|file| file.path).collect();
    let on = target.map_or_else(|| "machines without a GPU".to_owned(), ToString::to_string);
    line(format!("{} {}", styled(BOLD, "created"), names.join(", ")));
    line(wrapped("", &format!("{detected}, for {on}")));
    for choice in &scaffold.choices {
        line(wrapped("  ", &format!("{} {}: {}", choice.name, choice.value, choice.reason)));
    }
    let gpus = if target.is_some() { " --gpus all" } else { "" };
    let port = if detected.kind == ProjectKind::Onnx { " --publish 8000:8000" } else { "" };
    // Names of images are in lower case.
    let image = name.to_ascii_lowercase();
    let directory = directory.display();
    line(format!("next: docker build --tag {image} {directory} && docker run --rm{gpus}{port} {image}"));
    notes(scaffold);
}

fn notes(scaffold: &Scaffold) {
    for note in &scaffold.notes {
        output::note(note);
    }
}
