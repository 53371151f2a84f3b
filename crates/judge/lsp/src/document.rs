//! An open document with its findings.

use std::path::{Path, PathBuf};

use cudock_base::text::percent;
use cudock_facts::Facts;
use cudock_facts::finding::{Finding, Severity};
use lsp_types::{
    Diagnostic, DiagnosticSeverity, NumberOrString, PublishDiagnosticsParams, TextDocumentContentChangeEvent,
    Uri,
};

use crate::position::Lines;

/// A document as the client has it.
pub(crate) struct OpenDocument {
    pub(crate) uri: Uri,
    pub(crate) version: i32,
    pub(crate) text: String,
    pub(crate) findings: Vec<Finding>,
}

impl OpenDocument {
    /// Changes the text, or a part of it.
    pub(crate) fn change(&mut self, change: &TextDocumentContentChangeEvent) {
        match change.range {
            Some(range) => {
                let bytes = Lines::new(&self.text).bytes(range);
                self.text.replace_range(bytes, &change.text);
            }
            None => self.text.clone_from(&change.text),
        }
    }

    /// The file; for a document without one, a name in the current directory.
    pub(crate) fn path(&self) -> PathBuf {
        let path = self.uri.as_str().strip_prefix("file://").and_then(percent::decode);
        path.map_or_else(|| Path::new("Dockerfile").to_owned(), PathBuf::from)
    }

    /// The findings that touch some bytes.
    pub(crate) fn findings_at(&self, bytes: &std::ops::Range<usize>) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(move |finding| {
            let span = finding.location.as_ref().map(|location| location.region.span);
            span.is_some_and(|span| span.start <= bytes.end && bytes.start <= span.end)
        })
    }

    pub(crate) fn diagnostics(&self, facts: &Facts) -> PublishDiagnosticsParams {
        let lines = Lines::new(&self.text);
        let diagnostics = self.findings.iter().map(|finding| diagnostic(facts, &lines, finding)).collect();
        PublishDiagnosticsParams { uri: self.uri.clone(), diagnostics, version: Some(self.version) }
    }
}

pub(crate) fn diagnostic(facts: &Facts, lines: &Lines<'_>, finding: &Finding) -> Diagnostic {
    let span = finding.location.as_ref().map(|location| location.region.span).unwrap_or_default();
    let severity = match finding.severity {
        Severity::Error => DiagnosticSeverity::ERROR,
        Severity::Warning => DiagnosticSeverity::WARNING,
        Severity::Note => DiagnosticSeverity::INFORMATION,
    };
    let mut message = finding.message.clone();
    if !finding.fix.is_empty() {
        message.push_str("\nfix: ");
        message.push_str(&finding.fix);
    } else if let Some(page) = facts.findings().get(finding.code) {
        message.push('\n');
        message.push_str(&page.title);
    }
    Diagnostic {
        range: lines.span(span),
        severity: Some(severity),
        code: Some(NumberOrString::String(finding.code.to_owned())),
        source: Some("cudock".to_owned()),
        message,
        ..Diagnostic::default()
    }
}
