//! pip's requirements files.

use super::pip::{self, Indexes};
use super::requirement::{Mistake, Place, declare};
use super::{Declared, Fault, Machine, excerpt};

/// A line with those that continue it, without comments.
struct Logical {
    line: usize,
    text: String,
}

pub(super) fn read(text: &str, machine: Machine) -> Result<Declared, Fault> {
    let mut declared = Declared::default();
    let lines: Vec<Logical> = logical_lines(text);
    let mut options = Vec::new();
    for Logical { line, text } in lines.iter().filter(|logical| is_option(&logical.text)) {
        let words = pip::split(text);
        let known_options = pip::arguments(&words);
        for (_, note) in known_options.notes {
            declared.note(*line, note);
        }
        options.extend(words);
    }
    // Options hold for the whole file, whichever line they are on.
    let indexes = pip::arguments(&options).indexes;
    for logical in lines.iter().filter(|logical| !is_option(&logical.text)) {
        read_requirement(&mut declared, &logical.text, logical.line, &indexes, machine).map_err(
            |mistake| {
                let before = logical.text.get(..mistake.at).unwrap_or(&logical.text);
                Fault::new(logical.line, before.chars().count() + 1, mistake.message)
            },
        )?;
    }
    if let Some(conflict) = indexes.conflict() {
        declared.note(1, conflict);
    }
    declared.notes.sort_by_key(|note| note.line);
    Ok(declared)
}

/// Reads one line that is not an option; the list under `pip:` of a conda environment has such lines, too.
pub(super) fn read_requirement(
    declared: &mut Declared,
    text: &str,
    line: usize,
    indexes: &Indexes,
    machine: Machine,
) -> Result<(), Mistake> {
    let requirement = without_options(text);
    if let Some(variable) = variable_in(requirement) {
        declared.note(line, format!("{} depends on {variable}", excerpt(requirement.trim())));
        return Ok(());
    }
    declare(declared, requirement, Place { line, machine, group: None, tag: indexes.tag() })
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
    for (index, line) in text.lines().enumerate() {
        let is_comment = line.trim_start().starts_with('#');
        let current = open.get_or_insert_with(|| Logical { line: index + 1, text: String::new() });
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
