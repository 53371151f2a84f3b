//! Prints reports to standard output and messages to standard error. Color never carries meaning alone.

use std::convert::Infallible;
use std::fmt::Display;
use std::io::{ErrorKind, IsTerminal, Write};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use cudock_base::text::table::TextTable;
use cudock_facts::formats::{ReportedFinding, ServiceFormat};
use cudock_facts::version::Date;
use cudock_facts::{Facts, STALE_AFTER_DAYS};
use schemars::JsonSchema;
use serde::Serialize;

use cudock_cli::env;

/// How reports are written: in every verb, or in another way that only some have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format<Other = Infallible> {
    /// Text for people.
    Text,
    /// One JSON object, for programs.
    Json,
    Other(Other),
}

/// How findings are written.
pub(crate) type FindingFormat = Format<ServiceFormat>;

/// How diagnoses are written.
pub(crate) type DoctorFormat = Format<Annotations>;

/// For GitHub Actions: workflow annotations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Annotations;

/// How plans and sweeps are written.
pub(crate) type PlanFormat = Format<Csv>;

/// CSV for spreadsheets: the placements or trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Csv;

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const GREEN: Style = AnsiColor::Green.on_default();
pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default();
pub(crate) const RED: Style = AnsiColor::Red.on_default().bold();
pub(crate) const BLUE: Style = AnsiColor::Blue.on_default();

/// Applies a style to a text.
pub(crate) fn styled(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// The width of text: that of the terminal within limits, or 100 columns in a pipe.
pub(crate) fn width() -> usize {
    let terminal = std::io::stdout().is_terminal().then(terminal_size::terminal_size).flatten();
    terminal.map_or(100, |(width, _)| usize::from(width.0).clamp(60, 120))
}

/// Wraps a text; the first line starts with `first`, the others are indented as far.
pub(crate) fn wrapped(first: &str, text: &str) -> String {
    wrapped_within(width(), first, text)
}

/// Wraps a text to `width` columns.
pub(crate) fn wrapped_within(width: usize, first: &str, text: &str) -> String {
    if first.len() + text.len() <= width && !text.contains('\n') {
        return format!("{first}{text}");
    }
    let rest = " ".repeat(first.chars().count());
    let options = textwrap::Options::new(width)
        .initial_indent(first)
        .subsequent_indent(&rest)
        .break_words(false)
        // Names of files and packages must not be broken at their dashes.
        .word_splitter(textwrap::WordSplitter::NoHyphenation)
        .word_separator(textwrap::WordSeparator::AsciiSpace);
    textwrap::fill(text, options)
}

/// Whether `--quiet` was given.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Hides progress and notes from here on.
pub(crate) fn set_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

fn quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Reports progress in a line on standard error, unless `--quiet` was given.
pub(crate) fn status(text: impl AsRef<str>) {
    if !quiet() {
        anstream::eprintln!("{}", text.as_ref());
    }
}

/// Whether progress is one line that is drawn again, not a line for each step.
pub(crate) fn redraws() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("CI").is_none()
}

/// Replaces the line on the terminal.
pub(crate) fn redraw(text: &str) {
    if !quiet() {
        let _ = std::io::stderr().write_all(format!("\r\x1b[K{text}").as_bytes());
    }
}

/// Prints a note, unless `--quiet` was given.
pub(crate) fn note(text: impl Display) {
    status(format!("{}: {text}", styled(BLUE, "note")));
}

/// Prints a warning.
pub(crate) fn warning(text: impl Display) {
    anstream::eprintln!("{}: {text}", styled(YELLOW, "warning"));
}

/// Whether the reader of standard output closed it.
static READER_GONE: AtomicBool = AtomicBool::new(false);

/// Whether standard output gets colors. To find out takes longer than to print a line.
static COLORS: LazyLock<ColorChoice> = LazyLock::new(|| AutoStream::choice(&std::io::stdout()));

/// Prints a line. If the reader closed the pipe (`| head`), lines are dropped and the verb completes, so that its exit code
/// is right.
pub(crate) fn line(text: impl AsRef<str>) {
    if reader_gone() {
        return;
    }
    let mut out = AutoStream::new(std::io::stdout().lock(), *COLORS);
    match writeln!(out, "{}", text.as_ref()) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => READER_GONE.store(true, Ordering::Relaxed),
        Err(error) => {
            anstream::eprintln!("{}: cannot write to standard output: {error}", styled(RED, "error"));
            std::process::exit(3);
        }
    }
}

/// Prints a table with its titles in bold.
pub(crate) fn table(table: &TextTable) {
    for (index, text) in table.lines().iter().enumerate() {
        line(if index == 0 { styled(BOLD, text) } else { text.clone() });
    }
}

/// Prints a unified diff.
pub(crate) fn diff(diff: &str) {
    for text in diff.lines() {
        let style = match text.as_bytes().first() {
            Some(b'+') => Some(GREEN),
            Some(b'-') => Some(RED),
            _ => None,
        };
        line(style.map_or_else(|| text.to_owned(), |style| styled(style, text)));
    }
}

fn reader_gone() -> bool {
    READER_GONE.load(Ordering::Relaxed)
}

/// Prints findings for another service.
pub(crate) fn findings(facts: &Facts, format: ServiceFormat, findings: &[ReportedFinding]) {
    let text = cudock_facts::formats::render(facts, format, findings);
    if !text.is_empty() {
        line(text);
    }
}

/// Prints one object.
pub(crate) fn json(value: &impl Serialize) {
    match serde_json::to_string_pretty(value) {
        Ok(text) => line(text),
        Err(error) => line(format!("{{\"schema\":1,\"error\":\"{error}\"}}")),
    }
}

/// The date of the report.
pub(crate) fn today() -> Date {
    std::env::var(env::TODAY).ok().and_then(|date| date.parse().ok()).unwrap_or_else(Date::today)
}

/// A fact table that a report is based on.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TableUsed {
    name: &'static str,
    as_of: Date,
    stale: bool,
}

/// The fact tables that a report is based on.
pub(crate) fn tables_used(facts: &Facts, names: &[&str]) -> Vec<TableUsed> {
    let day = today();
    names
        .iter()
        .filter_map(|name| facts.table(name))
        .map(|table| TableUsed { name: table.name, as_of: table.as_of, stale: table.is_stale(day) })
        .collect()
}

/// Warns about stale tables on standard error.
pub(crate) fn warn_if_stale(tables: &[TableUsed]) {
    let stale: Vec<String> = tables
        .iter()
        .filter(|table| table.stale)
        .map(|table| format!("{} ({})", table.name, table.as_of))
        .collect();
    if !stale.is_empty() {
        warning(format!(
            "tables older than {STALE_AFTER_DAYS} days: {}\n{}: pass newer tables with --facts DIR, or update cudock",
            stale.join(", "),
            styled(BLUE, "hint"),
        ));
    }
}

/// A report with the version of its format.
#[derive(Serialize, JsonSchema)]
pub(crate) struct JsonReport<T> {
    schema: u32,
    #[serde(flatten)]
    rest: T,
}

/// Prints a report. Keys after `schema` are in alphabetical order.
pub(crate) fn report(report: &impl Serialize) {
    json(&JsonReport::<serde_json::Value> {
        schema: 1,
        rest: serde_json::to_value(report).unwrap_or_default(),
    });
}
