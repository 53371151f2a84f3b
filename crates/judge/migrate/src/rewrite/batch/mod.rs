//! Programs for azure-batch 14 as programs for azure-batch 15: names are replaced where they stand, everything else stays.

mod imports;
mod names;

use cudock_base::bug::Parts;
use std::collections::BTreeSet;
use std::path::Path;

use super::python::{is_named, slice, statement_end};
use super::{Source, Writer};
use crate::read::{Token, TokenKind, python_tokens};
use imports::{Edit, Imports};
use names::{CLIENT_ARGUMENTS, ENUMERATIONS, KEYWORDS, MODELS, MOVED, OPERATIONS, UNCHANGED};

/// Names that only old programs have.
const MARKERS: [&str; 5] =
    ["BatchServiceClient", "batch_auth", "PoolAddParameter", "TaskAddParameter", "JobAddParameter"];

pub(super) fn is_found(text: &str) -> bool {
    text.contains("azure.batch") && MARKERS.iter().any(|marker| text.contains(marker))
}

pub(super) fn translate(source: Source<'_>, writer: &mut Writer<'_>) {
    let tokens = python_tokens(source.text);
    let imports = Imports::read(source.text, &tokens);
    let mut editor = Editor {
        text: source.text,
        tokens: &tokens,
        imports: &imports,
        writer,
        edits: Vec::new(),
        needed: BTreeSet::new(),
    };
    let mut at = 0;
    while at < tokens.len() {
        let end = statement_end(&tokens, at).max(at + 1);
        if !imports.is_import(at) {
            (at..end).for_each(|index| editor.token(index));
        }
        at = end;
    }
    let Editor { mut edits, needed, .. } = editor;
    edits.extend(imports.rewritten(needed));
    let path = Path::new(source.path);
    let is_program = path.extension().is_some_and(|extension| extension == "py");
    let name = path.file_name().and_then(|name| name.to_str()).filter(|_| is_program).unwrap_or("batch.py");
    let text = applied(source.text, edits);
    writer.file(name, text);
    let at = source.text.find("azure.batch").unwrap_or(0);
    writer.note(
        at..at,
        "the new file is for azure-batch 15",
        "install it with `pip install 'azure-batch>=15' azure-identity`, and run it once against a test pool",
    );
}

/// The text with all edits; of those that overlap, the first counts.
fn applied(text: &str, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|(bytes, _)| (bytes.start, bytes.end));
    let mut result = String::with_capacity(text.len());
    let mut at = 0;
    for (bytes, replacement) in edits {
        if bytes.start >= at {
            result.push_str(text.part(at..bytes.start));
            result.push_str(&replacement);
            at = bytes.end;
        }
    }
    result.push_str(text.part(at..));
    result
}

struct Editor<'t, 'w, 'a> {
    text: &'t str,
    tokens: &'w [Token],
    imports: &'w Imports<'t>,
    writer: &'w mut Writer<'a>,
    edits: Vec<Edit>,
    /// Modules and names to import.
    needed: BTreeSet<(&'static str, &'static str)>,
}

impl Editor<'_, '_, '_> {
    fn token(&mut self, index: usize) {
        let Some(token) = self.tokens.get(index).copied().filter(|token| token.kind == TokenKind::Word)
        else {
            return;
        };
        let word = slice(self.text, token);
        let is_call = self.tokens.get(index + 1).is_some_and(|next| next.kind == TokenKind::Mark(b'('));
        if is_call && self.operation(token, word, index) {
            return;
        }
        if self.moved(token, word, index) || self.enumeration(token, word) {
            return;
        }
        self.model(token, word, index, is_call);
    }

    /// `client.pool.add(` becomes `client.create_pool(`.
    fn operation(&mut self, token: Token, word: &str, index: usize) -> bool {
        let mut parts = word.rsplitn(3, '.');
        let (Some(operation), Some(group), Some(client)) = (parts.next(), parts.next(), parts.next()) else {
            return false;
        };
        if group == "certificate"
            && matches!(operation, "add" | "get" | "list" | "delete" | "cancel_deletion")
        {
            let message = "certificates of Batch were retired on 2024-02-29";
            self.writer.lost(token.start..token.end, message, "keep them in a key vault");
            return true;
        }
        let known = OPERATIONS.iter().find(|(of_group, name, _)| *of_group == group && *name == operation);
        let Some((.., new)) = known else { return false };
        self.edits.push((token.start + client.len() + 1..token.end, (*new).to_owned()));
        self.keywords(index + 1, operation);
        true
    }

    /// A name of another module.
    fn moved(&mut self, token: Token, word: &str, index: usize) -> bool {
        let Some((old, module, new)) = MOVED.iter().find(|(old, ..)| is_named(word, old)) else {
            return false;
        };
        let qualifier = word.strip_suffix(old).unwrap_or_default().trim_end_matches('.');
        let is_kept = match *old {
            "BatchServiceClient" => self.imports.is_package(qualifier),
            _ => *module == "azure.batch.models" && self.imports.is_models(qualifier),
        };
        if is_kept {
            self.edits.push((token.end - old.len()..token.end, (*new).to_owned()));
        } else {
            self.edits.push((token.start..token.end, (*new).to_owned()));
            self.needed.insert((module, new));
        }
        self.keywords(index + 1, old);
        true
    }

    /// `models.ElevationLevel.admin` becomes `models.ElevationLevel.ADMIN`.
    fn enumeration(&mut self, token: Token, word: &str) -> bool {
        let Some((class, member)) = word.rsplit_once('.') else { return false };
        let Some(name) = ENUMERATIONS.iter().find(|name| is_named(class, name)) else { return false };
        let qualifier = class.strip_suffix(name).unwrap_or_default();
        if !self.imports.has(qualifier.trim_end_matches('.'), name) {
            return false;
        }
        let new = MODELS.iter().find(|(old, _)| old == name).map_or(*name, |(_, new)| new);
        let text = format!("{qualifier}{new}.{}", member.to_ascii_uppercase());
        self.edits.push((token.start..token.end, text));
        true
    }

    fn model(&mut self, token: Token, word: &str, index: usize, is_call: bool) {
        let (qualifier, name) = word.rsplit_once('.').unwrap_or(("", word));
        if !self.imports.has(qualifier, name) || UNCHANGED.contains(&name) {
            return;
        }
        match MODELS.iter().find(|(old, _)| *old == name) {
            Some((_, new)) => {
                self.edits.push((token.end - name.len()..token.end, (*new).to_owned()));
                if is_call {
                    self.keywords(index + 1, name);
                }
            }
            None if name.ends_with("Options") => {
                let message = format!("`{name}` is gone: its fields are keyword arguments of the operation");
                self.writer.lost(
                    token.start..token.end,
                    message,
                    "pass them to the operation, such as filter=…",
                );
            }
            None => {
                let message = format!("what replaces `{name}` is not known");
                let fix = "look it up in the reference of azure.batch.models 15";
                self.writer.lost(token.start..token.end, message, fix);
            }
        }
    }

    /// Renames the keyword arguments of a call whose bracket is at an index.
    fn keywords(&mut self, open: usize, function: &str) {
        let mut depth = 0_usize;
        let mut positional = CLIENT_ARGUMENTS.iter();
        let mut is_start = true;
        for index in open..self.tokens.len() {
            let Some(token) = self.tokens.get(index).copied() else { break };
            match token.kind {
                TokenKind::Mark(b'(' | b'[' | b'{') => {
                    depth += 1;
                    if depth == 1 {
                        continue;
                    }
                }
                TokenKind::Mark(b')' | b']' | b'}') => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        break;
                    }
                }
                TokenKind::Mark(b',') if depth == 1 => {
                    is_start = true;
                    continue;
                }
                TokenKind::Newline => continue,
                _ => {}
            }
            if depth == 1 && is_start || depth == 2 && is_start && matches!(token.kind, TokenKind::Mark(_)) {
                self.argument(index, token, function, &mut positional);
            }
            is_start = false;
        }
    }

    fn argument<'n>(
        &mut self,
        index: usize,
        token: Token,
        function: &str,
        positional: &mut impl Iterator<Item = &'n &'static str>,
    ) {
        let is_keyword = token.kind == TokenKind::Word
            && self.tokens.get(index + 1).is_some_and(|next| next.kind == TokenKind::Mark(b'='));
        let name = slice(self.text, token);
        if !is_keyword {
            if function == "BatchServiceClient"
                && let Some(keyword) = positional.next()
            {
                // The quote of a string is not part of its token.
                let start = token.start - usize::from(token.kind == TokenKind::Text);
                self.edits.push((start..start, format!("{keyword}=")));
            }
            return;
        }
        let known = KEYWORDS.iter().find(|(of_function, old, _)| *of_function == function && *old == name);
        if let Some((.., new)) = known {
            self.edits.push((token.start..token.end, (*new).to_owned()));
        } else if function == "ServicePrincipalCredentials" && name == "resource" {
            let message = "`resource` of the credential is not needed anymore";
            self.writer.lost(token.start..token.end, message, "remove the argument");
        } else if name.ends_with("_options") && OPERATIONS.iter().any(|(_, old, _)| *old == function) {
            let message = format!("`{name}` is gone: its fields are keyword arguments of the operation");
            self.writer.lost(token.start..token.end, message, "pass them directly, such as filter=…");
        }
    }
}
