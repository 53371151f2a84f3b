//! What is printed: data on standard output, talk on standard error, meaning never by colour alone.

use std::io::{ErrorKind, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use anstyle::{AnsiColor, Style};
use cudock_facts::version::Date;
use cudock_facts::{Facts, STALE_AFTER_DAYS};
use serde::Serialize;

use crate::env;

/// How reports are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// For programs: one object.
    Json,
}

/// How findings are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FindingFormat {
    /// For people.
    Text,
    /// For programs: one object.
    Json,
    /// For code scanners: SARIF 2.1.0.
    Sarif,
    /// For GitHub Actions: workflow annotations.
    Github,
}

/// How diagnoses are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DoctorFormat {
    /// For people.
    Text,
    /// For programs: one object.
    Json,
    /// For GitHub Actions: workflow annotations.
    Github,
}

/// How plans are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlanFormat {
    /// For people.
    Text,
    /// For programs: one object.
    Json,
    /// For spreadsheets: the placements.
    Csv,
}

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const GREEN: Style = AnsiColor::Green.on_default();
pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default();
pub(crate) const RED: Style = AnsiColor::Red.on_default().bold();
pub(crate) const BLUE: Style = AnsiColor::Blue.on_default();

/// Puts a style around a text.
pub(crate) fn styled(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// How wide text may be: the terminal's width within reason, or 100 columns in a pipe.
pub(crate) fn width() -> usize {
    let terminal = std::io::stdout().is_terminal().then(terminal_size::terminal_size).flatten();
    terminal.map_or(100, |(width, _)| usize::from(width.0).clamp(60, 120))
}

/// Text broken into lines, the first behind `first`, the others behind as many blanks.
pub(crate) fn wrapped(first: &str, text: &str) -> String {
    wrapped_within(width(), first, text)
}

/// The same for lines of `width` columns.
pub(crate) fn wrapped_within(width: usize, first: &str, text: &str) -> String {
    let rest = " ".repeat(first.chars().count());
    let options = textwrap::Options::new(width)
        .initial_indent(first)
        .subsequent_indent(&rest)
        .break_words(false)
        // Names of files and packages have dashes that are no hyphens.
        .word_splitter(textwrap::WordSplitter::NoHyphenation)
        .word_separator(textwrap::WordSeparator::AsciiSpace);
    textwrap::fill(text, options)
}

/// Whether the reader of standard output has gone.
static READER_GONE: AtomicBool = AtomicBool::new(false);

/// Prints a line. Once the reader has gone (`| head`), lines are dropped and the verb runs to its end, so that the
/// exit code is that of the answer.
pub(crate) fn line(text: impl AsRef<str>) {
    if reader_gone() {
        return;
    }
    let mut out = anstream::stdout();
    match writeln!(out, "{}", text.as_ref()) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => READER_GONE.store(true, Ordering::Relaxed),
        Err(error) => {
            anstream::eprintln!("{}: cannot write to standard output: {error}", styled(RED, "error"));
            std::process::exit(3);
        }
    }
}

fn reader_gone() -> bool {
    READER_GONE.load(Ordering::Relaxed)
}

/// Prints one object.
pub(crate) fn json(value: &impl Serialize) {
    match serde_json::to_string_pretty(value) {
        Ok(text) => line(text),
        Err(error) => line(format!("{{\"schema\":1,\"error\":\"{error}\"}}")),
    }
}

/// The day the report is for.
pub(crate) fn today() -> Date {
    std::env::var(env::TODAY).ok().and_then(|date| date.parse().ok()).unwrap_or_else(Date::today)
}

/// A table a report rests on, for its JSON.
#[derive(Debug, Serialize)]
pub(crate) struct TableUsed {
    name: &'static str,
    as_of: Date,
    stale: bool,
}

/// The tables a report rests on.
pub(crate) fn tables_used(facts: &Facts, names: &[&str]) -> Vec<TableUsed> {
    let day = today();
    names
        .iter()
        .filter_map(|name| facts.table(name))
        .map(|table| TableUsed { name: table.name, as_of: table.as_of, stale: table.is_stale(day) })
        .collect()
}

/// Says once, on standard error, which of the tables a report rests on are stale.
pub(crate) fn warn_if_stale(tables: &[TableUsed]) {
    let stale: Vec<String> = tables
        .iter()
        .filter(|table| table.stale)
        .map(|table| format!("{} ({})", table.name, table.as_of))
        .collect();
    if !stale.is_empty() {
        anstream::eprintln!(
            "{}: tables older than {STALE_AFTER_DAYS} days: {}\n{}: lay newer ones over them with --facts DIR, or update cudock",
            styled(YELLOW, "warning"),
            stale.join(", "),
            styled(BLUE, "hint"),
        );
    }
}
