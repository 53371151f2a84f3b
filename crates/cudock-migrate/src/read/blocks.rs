//! Splits a text by language: fenced code in notes, here-documents in scripts.

use super::dialect::{self, Dialect};

/// A part of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) dialect: Dialect,
}

/// The parts of a text, in order and without gaps.
pub(super) fn of(text: &str) -> Vec<Block> {
    if dialect::is_markdown(text) {
        return split(text, Dialect::Prose, fence);
    }
    match dialect::of(text) {
        Dialect::Shell => split(text, Dialect::Shell, here_document),
        dialect => vec![Block { start: 0, end: text.len(), dialect }],
    }
}

/// The start of a block that continues until the line `end`.
struct Opening<'t> {
    end: &'t str,
    inside: Inside,
}

enum Inside {
    /// Detected by content.
    ByContent,
    Known(Dialect),
}

fn split<'t>(text: &'t str, outside: Dialect, opening: fn(&'t str) -> Option<Opening<'t>>) -> Vec<Block> {
    let mut blocks = Vec::new();
    let (mut from, mut at) = (0, 0);
    let mut open: Option<Opening<'t>> = None;
    let mut push = |start: usize, end: usize, dialect: Dialect| {
        if start < end {
            blocks.push(Block { start, end, dialect });
        }
    };
    for line in text.split_inclusive('\n') {
        let next = at + line.len();
        match &open {
            Some(opened) if line.trim().trim_end_matches(';') == opened.end => {
                let dialect = match opened.inside {
                    Inside::Known(dialect) => dialect,
                    Inside::ByContent => dialect::of(text.get(from..at).unwrap_or_default()),
                };
                push(from, at, dialect);
                (from, open) = (at, None);
            }
            Some(_) => {}
            None => {
                if let Some(opened) = opening(line) {
                    push(from, next, outside);
                    (from, open) = (next, Some(opened));
                }
            }
        }
        at = next;
    }
    let dialect = match open {
        Some(Opening { inside: Inside::Known(dialect), .. }) => dialect,
        Some(_) => dialect::of(text.get(from..).unwrap_or_default()),
        None => outside,
    };
    if from < text.len() {
        blocks.push(Block { start: from, end: text.len(), dialect });
    }
    blocks
}

/// Recognizes a line that starts fenced code: three backticks or tildes, then the name of a language.
fn fence(line: &str) -> Option<Opening<'_>> {
    let line = line.trim();
    let end = ["```", "~~~"].into_iter().find(|mark| line.starts_with(mark))?;
    let language = line.trim_start_matches(['`', '~']).trim();
    if language.contains('`') {
        return None;
    }
    let inside = match language.to_ascii_lowercase().split([' ', '{', ',']).next().unwrap_or_default() {
        "sh" | "bash" | "shell" | "console" | "azurecli" | "azurecli-interactive" | "powershell" | "pwsh" => {
            Inside::Known(Dialect::Shell)
        }
        "python" | "py" | "python3" => Inside::Known(Dialect::Python),
        "yaml" | "yml" => Inside::Known(Dialect::Yaml),
        "json" | "jsonc" => Inside::Known(Dialect::Json),
        "terraform" | "hcl" | "tf" => Inside::Known(Dialect::Terraform),
        "bicep" => Inside::Known(Dialect::Bicep),
        _ => Inside::ByContent,
    };
    Some(Opening { end, inside })
}

/// Recognizes a line that starts a here-document: `cat > group.yaml <<EOF`.
fn here_document(line: &str) -> Option<Opening<'_>> {
    let (before, after) = line.split_once("<<")?;
    if after.starts_with('<') || before.trim_start().starts_with('#') {
        return None;
    }
    let after = after.trim_start_matches('-').trim_start();
    let quote = after.chars().next().filter(|ch| matches!(ch, '\'' | '"'));
    let after = after.trim_start_matches(['\'', '"', '\\']);
    let length = after.bytes().take_while(|byte| super::names::is_name_byte(*byte)).count();
    let (end, rest) = after.split_at_checked(length)?;
    let closed = quote.is_none_or(|quote| rest.starts_with(quote));
    let is_name = !end.is_empty() && !end.starts_with(|ch: char| ch.is_ascii_digit());
    (is_name && closed).then_some(Opening { end, inside: Inside::ByContent })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Vec<(Dialect, &str)> {
        of(text).iter().map(|block| (block.dialect, &text[block.start..block.end])).collect()
    }

    #[test]
    fn notes_are_prose_and_code() {
        let text = "# Train\nIt's easy.\n```bash\naz vm create\n```\nThen:\n```\nresource \"x\" \"y\" {\n}\n```\nDone.\n";
        assert_eq!(
            parts(text),
            [
                (Dialect::Prose, "# Train\nIt's easy.\n```bash\n"),
                (Dialect::Shell, "az vm create\n"),
                (Dialect::Prose, "```\nThen:\n```\n"),
                (Dialect::Terraform, "resource \"x\" \"y\" {\n}\n"),
                (Dialect::Prose, "```\nDone.\n"),
            ]
        );
    }

    #[test]
    fn a_script_holds_documents() {
        let text = "#!/bin/bash\ncat > g.yaml <<'EOF'\nname: x\nproperties:\nEOF\naz container create\n";
        assert_eq!(
            parts(text),
            [
                (Dialect::Shell, "#!/bin/bash\ncat > g.yaml <<'EOF'\n"),
                (Dialect::Yaml, "name: x\nproperties:\n"),
                (Dialect::Shell, "EOF\naz container create\n"),
            ]
        );
    }

    #[test]
    fn a_document_without_its_end_goes_to_the_end_of_the_text() {
        assert_eq!(parts("az x <<EOF\na: b\n").last(), Some(&(Dialect::Yaml, "a: b\n")));
    }
}
