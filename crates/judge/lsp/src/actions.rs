//! Fixes as code actions.

use cudock_base::bug::Parts;
use cudock_facts::Facts;
use cudock_facts::finding::Finding;
use lsp_types::{
    CodeAction, CodeActionKind, CodeActionParams, DocumentChanges, OneOf,
    OptionalVersionedTextDocumentIdentifier, TextDocumentEdit, TextEdit, WorkspaceEdit,
};

use crate::document::{OpenDocument, diagnostic};
use crate::position::Lines;

/// The kind of the action that fixes everything.
pub(crate) const FIX_ALL: CodeActionKind = CodeActionKind::new("source.fixAll.cudock");

/// The fixes at a range, and the one for the whole file if `fixed`, the text after all fixes, differs.
pub(crate) fn actions(
    facts: &Facts,
    document: &OpenDocument,
    params: &CodeActionParams,
    fixed: impl FnOnce() -> String,
) -> Vec<CodeAction> {
    let lines = Lines::new(&document.text);
    let is_wanted = |kind: &CodeActionKind| {
        params.context.only.as_ref().is_none_or(|only| only.iter().any(|wanted| includes(wanted, kind)))
    };
    let mut actions = Vec::new();
    if is_wanted(&CodeActionKind::QUICKFIX) {
        let bytes = lines.bytes(params.range);
        actions.extend(
            document.findings_at(&bytes).flat_map(|finding| quick_fixes(facts, document, &lines, finding)),
        );
    }
    let has_fixes = document.findings.iter().any(|finding| !finding.suggestions.is_empty());
    if is_wanted(&FIX_ALL) && has_fixes {
        let edit = difference(&lines, &document.text, &fixed());
        actions.push(CodeAction {
            title: "Fix all findings of cudock".to_owned(),
            kind: Some(FIX_ALL),
            edit: Some(workspace_edit(document, vec![edit])),
            ..CodeAction::default()
        });
    }
    actions
}

/// Whether a wanted kind is a kind or one above it: `source` includes `source.fixAll`.
fn includes(wanted: &CodeActionKind, kind: &CodeActionKind) -> bool {
    let rest = kind.as_str().strip_prefix(wanted.as_str());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn quick_fixes(
    facts: &Facts,
    document: &OpenDocument,
    lines: &Lines<'_>,
    finding: &Finding,
) -> Vec<CodeAction> {
    let only_one = finding.suggestions.len() == 1;
    let fixes = finding.suggestions.iter().map(|suggestion| {
        let edits = suggestion.edits.iter();
        let edits =
            edits.map(|edit| TextEdit::new(lines.span(edit.region.span), edit.text.clone())).collect();
        CodeAction {
            title: format!("{} ({})", suggestion.message, finding.code),
            kind: Some(CodeActionKind::QUICKFIX),
            diagnostics: Some(vec![diagnostic(facts, lines, finding)]),
            is_preferred: only_one.then_some(true),
            edit: Some(workspace_edit(document, edits)),
            ..CodeAction::default()
        }
    });
    fixes.collect()
}

/// Edits of the version that they were made for.
fn workspace_edit(document: &OpenDocument, edits: Vec<TextEdit>) -> WorkspaceEdit {
    let (uri, version) = (document.uri.clone(), Some(document.version));
    let edit = TextDocumentEdit {
        text_document: OptionalVersionedTextDocumentIdentifier { uri, version },
        edits: edits.into_iter().map(OneOf::Left).collect(),
    };
    let changes = DocumentChanges::Edits(vec![edit]);
    WorkspaceEdit { document_changes: Some(changes), ..WorkspaceEdit::default() }
}

/// One edit from the first to the last character that differ.
fn difference(lines: &Lines<'_>, before: &str, after: &str) -> TextEdit {
    let same = before.chars().zip(after.chars()).take_while(|(one, other)| one == other);
    let start: usize = same.map(|(character, _)| character.len_utf8()).sum();
    let (rest, new) = (before.part(start..), after.part(start..));
    let same = rest.chars().rev().zip(new.chars().rev()).take_while(|(one, other)| one == other);
    let end: usize = same.map(|(character, _)| character.len_utf8()).sum();
    let text = new.part(..new.len() - end);
    TextEdit::new(lines.range(start..before.len() - end), text.to_owned())
}
