//! Workflow annotations, which GitHub Actions shows in the run and next to the changed lines of a
//! pull request.

use super::{ReportedFinding, ReportedLocation};
use crate::finding::Severity;

pub(crate) fn annotations(findings: &[ReportedFinding]) -> String {
    findings.iter().map(annotation).collect::<Vec<_>>().join(
        "
",
    )
}

/// `::error file=main.bicep,line=3,col=11,endColumn=23,title=CD0801::message`
fn annotation(reported: &ReportedFinding) -> String {
    let finding = &reported.finding;
    let command = match finding.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "notice",
    };
    // An annotation can only be shown next to a line.
    let location = reported.locations.iter().find(|location| location.line.is_some());
    let mut properties = location.map_or_else(Vec::new, location_properties);
    properties.push(("title", finding.code.to_owned()));
    let properties: Vec<String> =
        properties.into_iter().map(|(name, value)| format!("{name}={}", escaped_property(&value))).collect();
    let fix = if finding.fix.is_empty() { String::new() } else { format!("\nfix: {}", finding.fix) };
    format!("::{command} {}::{}", properties.join(","), escaped(&format!("{}{fix}", reported.message())))
}

fn location_properties(location: &ReportedLocation) -> Vec<(&'static str, String)> {
    let line = location.line.unwrap_or(1);
    let mut properties = vec![("file", location.file.clone()), ("line", line.to_string())];
    match location.columns {
        // Columns are only allowed within one line.
        Some((column, end_line, end_column)) if end_line == line => {
            properties.extend([("col", column.to_string()), ("endColumn", end_column.to_string())]);
        }
        Some((_, end_line, _)) => properties.push(("endLine", end_line.to_string())),
        None => {}
    }
    properties
}

fn escaped(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn escaped_property(text: &str) -> String {
    escaped(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use crate::finding::{Finding, TextRegion};
    use cudock_base::LineIndex;

    use super::*;

    #[test]
    fn annotations_are_escaped_and_have_the_most_exact_location() {
        let text = "FROM a\nRUN b \\\n  && c\n";
        let index = LineIndex::new(text);
        let finding = |severity, message: &str, fix: &str| Finding::new("CD0701", severity, message, fix);
        for (finding, expected) in [
            (
                finding(Severity::Error, "100 % wrong: a, b\r\nc", "")
                    .at("a,b:c%.txt", TextRegion::new(&index, 5..6)),
                "::error file=a%2Cb%3Ac%25.txt,line=1,col=6,endColumn=7,title=CD0701::100 %25 wrong: a, b%0D%0Ac",
            ),
            (
                finding(Severity::Warning, "two lines", "join them")
                    .at("Dockerfile", TextRegion::new(&index, 7..20)),
                "::warning file=Dockerfile,line=2,endLine=3,title=CD0701::two lines%0Afix: join them",
            ),
            (finding(Severity::Note, "no file", ""), "::notice title=CD0701::no file"),
        ] {
            assert_eq!(annotation(&ReportedFinding::new(finding)), expected);
        }
    }

    #[test]
    fn a_target_stands_before_the_message() {
        let mut reported = ReportedFinding::new(Finding::new("CD0501", Severity::Error, "no code", ""));
        reported.target = Some("T4 (7.5)".to_owned());
        reported.locations.push(ReportedLocation { file: "app".to_owned(), ..ReportedLocation::default() });
        assert_eq!(annotation(&reported), "::error title=CD0501::T4 (7.5): no code");
    }
}
