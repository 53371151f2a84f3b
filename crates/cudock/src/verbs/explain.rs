use std::fs::File;
use std::io::{IsTerminal, Read};
use std::path::Path;

use cudock_explain::{
    Catalogue, Hit, Report, ScanError, SmiTable, is_finding_code, is_like_a_path, xid_message,
};
use cudock_facts::Facts;
use cudock_facts::tables::{CudaError, FindingPage, Message};
use serde::Serialize;

use crate::cli::ExplainArgs;
use crate::failure::{Failure, Outcome, chain};
use crate::output::{self, BLUE, BOLD, DIM, Format, TableUsed, line, styled};

/// More than this is a list, not an answer.
const MOST: usize = 5;

/// From here on reading a log is worth telling about.
const LONG: u64 = 256 << 20;

#[derive(Serialize)]
struct JsonReport<'a> {
    schema: u8,
    subject: String,
    bytes: u64,
    lines: u64,
    messages: Vec<JsonMessage<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nvidia_smi: Option<&'a SmiTable>,
    tables: &'a [TableUsed],
}

#[derive(Serialize)]
struct JsonMessage<'a> {
    line: u64,
    count: u64,
    excerpt: &'a str,
    #[serde(flatten)]
    message: Message,
}

#[derive(Serialize)]
struct JsonPage<'a> {
    schema: u8,
    finding: &'a FindingPage,
}

#[derive(Serialize)]
struct JsonCudaError<'a> {
    schema: u8,
    cuda_error: &'a CudaError,
    messages: Vec<&'a Message>,
}

pub(super) fn run(facts: &Facts, words: &ExplainArgs, format: Format) -> Result<Outcome, Failure> {
    let what = words.what.join(" ");
    let what = what.trim();
    if is_finding_code(what) {
        return finding(facts, what, format);
    }
    if let Some(error) = facts.messages().cuda_error(what).filter(|_| !words.text) {
        cuda_error(facts, error, format);
        return Ok(Outcome::Yes);
    }
    let catalogue = Catalogue::new(facts.messages()).map_err(|error| {
        Failure::input(chain(&error)).hint("correct messages.toml in the directory of --facts")
    })?;
    let (subject, report) = if what.is_empty() && words.what.is_empty() || what == "-" {
        if std::io::stdin().is_terminal() && what != "-" {
            return Err(Failure::input("nothing to explain")
                .hint("cudock explain FILE, cudock explain 'MESSAGE', or pipe a log in: docker logs NAME 2>&1 | cudock explain"));
        }
        ("standard input".to_owned(), scan(&catalogue, std::io::stdin().lock(), "standard input")?)
    } else if let Some(path) = file(words, what)? {
        let log = File::open(path).map_err(|error| Failure::input(format!("cannot read {what}: {error}")))?;
        (what.to_owned(), scan(&catalogue, log, what)?)
    } else if let Some(message) = xid_message(what) {
        (what.to_owned(), catalogue.explain(&message))
    } else {
        ("that text".to_owned(), catalogue.explain(what))
    };
    // CUDA's short texts are told in logs by their surroundings; a text that is nothing else needs none.
    let alone = facts.messages().cuda_error_with_text(what).filter(|_| report.hits.is_empty());
    if let Some(error) = alone {
        cuda_error(facts, error, format);
        return Ok(Outcome::Yes);
    }
    if report.bytes == 0 {
        return Err(Failure::input(format!("{subject} is empty"))
            .hint("pass the log of the program that failed, with its standard error"));
    }
    let tables = output::tables_used(facts, &["messages"]);
    match format {
        Format::Json => print_json(facts, &subject, &report, &tables),
        Format::Text => print_text(facts, &subject, &report, words.all),
    }
    output::warn_if_stale(&tables);
    Ok(if report.hits.is_empty() && report.smi.is_none() { Outcome::No } else { Outcome::Yes })
}

/// Whether the words name a file: one that is there, or one that plainly should be.
fn file<'a>(words: &ExplainArgs, what: &'a str) -> Result<Option<&'a Path>, Failure> {
    if words.text || words.what.len() != 1 {
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
        return Err(Failure::input(format!("there is no file {what}")).hint("pass --text if it is a message"));
    }
    Ok(None)
}

fn scan<'a>(catalogue: &Catalogue<'a>, log: impl Read, name: &str) -> Result<Report<'a>, Failure> {
    let show = std::io::stderr().is_terminal();
    let mut told = 0;
    let report = catalogue.scan(log, |bytes| {
        if show && bytes - told >= LONG {
            told = bytes;
            anstream::eprint!("\rread {} MB", bytes / 1_000_000);
        }
    });
    if told > 0 {
        anstream::eprint!("\r\x1b[K");
    }
    report.map_err(|error| match error {
        ScanError::NotText(kind) => {
            Failure::input(format!("{name} is {}, not a log", kind.what())).hint(kind.hint())
        }
        ScanError::Io(error) => Failure::outside(format!("reading {name} broke off: {error}")),
    })
}

fn finding(facts: &Facts, code: &str, format: Format) -> Result<Outcome, Failure> {
    let pages = facts.findings();
    let page = pages.get(code).ok_or_else(|| {
        let codes = pages.finding.iter().map(|page| page.code.as_str());
        let near = cudock_base::suggest::nearest(code, codes);
        Failure::input(format!("there is no finding {}", code.to_ascii_uppercase())).near(&near)
    })?;
    match format {
        Format::Json => output::json(&JsonPage { schema: 1, finding: page }),
        Format::Text => {
            line(styled(BOLD, &format!("{}: {}", page.code, page.title)));
            line(output::wrapped("  ", &page.why));
            print_fixes(&page.fix);
            print_sources(pages.table.resolve(&page.source));
        }
    }
    Ok(Outcome::Yes)
}

fn cuda_error(facts: &Facts, error: &CudaError, format: Format) {
    let of_code = |message: &&Message| message.cuda_code == Some(error.code);
    let messages: Vec<&Message> = facts.messages().message.iter().filter(of_code).collect();
    if format == Format::Json {
        output::json(&JsonCudaError { schema: 1, cuda_error: error, messages });
        return;
    }
    line(styled(BOLD, &format!("CUDA error {}: {}", error.code, error.name)));
    line(output::wrapped("  ", &error.text));
    for text in error.meaning.iter().chain(&error.since.as_ref().map(|since| format!("since: {since}"))) {
        line(output::wrapped("  ", text));
    }
    for message in messages {
        // A message that was made from this very row has nothing to add but its fix.
        if message.id == format!("cuda-{}", error.code) {
            print_fixes(&message.fix);
            print_sources(facts.messages().table.resolve(&message.source));
            continue;
        }
        line("");
        print_message(facts, message);
    }
}

fn print_json(facts: &Facts, subject: &str, report: &Report<'_>, tables: &[TableUsed]) {
    let messages = report.hits.iter().map(|hit| JsonMessage {
        line: hit.line,
        count: hit.count,
        excerpt: &hit.excerpt,
        message: Message { fix: cudock_explain::fixes(facts, hit), ..hit.message.clone() },
    });
    output::json(&JsonReport {
        schema: 1,
        subject: subject.to_owned(),
        bytes: report.bytes,
        lines: report.lines,
        messages: messages.collect(),
        nvidia_smi: report.smi.as_ref(),
        tables,
    });
}

fn print_text(facts: &Facts, subject: &str, report: &Report<'_>, all: bool) {
    if let (true, Some(table)) = (report.hits.is_empty(), &report.smi) {
        line(styled(BOLD, "a table of nvidia-smi; no error in it"));
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
            "The catalogue has the failures of drivers, container toolkits, images, frameworks and Azure; a program's own errors are \
             not in it. `cudock doctor` looks at the machine itself.",
        ));
        return;
    }
    let shown = if all { report.hits.len() } else { MOST };
    for (index, hit) in report.hits.iter().take(shown).enumerate() {
        if index > 0 {
            line("");
        }
        print_hit(facts, hit, report.lines > 1);
    }
    let more = report.hits.len().saturating_sub(shown);
    if more > 0 {
        let ids: Vec<&str> = report.hits.iter().skip(shown).map(|hit| hit.message.id.as_str()).collect();
        line(format!("\n{more} more, with --all: {}", ids.join(", ")));
    }
}

fn print_hit(facts: &Facts, hit: &Hit<'_>, with_place: bool) {
    if with_place {
        let times = if hit.count > 1 { format!(", {} times", hit.count) } else { String::new() };
        line(styled(BLUE, &format!("line {}{times}:", hit.line)));
        line(styled(DIM, &output::wrapped("  ", &hit.excerpt)));
    }
    print_message_with(facts, hit.message, &cudock_explain::fixes(facts, hit));
}

fn print_message(facts: &Facts, message: &Message) {
    print_message_with(facts, message, &message.fix);
}

fn print_message_with(facts: &Facts, message: &Message, fixes: &[String]) {
    let code = message.cuda_code.map_or_else(String::new, |code| format!(", CUDA error {code}"));
    let symptom = if message.symptom { ", a symptom" } else { "" };
    let layer = serde_json::to_value(message.layer).ok().and_then(|layer| layer.as_str().map(str::to_owned));
    line(format!(
        "{} {}",
        styled(BOLD, &message.title),
        styled(DIM, &format!("({}{code}{symptom}; {})", layer.unwrap_or_default(), message.id)),
    ));
    line(output::wrapped("  ", &message.cause));
    print_fixes(fixes);
    if let Some(probe) = &message.probe {
        line(output::wrapped("  tell apart: ", probe));
    }
    if let Some(note) = &message.note {
        line(output::wrapped("  note: ", note));
    }
    print_sources(facts.messages().table.resolve(&message.source));
}

fn print_fixes(fixes: &[String]) {
    for fix in fixes {
        line(output::wrapped("  fix: ", fix));
    }
}

fn print_sources<'a>(sources: impl Iterator<Item = &'a str>) {
    for source in sources.take(3) {
        line(styled(DIM, &format!("  source: {source}")));
    }
}
