//! The report as text: findings by file, the most severe first, with the lines they are about.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use cudock_base::text::format::{bytes, count};
use cudock_facts::finding::{Finding, Severity};
use cudock_lint::{FixMode, LintedFile, Totals};

use crate::finding_text::{self, FindingText};
use crate::output::{self, BOLD, GREEN, RED, YELLOW, line, styled, width};

/// Maximum number of findings whose excerpts are shown without `--verbose`.
const SHOWN_EXCERPTS: usize = 5;

pub(crate) fn print(files: &[LintedFile], mode: FixMode, verbose: bool) {
    let total = Totals::of(files.iter().flat_map(|file| &file.findings));
    let has_excerpts = verbose || total.findings() <= SHOWN_EXCERPTS;
    for file in files {
        if let Some(diff) = &file.preview {
            output::diff(diff);
            continue;
        }
        if file.is_input && mode == FixMode::Apply {
            line(file.text.strip_suffix('\n').unwrap_or(&file.text));
            return;
        }
        if file.fixed > 0 {
            line(format!("{}: fixed {}", styled(BOLD, &file.name), count(file.fixed, "finding")));
        }
        let mut findings: Vec<&Finding> = file.findings.iter().collect();
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        for finding in findings {
            let excerpt = if has_excerpts { excerpt(file, finding) } else { None };
            finding_text::print(0, &FindingText { excerpt, ..FindingText::from(finding) });
        }
    }
    print_summary(files.len(), &total, mode);
}

/// The line that a finding is about, with the part marked; of several lines, the first.
fn excerpt(file: &LintedFile, finding: &Finding) -> Option<String> {
    let span = finding.location.as_ref()?.region.span;
    let start = file.text.get(..span.start)?.rfind('\n').map_or(0, |at| at + 1);
    let text = file.text.get(start..)?.lines().next()?;
    let from = span.start - start;
    let marked = from..(span.end - start).min(text.len()).max(from);
    let level = match finding.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let snippet =
        Snippet::source(text).line_start(span.line).annotation(AnnotationKind::Primary.span(marked));
    let shown = Renderer::styled().term_width(width()).render(&[Group::with_level(level).element(snippet)]);
    // The first line is an empty margin.
    shown.split_once('\n').map(|(_, excerpt)| excerpt.to_owned())
}

/// "2 files: 1 error, 3 warnings; fixes save 2.3 GB".
fn print_summary(files: usize, total: &Totals, mode: FixMode) {
    let numbers = [(total.errors, "error"), (total.warnings, "warning"), (total.notes, "note")];
    let numbers: Vec<String> =
        numbers.iter().filter(|(number, _)| *number > 0).map(|(number, noun)| count(*number, noun)).collect();
    let files = count(files, "file");
    if numbers.is_empty() {
        line(styled(GREEN, &format!("{files}: no findings")));
        return;
    }
    line("");
    let mut summary = vec![format!("{files}: {}", numbers.join(", "))];
    if total.saves_bytes > 0 {
        summary.push(format!("fixes save {}", bytes(total.saves_bytes)));
    }
    if total.fixable > 0 && mode == FixMode::Off {
        summary.push(format!("--fix fixes {}", total.fixable));
    }
    let style = if total.errors > 0 { RED } else { YELLOW };
    line(styled(style, &summary.join("; ")));
}
