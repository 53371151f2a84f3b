//! Import statements of azure-batch 14: what they name, and what replaces them.

use cudock_base::bug::Parts;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::names::{MODELS, MOVED};
use crate::read::{Token, TokenKind};
use crate::rewrite::python::{slice, statement_end};

/// A replacement of some bytes.
pub(super) type Edit = (Range<usize>, String);

const MODELS_MODULE: &str = "azure.batch.models";

/// Modules that are gone; what they had is elsewhere.
const GONE: [&str; 5] = [
    "azure.batch.batch_auth",
    "azure.batch.batch_service_client",
    "azure.batch._batch_service_client",
    "azure.common.credentials",
    "msrestazure.azure_active_directory",
];

/// The imports of a program.
#[derive(Debug, Default)]
pub(super) struct Imports<'t> {
    /// Statements by their first token.
    statements: BTreeMap<usize, Import<'t>>,
    /// Names of the module of models.
    models: BTreeSet<&'t str>,
    /// Names of the package.
    packages: BTreeSet<&'t str>,
    /// Models by the name that they are imported as.
    names: BTreeSet<&'t str>,
}

#[derive(Debug)]
struct Import<'t> {
    bytes: Range<usize>,
    /// The end of the import, including the end of the line.
    line_end: usize,
    indent: &'t str,
    /// The replacement, line by line.
    lines: BTreeSet<String>,
}

impl<'t> Imports<'t> {
    pub(super) fn read(text: &'t str, tokens: &[Token]) -> Self {
        let mut imports = Self::default();
        let mut at = 0;
        while at < tokens.len() {
            let end = statement_end(tokens, at).max(at + 1);
            let statement = tokens.part(at..end);
            let words: Vec<&'t str> = statement
                .iter()
                .filter(|token| token.kind == TokenKind::Word)
                .map(|token| slice(text, *token))
                .collect();
            let lines = match words.as_slice() {
                ["import", module, rest @ ..] => imports.module(module, rest),
                ["from", module, "import", rest @ ..] => imports.members(module, rest),
                _ => None,
            };
            if let (Some(lines), Some(first)) = (lines, statement.first()) {
                let end = statement.iter().rev().find(|token| token.kind != TokenKind::Newline);
                let line = text.get(..first.start).and_then(|before| before.rsplit('\n').next());
                let import = Import {
                    bytes: first.start..end.map_or(first.end, |token| token.end),
                    line_end: statement.last().map_or(first.end, |token| token.end),
                    indent: line.filter(|line| line.trim().is_empty()).unwrap_or_default(),
                    lines,
                };
                imports.statements.insert(at, import);
            }
            at = end;
        }
        imports
    }

    /// `import MODULE as NAME`.
    fn module(&mut self, module: &'t str, rest: &[&'t str]) -> Option<BTreeSet<String>> {
        let alias = match rest {
            ["as", alias] => *alias,
            _ => module,
        };
        match module {
            "azure.batch" => {
                self.packages.insert(alias);
                // `azure.batch.models` is found through the package.
                self.models.insert(MODELS_MODULE);
                None
            }
            MODELS_MODULE => {
                self.models.insert(alias);
                None
            }
            _ if GONE.contains(&module) => Some(BTreeSet::new()),
            _ => None,
        }
    }

    /// `from MODULE import NAME, NAME as OTHER`.
    fn members(&mut self, module: &'t str, rest: &[&'t str]) -> Option<BTreeSet<String>> {
        let is_batch = matches!(module, "azure" | "azure.batch" | MODELS_MODULE);
        if !is_batch && !GONE.contains(&module) {
            return None;
        }
        let mut lines = BTreeSet::new();
        let mut names = rest.iter().copied().peekable();
        while let Some(name) = names.next() {
            let alias = if names.peek() == Some(&"as") { names.nth(1) } else { None };
            let bound = alias.unwrap_or(name);
            let renamed = |module: &str, new: &str| match alias {
                Some(alias) => format!("from {module} import {new} as {alias}"),
                None => format!("from {module} import {new}"),
            };
            match (module, name) {
                ("azure", "batch") => {
                    self.packages.insert(bound);
                    lines.insert(renamed(module, name));
                }
                ("azure.batch", "models") => {
                    self.models.insert(bound);
                    lines.insert(renamed(module, name));
                }
                ("azure.batch", "batch_auth" | "batch_service_client") => {}
                _ => {
                    let moved = MOVED.iter().find(|(old, ..)| *old == name);
                    let model = MODELS.iter().find(|(old, _)| *old == name);
                    // A class under another name keeps that name.
                    if module == MODELS_MODULE && alias.is_none() {
                        self.names.insert(bound);
                    }
                    lines.insert(match (moved, model) {
                        (Some((_, module, new)), _) => renamed(module, new),
                        (None, Some((_, new))) if module == MODELS_MODULE => renamed(module, new),
                        _ => renamed(module, name),
                    });
                }
            }
        }
        Some(lines)
    }

    /// Whether the statement that begins at a token is an import that is replaced.
    pub(super) fn is_import(&self, at: usize) -> bool {
        self.statements.contains_key(&at)
    }

    /// Whether a name, qualified or not, is a model.
    pub(super) fn has(&self, qualifier: &str, name: &str) -> bool {
        if qualifier.is_empty() { self.names.contains(name) } else { self.is_models(qualifier) }
    }

    pub(super) fn is_models(&self, qualifier: &str) -> bool {
        let package = qualifier.strip_suffix(".models");
        self.models.contains(qualifier) || package.is_some_and(|package| self.packages.contains(package))
    }

    pub(super) fn is_package(&self, qualifier: &str) -> bool {
        self.packages.contains(qualifier)
    }

    /// The edits of all statements, with what else is needed at the first one.
    pub(super) fn rewritten(&self, needed: BTreeSet<(&'static str, &'static str)>) -> Vec<Edit> {
        let mut needed: BTreeSet<String> =
            needed.into_iter().map(|(module, name)| format!("from {module} import {name}")).collect();
        for import in self.statements.values() {
            needed.retain(|line| !import.lines.contains(line));
        }
        let mut edits = Vec::new();
        for import in self.statements.values() {
            let lines: Vec<String> =
                import.lines.iter().cloned().chain(std::mem::take(&mut needed)).collect();
            edits.push(match (lines.is_empty(), import.indent) {
                (true, "") => (import.bytes.start..import.line_end, String::new()),
                // A block must not be empty.
                (true, _) => (import.bytes.clone(), "pass".to_owned()),
                (false, indent) => (import.bytes.clone(), lines.join(&format!("\n{indent}"))),
            });
        }
        if !needed.is_empty() {
            let lines: Vec<String> = needed.into_iter().collect();
            edits.push((0..0, lines.join("\n") + "\n"));
        }
        edits
    }
}
