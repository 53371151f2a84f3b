//! pip's requirements files.

use std::cell::Cell;

use cudock_base::{Arch, Span};

use super::files::{Files, join, parent};
use super::pip::{self, Indexes, Word};
use super::requirement::{Context, Mistake, declare};
use super::{Declared, DeclaredPackage, Fault, excerpt, tag};

/// Files that include files that include files.
const DEEPEST: usize = 6;
/// More files than a project has, however they include each other.
const MOST_FILES: usize = 64;

/// Where a file stands among others, and the indexes of the command that installs it.
#[derive(Clone, Copy)]
pub(super) struct Beside<'a> {
    path: &'a str,
    files: &'a dyn Files,
    indexes: Option<&'a Indexes>,
    /// How many files were included so far, by whomever.
    included: &'a Cell<usize>,
    depth: usize,
}

impl<'a> Beside<'a> {
    pub(super) fn new(path: &'a str, files: &'a dyn Files, included: &'a Cell<usize>) -> Self {
        Self { path, files, indexes: None, included, depth: 0 }
    }

    pub(super) fn with_indexes(self, indexes: &'a Indexes) -> Self {
        Self { indexes: Some(indexes), ..self }
    }
}

/// A line with those that continue it, without comments.
struct Logical {
    /// From its first character to the end of its last line.
    span: Span,
    text: String,
}

pub(super) fn read_in(text: &str, arch: Arch, beside: Beside<'_>) -> Result<Declared, Fault> {
    let mut declared = Declared::default();
    let lines: Vec<Logical> = logical_lines(text);
    let mut options = Vec::new();
    for Logical { span, text } in lines.iter().filter(|logical| is_option(&logical.text)) {
        let words = pip::split(text);
        let known_options = pip::arguments(&words);
        for (_, note) in known_options.notes {
            declared.note(*span, note);
        }
        options.extend(words);
    }
    // Options hold for the whole file, whichever line they are on.
    let indexes = pip::arguments(&options).indexes;
    let indexes = beside.indexes.map_or_else(|| indexes.clone(), |outer| indexes.clone().or(outer));
    for Logical { span, text } in lines.iter().filter(|logical| is_option(&logical.text)) {
        let found = pip::arguments(&pip::split(text));
        for word in &found.editable {
            declared.note(*span, pip::from_source(&word.text));
        }
        for file in &found.files {
            include(&mut declared, file, *span, arch, beside, &indexes);
        }
    }
    for logical in lines.iter().filter(|logical| !is_option(&logical.text)) {
        read_requirement(&mut declared, &logical.text, logical.span, &indexes, arch).map_err(|mistake| {
            let before = logical.text.get(..mistake.at).unwrap_or(&logical.text);
            Fault::new(logical.span.line, before.chars().count() + 1, mistake.message)
        })?;
    }
    for Logical { span, text } in lines.iter().filter(|logical| is_option(&logical.text)) {
        for file in &pip::arguments(&pip::split(text)).constraints {
            let path = join(parent(beside.path), &file.text);
            match beside.files.text(&path) {
                Some(text) => constrain(&mut declared.packages, &text, arch),
                None => declared.note(*span, pip::not_followed(&file.text)),
            }
        }
    }
    if let Some(conflict) = indexes.conflict() {
        declared.note(Span::START, conflict);
    }
    declared.notes.sort_by_key(|note| note.span.line);
    Ok(declared)
}

/// Reads a file that another names, or notes that it cannot be read.
fn include(
    declared: &mut Declared,
    file: &Word,
    span: Span,
    arch: Arch,
    beside: Beside<'_>,
    indexes: &Indexes,
) {
    let path = join(parent(beside.path), &file.text);
    let is_bounded = beside.depth < DEEPEST && beside.included.get() < MOST_FILES && path != beside.path;
    let text = if is_bounded { beside.files.text(&path) } else { None };
    beside.included.set(beside.included.get() + 1);
    let (files, included) = (beside.files, beside.included);
    let inner = Beside { path: &path, files, indexes: Some(indexes), included, depth: beside.depth + 1 };
    match text.and_then(|text| read_in(&text, arch, inner).ok()) {
        Some(included) => declared.absorb(included, &path),
        None => declared.note(span, pip::not_followed(&file.text)),
    }
}

/// Pins packages whose version is open to the version a file of constraints names.
pub(super) fn constrain(packages: &mut [DeclaredPackage], text: &str, arch: Arch) {
    let included = Cell::new(MOST_FILES);
    let beside = Beside::new("", &super::NoFiles, &included);
    let Ok(constraints) = read_in(text, arch, beside) else { return };
    pin(packages, &constraints.packages);
}

/// Pins packages whose version is open to versions known otherwise.
pub(super) fn pin(packages: &mut [DeclaredPackage], known: &[DeclaredPackage]) {
    for package in packages.iter_mut().filter(|package| package.exact.is_none()) {
        let pinned = known.iter().find(|known| known.name == package.name && known.exact.is_some());
        if let Some(pinned) = pinned {
            package.exact.clone_from(&pinned.exact);
            package.tag = pinned.tag.clone().or_else(|| package.tag.clone());
        }
    }
}

/// Reads one line that is not an option; the list under `pip:` of a conda environment has such lines, too.
pub(super) fn read_requirement(
    declared: &mut Declared,
    text: &str,
    span: Span,
    indexes: &Indexes,
    arch: Arch,
) -> Result<(), Mistake> {
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

/// Marks packages that can come from one index alone.
pub(super) fn mark_exclusive(declared: &mut Declared, from: usize, indexes: &Indexes) {
    for package in declared.packages.iter_mut().skip(from) {
        package.exclusive = indexes.is_exclusive() && tag::is_built_per_index(&package.name);
    }
}

/// Whether a line holds options and no requirement.
pub(super) fn is_option(line: &str) -> bool {
    line.trim_start().starts_with('-')
}

/// A requirement may be followed by options of its own, such as `--hash`.
fn without_options(text: &str) -> &str {
    let starts = text.match_indices(" -").chain(text.match_indices("\t-")).map(|(at, _)| at);
    let end = starts.min().unwrap_or(text.len());
    text.get(..end).unwrap_or(text)
}

/// A variable that pip fills in: `${TOKEN}`, in capitals only.
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
            let column = line.chars().take_while(|letter| letter.is_whitespace()).count() + 1;
            let span = Span { line: index + 1, column, start: start + blanks, end: start + line.len() };
            Logical { span, text: String::new() }
        });
        current.span.end = start + line.len();
        if let Some(part) = line.strip_suffix('\\').filter(|_| !is_comment) {
            current.text.push_str(part);
        } else {
            // A comment ends what it stands in; the space keeps it from sticking to the word before it.
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
