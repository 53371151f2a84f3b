//! Reads pip's requirements files.

use std::cell::Cell;

use cudock_base::{Arch, Span};
use cudock_dockerfile::Argument;

use super::requirement::{Context, RequirementError, declare};
use super::{Indexes, InstallArgs};
use crate::files::{Files, join, parent};
use crate::{Declared, DeclaredPackage, PositionedError, excerpt, tag};

/// The limit for files that include each other.
const MAX_DEPTH: usize = 6;
/// The limit for included files in total.
const MAX_FILES: usize = 64;

/// The path of a file among others, and the indexes of the command that installs it.
#[derive(Clone, Copy)]
pub(crate) struct IncludeContext<'a> {
    path: &'a str,
    files: &'a dyn Files,
    indexes: Option<&'a Indexes>,
    /// Number of files included so far.
    included: &'a Cell<usize>,
    depth: usize,
}

impl<'a> IncludeContext<'a> {
    pub(crate) fn new(path: &'a str, files: &'a dyn Files, included: &'a Cell<usize>) -> Self {
        Self { path, files, indexes: None, included, depth: 0 }
    }

    pub(crate) fn with_indexes(self, indexes: &'a Indexes) -> Self {
        Self { indexes: Some(indexes), ..self }
    }
}

/// A line with those that continue it, without comments.
struct Logical {
    /// The text from its first character to the end of its last line.
    span: Span,
    text: String,
}

pub(crate) fn read(text: &str, arch: Arch, context: IncludeContext<'_>) -> Result<Declared, PositionedError> {
    let mut declared = Declared::default();
    let (options, lines): (Vec<Logical>, Vec<Logical>) =
        logical_lines(text).into_iter().partition(|logical| is_option(&logical.text));
    let args: Vec<Vec<Argument<'_>>> = options.iter().map(|option| super::split(&option.text)).collect();
    // Options apply to the whole file, whichever line they are on.
    let mut indexes = super::parse_args(&args.concat()).indexes;
    if let Some(outer) = context.indexes {
        indexes = indexes.or_else(|| outer.clone());
    }
    let options: Vec<(Span, InstallArgs<'_>)> =
        options.iter().zip(&args).map(|(option, args)| (option.span, super::parse_args(args))).collect();
    for (span, found) in &options {
        found.notes.iter().for_each(|(_, note)| declared.note(*span, note));
    }
    for (span, found) in &options {
        for project in &found.editable {
            declared.note(*span, super::from_source(&project.text));
        }
        for file in &found.files {
            include(&mut declared, file, *span, arch, context, &indexes);
        }
    }
    for logical in &lines {
        read_requirement(&mut declared, &logical.text, logical.span, &indexes, arch).map_err(|error| {
            let before = logical.text.get(..error.at).unwrap_or(&logical.text);
            PositionedError::new(logical.span.line, before.chars().count() + 1, error.message)
        })?;
    }
    for (span, found) in &options {
        for file in &found.constraints {
            let path = join(parent(context.path), &file.text);
            match context.files.text(&path) {
                Some(text) => constrain(&mut declared.packages, &text, arch),
                None => declared.note(*span, super::cannot_read(&file.text)),
            }
        }
    }
    if let Some(conflict) = indexes.conflict() {
        declared.note(Span::START, conflict);
    }
    declared.notes.sort_by_key(|note| note.span.line);
    Ok(declared)
}

/// Reads an included file, or notes that it cannot be read.
fn include(
    declared: &mut Declared,
    file: &Argument<'_>,
    span: Span,
    arch: Arch,
    context: IncludeContext<'_>,
    indexes: &Indexes,
) {
    let path = join(parent(context.path), &file.text);
    let is_bounded = context.depth < MAX_DEPTH && context.included.get() < MAX_FILES && path != context.path;
    let text = if is_bounded { context.files.text(&path) } else { None };
    context.included.set(context.included.get() + 1);
    let inner = IncludeContext { path: &path, indexes: Some(indexes), depth: context.depth + 1, ..context };
    match text.and_then(|text| read(&text, arch, inner).ok()) {
        Some(included) => declared.merge(included, &path),
        None => declared.note(span, super::cannot_read(&file.text)),
    }
}

/// Pins packages without an exact version to the versions of a constraints file.
pub(crate) fn constrain(packages: &mut [DeclaredPackage], text: &str, arch: Arch) {
    let included = Cell::new(MAX_FILES);
    let context = IncludeContext::new("", &crate::NoFiles, &included);
    let Ok(constraints) = read(text, arch, context) else { return };
    pin(packages, &constraints.packages);
}

/// Pins packages without an exact version to known versions.
pub(crate) fn pin(packages: &mut [DeclaredPackage], known: &[DeclaredPackage]) {
    for package in packages.iter_mut().filter(|package| package.exact.is_none()) {
        let pinned = known.iter().find(|known| known.name == package.name && known.exact.is_some());
        if let Some(pinned) = pinned {
            package.exact.clone_from(&pinned.exact);
            package.tag = pinned.tag.clone().or_else(|| package.tag.clone());
        }
    }
}

/// Reads one line that is not an option, from a requirements file or the `pip:` list of a conda environment.
pub(crate) fn read_requirement(
    declared: &mut Declared,
    text: &str,
    span: Span,
    indexes: &Indexes,
    arch: Arch,
) -> Result<(), RequirementError> {
    let requirement = without_options(text);
    if let Some(variable) = variable_in(requirement) {
        declared.note(span, format!("{} depends on {variable}", excerpt(requirement.trim())));
        return Ok(());
    }
    let before = declared.packages.len();
    declare(declared, requirement, Context { span, arch, group: None, tag: indexes.tag() })?;
    mark_exclusive(declared, before, indexes);
    Ok(())
}

/// Marks packages that can come from one index only.
pub(crate) fn mark_exclusive(declared: &mut Declared, from: usize, indexes: &Indexes) {
    for package in declared.packages.iter_mut().skip(from) {
        package.exclusive = indexes.is_exclusive() && tag::is_built_per_index(&package.name);
    }
}

/// Whether a line holds options and no requirement.
pub(crate) fn is_option(line: &str) -> bool {
    line.trim_start().starts_with('-')
}

/// Strips options such as `--hash` that follow a requirement.
fn without_options(text: &str) -> &str {
    let starts = text.match_indices(" -").chain(text.match_indices("\t-")).map(|(at, _)| at);
    let end = starts.min().unwrap_or(text.len());
    text.get(..end).unwrap_or(text)
}

/// A variable that pip expands: `${TOKEN}`, in upper case only.
fn variable_in(text: &str) -> Option<&str> {
    let start = text.find("${")?;
    let (name, _) = text.get(start + 2..)?.split_once('}')?;
    let is_name = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    (!name.is_empty() && name.bytes().all(is_name)).then_some(name)
}

fn logical_lines(text: &str) -> Vec<Logical> {
    let mut logical = Vec::new();
    let mut open: Option<Logical> = None;
    let mut at = 0;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let start = at;
        at += line.len();
        let line = line.strip_suffix('\n').map_or(line, |line| line.strip_suffix('\r').unwrap_or(line));
        let is_comment = line.trim_start().starts_with('#');
        let current = open.get_or_insert_with(|| {
            let blanks = line.len() - line.trim_start().len();
            let column = line.chars().take_while(|ch| ch.is_whitespace()).count() + 1;
            let span = Span { line: index + 1, column, start: start + blanks, end: start + line.len() };
            Logical { span, text: String::new() }
        });
        current.span.end = start + line.len();
        if let Some(part) = line.strip_suffix('\\').filter(|_| !is_comment) {
            current.text.push_str(part);
        } else {
            // A comment ends the line; the space separates it from the text before it.
            current.text.push_str(if is_comment { " " } else { "" });
            current.text.push_str(line);
            logical.extend(open.take());
        }
    }
    logical.extend(open);
    for Logical { text, .. } in &mut logical {
        let comment = text.match_indices('#').map(|(at, _)| at).find(|at| {
            text.get(..*at).is_some_and(|before| before.is_empty() || before.ends_with(char::is_whitespace))
        });
        text.truncate(comment.unwrap_or(text.len()));
    }
    logical.retain(|logical| !logical.text.trim().is_empty());
    logical
}
