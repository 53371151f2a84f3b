//! The page of a finding, shown where the finding is.

use cudock_facts::Facts;
use lsp_types::{Hover, HoverContents, MarkupContent, MarkupKind, Position};

use crate::document::OpenDocument;
use crate::position::Lines;

/// The pages of the findings at a position, or of a code that is written there, as in a comment.
pub(crate) fn hover(facts: &Facts, document: &OpenDocument, position: Position) -> Option<Hover> {
    let lines = Lines::new(&document.text);
    let at = lines.offset(position);
    let mut codes: Vec<&str> = document.findings_at(&(at..at)).map(|finding| finding.code).collect();
    codes.extend(word_at(&document.text, at));
    codes.sort_unstable();
    codes.dedup();
    let pages: Vec<String> = codes.into_iter().filter_map(|code| page(facts, code)).collect();
    let value = pages.join("\n\n---\n\n");
    let contents = HoverContents::Markup(MarkupContent { kind: MarkupKind::Markdown, value });
    (!pages.is_empty()).then_some(Hover { contents, range: None })
}

fn page(facts: &Facts, code: &str) -> Option<String> {
    let page = facts.findings().get(code)?;
    let fixes: String = page.fix.iter().map(|fix| format!("\n- {fix}")).collect();
    Some(format!("**{code}: {}**\n\n{}\n{fixes}", page.title, page.why))
}

/// The letters and digits around a byte.
fn word_at(text: &str, at: usize) -> Option<&str> {
    let (before, after) = text.split_at_checked(at)?;
    let is_other = |character: char| !character.is_ascii_alphanumeric();
    let start = before.rfind(is_other).map_or(0, |other| before.ceil_char_boundary(other + 1));
    let end = after.find(is_other).unwrap_or(after.len());
    text.get(start..at + end).filter(|word| !word.is_empty())
}
