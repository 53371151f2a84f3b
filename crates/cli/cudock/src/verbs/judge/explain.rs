//! `cudock explain`: what an error message, a log or a finding code means, and how to fix it.

use std::fs::File;
use std::io::{IsTerminal, Read};
use std::path::Path;

use cudock_cli::ExplainArgs;
use cudock_explain::{
    Catalog, Hit, LogReport, ScanError, SmiTable, is_finding_code, is_like_a_path, xid_message,
};
use cudock_facts::Facts;
use cudock_facts::tables::{CudaError, FindingPage, Message};
use schemars::JsonSchema;
use serde::Serialize;

use crate::failure::{Failure, Outcome, chain};
use crate::output::{self, BLUE, BOLD, DIM, Format, TableUsed, line, styled};

/// The number of messages shown without --all.
const SHOWN: usize = 5;

/// The number of bytes between progress updates.
const PROGRESS_STEP: u64 = 256 << 20;

/// The report as JSON, which depends on what is explained.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum ExplainReport<'a> {
    Log(JsonLog<'a>),
    Finding(JsonPage<'a>),
    CudaError(JsonCudaError<'a>),
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct JsonLog<'a> {
    schema: u8,
    subject: String,
    bytes: u64,
    lines: u64,
    messages: Vec<JsonMessage<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nvidia_smi: Option<&'a SmiTable>,
    tables: &'a [TableUsed],
}

#[derive(Serialize, JsonSchema)]
struct JsonMessage<'a> {
    line: u64,
    count: u64,
    excerpt: &'a str,
    #[serde(flatten)]
    message: Message,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct JsonPage<'a> {
    schema: u8,
    finding: &'a FindingPage,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct JsonCudaError<'a> {
    schema: u8,
    cuda_error: &'a CudaError,
    messages: Vec<&'a Message>,
}

pub(crate) fn run(
    facts: &Facts,
    args: &ExplainArgs,
    format: Format,
    is_verbose: bool,
) -> Result<Outcome, Failure> {
    let what = args.what.join(" ");
    let what = what.trim();
    if is_finding_code(what) {
        return finding(facts, what, is_verbose, format);
    }
    if let Some(error) = facts.messages().cuda_error(what).filter(|_| !args.text) {
        cuda_error(facts, error, is_verbose, format);
        return Ok(Outcome::Yes);
    }
    let catalog = Catalog::new(facts.messages()).map_err(|error| {
        Failure::input(chain(&error)).hint("correct messages.toml in the directory of --facts")
    })?;
    let (subject, report) = if what.is_empty() && args.what.is_empty() || what == "-" {
        if std::io::stdin().is_terminal() && what != "-" {
            return Err(Failure::input("nothing to explain")
                .hint("cudock explain FILE, cudock explain 'MESSAGE', or pipe a log in: docker logs NAME 2>&1 | cudock explain"));
        }
        ("standard input".to_owned(), scan(&catalog, std::io::stdin().lock(), "standard input")?)
    } else if let Some(path) = file(args, what)? {
        let log = File::open(path).map_err(|error| Failure::input(format!("cannot read {what}: {error}")))?;
        (what.to_owned(), scan(&catalog, log, what)?)
    } else if let Some(message) = xid_message(what) {
        (what.to_owned(), catalog.explain(&message))
    } else {
        ("that text".to_owned(), catalog.explain(what))
    };
    // CUDA's short texts are recognized in logs by their context; alone they are looked up directly.
    let alone = facts.messages().cuda_error_with_text(what).filter(|_| report.hits.is_empty());
    if let Some(error) = alone {
        cuda_error(facts, error, is_verbose, format);
        return Ok(Outcome::Yes);
    }
    if report.bytes == 0 {
        return Err(Failure::input(format!("{subject} is empty"))
            .hint("pass the log of the program that failed, with its standard error"));
    }
    let tables = output::tables_used(facts, &["messages"]);
    match format {
        Format::Json => print_json(facts, &subject, &report, &tables),
        Format::Text => print_text(facts, &subject, &report, args.all, is_verbose),
    }
    output::warn_if_stale(&tables);
    Ok(if report.hits.is_empty() && report.smi.is_none() { Outcome::No } else { Outcome::Yes })
}

/// The file that the arguments name, if they name one: a file that exists, or a path that looks like one.
fn file<'a>(args: &ExplainArgs, what: &'a str) -> Result<Option<&'a Path>, Failure> {
    if args.text || args.what.len() != 1 {
        return Ok(None);
    }
    let path = Path::new(what);
    if path.is_dir() {
        return Err(Failure::input(format!("{what} is a directory")).hint("pass a log file"));
    }
    if path.exists() {
        return Ok(Some(path));
    }
    if is_like_a_path(what) {
        return Err(Failure::input(format!("{what}: not found")).hint("pass --text if it is a message"));
    }
    Ok(None)
}

fn scan<'a>(catalog: &Catalog<'a>, log: impl Read, name: &str) -> Result<LogReport<'a>, Failure> {
    let show = std::io::stderr().is_terminal();
    let mut reported = 0;
    let report = catalog.scan(log, |bytes| {
        if show && bytes - reported >= PROGRESS_STEP {
            reported = bytes;
            anstream::eprint!("\rread {} MB", bytes / 1_000_000);
        }
    });
    if reported > 0 {
        anstream::eprint!("\r\x1b[K");
    }
    report.map_err(|error| match error {
        ScanError::NotText(kind) => {
            Failure::input(format!("{name} is {}, not a log", kind.what())).hint(kind.hint())
        }
        ScanError::Io(error) => Failure::outside(format!("cannot read {name}: {error}")),
    })
}

fn finding(facts: &Facts, code: &str, verbose: bool, format: Format) -> Result<Outcome, Failure> {
    let pages = facts.findings();
    let page = pages.get(code).ok_or_else(|| {
        let codes = pages.finding.iter().map(|page| page.code.as_str());
        let near = cudock_base::text::suggest::nearest(code, codes);
        Failure::input(format!("unknown finding {}", code.to_ascii_uppercase())).near(&near)
    })?;
    match format {
        Format::Json => output::json(&ExplainReport::Finding(JsonPage { schema: 1, finding: page })),
        Format::Text => {
            line(styled(BOLD, &format!("{}: {}", page.code, page.title)));
            line("");
            line(output::wrapped("", &page.why));
            line("");
            print_fixes(&page.fix);
            print_sources(pages.table.resolve(&page.source), verbose);
        }
    }
    Ok(Outcome::Yes)
}

fn cuda_error(facts: &Facts, error: &CudaError, verbose: bool, format: Format) {
    let of_code = |message: &&Message| message.cuda_code == Some(error.code);
    let messages: Vec<&Message> = facts.messages().message.iter().filter(of_code).collect();
    if format == Format::Json {
        output::json(&ExplainReport::CudaError(JsonCudaError { schema: 1, cuda_error: error, messages }));
        return;
    }
    line(styled(BOLD, &format!("CUDA error {}: {}", error.code, error.name)));
    line("");
    line(output::wrapped("", &error.text));
    for text in error.meaning.iter().chain(&error.since.as_ref().map(|since| format!("since {since}"))) {
        line(output::wrapped("", text));
    }
    for message in messages {
        line("");
        // A message that was derived from this row only adds its fix.
        if message.id == format!("cuda-{}", error.code) {
            print_fixes(&message.fix);
            print_sources(facts.messages().table.resolve(&message.source), verbose);
        } else {
            print_message(facts, message, &message.fix, verbose);
        }
    }
}

fn print_json(facts: &Facts, subject: &str, report: &LogReport<'_>, tables: &[TableUsed]) {
    let messages = report.hits.iter().map(|hit| JsonMessage {
        line: hit.line,
        count: hit.count,
        excerpt: &hit.excerpt,
        message: Message { fix: cudock_explain::fixes(facts, hit), ..hit.message.clone() },
    });
    output::json(&ExplainReport::Log(JsonLog {
        schema: 1,
        subject: subject.to_owned(),
        bytes: report.bytes,
        lines: report.lines,
        messages: messages.collect(),
        nvidia_smi: report.smi.as_ref(),
        tables,
    }));
}

fn print_text(facts: &Facts, subject: &str, report: &LogReport<'_>, is_all: bool, is_verbose: bool) {
    if let (true, Some(table)) = (report.hits.is_empty(), &report.smi) {
        line(styled(BOLD, "nvidia-smi table, no error in it"));
        for statement in table.statements(facts) {
            line(output::wrapped("  ", &statement));
        }
        return;
    }
    if report.hits.is_empty() {
        let size = if report.lines > 1 { format!(" ({} lines)", report.lines) } else { String::new() };
        line(format!("no known message in {subject}{size}"));
        line(output::wrapped(
            "  ",
            "The catalog has the failures of drivers, container toolkits, images, frameworks and Azure; a program's own errors are \
             not in it. `cudock doctor` checks this machine.",
        ));
        return;
    }
    let shown = if is_all { report.hits.len() } else { SHOWN };
    for (index, hit) in report.hits.iter().take(shown).enumerate() {
        if index > 0 {
            line("");
        }
        print_hit(facts, hit, report.lines > 1, is_verbose);
    }
    let more = report.hits.len().saturating_sub(shown);
    if more > 0 {
        let ids: Vec<&str> = report.hits.iter().skip(shown).map(|hit| hit.message.id.as_str()).collect();
        line(format!("\n{more} more, with --all: {}", ids.join(", ")));
    }
}

fn print_hit(facts: &Facts, hit: &Hit<'_>, with_line: bool, verbose: bool) {
    if with_line {
        let times = if hit.count > 1 { format!(", {} times", hit.count) } else { String::new() };
        line(styled(BLUE, &format!("line {}{times}:", hit.line)));
        line(styled(DIM, &output::wrapped("  ", &hit.excerpt)));
    }
    print_message(facts, hit.message, &cudock_explain::fixes(facts, hit), verbose);
}

fn print_message(facts: &Facts, message: &Message, fixes: &[String], verbose: bool) {
    line(styled(BOLD, &heading(message)));
    line("");
    line(output::wrapped("", &message.cause));
    if let Some(note) = &message.note {
        line(output::wrapped("", note));
    }
    line("");
    print_fixes(fixes);
    if let Some(probe) = &message.probe {
        line(output::wrapped("Check: ", probe));
    }
    if verbose {
        let layer = serde_json::to_value(message.layer).ok();
        let layer = layer.as_ref().and_then(serde_json::Value::as_str).unwrap_or_default();
        let symptom = if message.symptom { ", a symptom of another failure" } else { "" };
        line(styled(DIM, &format!("Id:    {} ({layer}{symptom})", message.id)));
    }
    print_sources(facts.messages().table.resolve(&message.source), verbose);
}

/// `CUDA error 209: the program has no code for this GPU`, or the title alone if it has no number.
fn heading(message: &Message) -> String {
    let Some(code) = message.cuda_code else { return message.title.clone() };
    let title = message.title.trim_end_matches(&format!(" (error {code})"));
    let mut chars = title.chars();
    match (chars.next(), chars.next()) {
        // An acronym keeps its upper case.
        (Some(first), Some(second)) if second.is_lowercase() || second == ' ' => {
            let rest = title.get(first.len_utf8()..).unwrap_or_default();
            format!("CUDA error {code}: {}{rest}", first.to_lowercase())
        }
        _ => format!("CUDA error {code}: {title}"),
    }
}

fn print_fixes(fixes: &[String]) {
    for (index, fix) in fixes.iter().enumerate() {
        line(output::wrapped(if index == 0 { "Fix:   " } else { "       " }, fix));
    }
}

fn print_sources<'a>(mut sources: impl Iterator<Item = &'a str>, verbose: bool) {
    if verbose {
        for source in sources {
            line(styled(DIM, &format!("Source: {source}")));
        }
    } else if sources.next().is_some() {
        line(styled(DIM, "Sources: --verbose"));
    }
}
