//! Splits a text by language: fenced code in notes, here-documents in scripts.

use super::dialect::{self, Dialect};
use crate::read::names::name_length;
use cudock_base::bug::Parts;

/// A part of a text.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::read) struct Block {
    pub(in crate::read) start: usize,
    pub(in crate::read) end: usize,
    pub(in crate::read) dialect: Dialect,
}

/// The parts of a text, in order and without gaps.
pub(in crate::read) fn of(text: &str) -> Vec<Block> {
    if dialect::is_markdown(text) {
        return split(text, Dialect::Prose, fence);
    }
    match dialect::of(text) {
        Dialect::Shell => split(text, Dialect::Shell, here_document),
        dialect => vec![Block { start: 0, end: text.len(), dialect }],
    }
}

/// The start of a block that continues until the line `end`. The language, if not given, is
/// detected from its content.
struct Opening<'t> {
    end: &'t str,
    inside: Option<Dialect>,
}

fn split<'t>(text: &'t str, outside: Dialect, opening: fn(&'t str) -> Option<Opening<'t>>) -> Vec<Block> {
    let mut blocks = Vec::new();
    let (mut from, mut at) = (0, 0);
    let mut open: Option<Opening<'t>> = None;
    let mut push = |start: usize, end: usize, open: Option<&Opening<'t>>| {
        let by_content = || dialect::of(text.part(start..end));
        let dialect = open.map_or(outside, |open| open.inside.unwrap_or_else(by_content));
        if start < end {
            blocks.push(Block { start, end, dialect });
        }
    };
    for line in text.split_inclusive('\n') {
        let next = at + line.len();
        if let Some(opened) = &open {
            if line.trim().trim_end_matches(';') == opened.end {
                push(from, at, open.as_ref());
                (from, open) = (at, None);
            }
        } else if let Some(opened) = opening(line) {
            push(from, next, None);
            (from, open) = (next, Some(opened));
        }
        at = next;
    }
    push(from, text.len(), open.as_ref());
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
            Some(Dialect::Shell)
        }
        "python" | "py" | "python3" => Some(Dialect::Python),
        "yaml" | "yml" => Some(Dialect::Yaml),
        "json" | "jsonc" => Some(Dialect::Json),
        "terraform" | "hcl" | "tf" => Some(Dialect::Terraform),
        "bicep" => Some(Dialect::Bicep),
        _ => None,
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
    let (end, rest) = after.split_at_checked(name_length(after))?;
    let closed = quote.is_none_or(|quote| rest.starts_with(quote));
    let is_name = !end.is_empty() && !end.starts_with(|ch: char| ch.is_ascii_digit());
    (is_name && closed).then_some(Opening { end, inside: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Vec<(Dialect, &str)> {
        of(text).iter().map(|block| (block.dialect, &text[block.start..block.end])).collect()
    }

    #[test]
    fn texts_are_split_by_language() {
        let cases: [(&str, &[(Dialect, &str)]); 3] = [
            (
                "# Train\nIt's easy.\n```bash\naz vm create\n```\nThen:\n```\nresource \"x\" \"y\" {\n}\n```\nDone.\n",
                &[
                    (Dialect::Prose, "# Train\nIt's easy.\n```bash\n"),
                    (Dialect::Shell, "az vm create\n"),
                    (Dialect::Prose, "```\nThen:\n```\n"),
                    (Dialect::Terraform, "resource \"x\" \"y\" {\n}\n"),
                    (Dialect::Prose, "```\nDone.\n"),
                ],
            ),
            (
                "#!/bin/bash\ncat > g.yaml <<'EOF'\nname: x\nproperties:\nEOF\naz container create\n",
                &[
                    (Dialect::Shell, "#!/bin/bash\ncat > g.yaml <<'EOF'\n"),
                    (Dialect::Yaml, "name: x\nproperties:\n"),
                    (Dialect::Shell, "EOF\naz container create\n"),
                ],
            ),
            // A document without its end goes to the end of the text.
            ("az x <<EOF\na: b\n", &[(Dialect::Shell, "az x <<EOF\n"), (Dialect::Yaml, "a: b\n")]),
        ];
        for (text, expected) in cases {
            assert_eq!(parts(text), expected, "{text}");
        }
    }
}
