//! Reads YAML line by line.
//!
//! A YAML parser rejects a file at its first error, and many files here are templates that only become YAML later. This
//! reader interprets each line by its look, and skips what it does not understand.

use super::blocks::Block;
use super::brackets;
use super::dialect::Dialect;
use super::tree::{Frames, Range, Tree};
use crate::read::names::{blanks, is_name_byte};

pub(in crate::read) fn read<'t>(text: &'t str, block: &Block, comments: &mut Vec<Range>) -> Tree<'t> {
    let Block { start, end, .. } = *block;
    let mut reader = YamlReader {
        end,
        tree: Tree::new(text),
        frames: Frames::default(),
        levels: vec![Level { indent: 0, depth: 0, last: (start, start) }],
        comments,
    };
    let mut at = start;
    while at < end {
        at = reader.line(at);
    }
    reader.tree
}

/// An open map.
#[derive(Clone, Copy, Debug)]
struct Level {
    /// The column of its keys.
    indent: usize,
    /// The number of open frames, with its own.
    depth: usize,
    last: Range,
}

struct YamlReader<'t, 'c> {
    end: usize,
    tree: Tree<'t>,
    frames: Frames,
    levels: Vec<Level>,
    comments: &'c mut Vec<Range>,
}

/// The limit for nested levels; deeper ones count as the last.
const MAX_DEPTH: usize = 128;

impl<'t> YamlReader<'t, '_> {
    /// Reads the line at a byte with its value, and returns the start of the next line.
    fn line(&mut self, start: usize) -> usize {
        let line = self.line_at(start);
        let next = start + line.len().max(1);
        let mut column = blanks(line);
        let mut content = line.get(column..).unwrap_or_default();
        if content.trim_end() == "---" || content.trim_end() == "..." {
            self.frames.open.clear();
            self.levels.truncate(1);
            return next;
        }
        if content.trim().is_empty() || content.starts_with("{{") || content.starts_with("{%") {
            return next;
        }
        if content.starts_with('#') {
            self.comments.push((start + column, start + line.trim_end().len()));
            return next;
        }
        while content == "-" || content.starts_with("- ") || content.trim_end() == "-" {
            let after = content.get(1..).unwrap_or_default();
            let blanks = blanks(after);
            self.member(column, column + 1 + blanks.max(1));
            column += 1 + blanks;
            content = after.get(blanks..).unwrap_or_default();
        }
        self.content(content, start + column, column).unwrap_or(next)
    }

    /// Enters a member of a list, with its keys at column `inside`.
    fn member(&mut self, dash: usize, inside: usize) {
        self.leave(dash + 1);
        let Some(parent) = self.levels.last().copied() else { return };
        self.enter(parent.last, inside);
    }

    /// Leaves the maps whose keys are at a column or further right.
    fn leave(&mut self, column: usize) {
        while self.levels.len() > 1 && self.levels.last().is_some_and(|level| level.indent >= column) {
            self.levels.pop();
        }
        let depth = self.levels.last().map_or(0, |level| level.depth);
        self.frames.open.truncate(depth);
    }

    fn enter(&mut self, key: Range, indent: usize) {
        if self.levels.len() < MAX_DEPTH {
            self.frames.push(key, key);
            self.levels.push(Level { indent, depth: self.frames.open.len(), last: (key.0, key.0) });
        }
    }

    /// Reads a key with or without a value, or a value alone. Returns where to continue, if not at the next line.
    fn content(&mut self, content: &'t str, at: usize, column: usize) -> Option<usize> {
        let Some((name, value)) = pair(content) else {
            let level = self.levels.last().copied()?;
            return self.value(content, at, level.last, column);
        };
        self.leave(column + 1);
        let name = (at + name.0, at + name.1);
        match self.levels.last().copied() {
            Some(level) if level.indent < column => self.enter(level.last, column),
            _ => {}
        }
        if let Some(level) = self.levels.last_mut() {
            level.last = name;
        }
        self.value(content.get(value..)?, at + value, name, column)
    }

    /// Reads the value of a key in the rest of its line.
    fn value(&mut self, rest: &'t str, at: usize, name: Range, column: usize) -> Option<usize> {
        let blanks = rest.len() - rest.trim_start().len();
        let (mut rest, mut at) = (rest.trim(), at + blanks);
        // Anchors and tags come before the value.
        while rest.starts_with(['&', '!']) {
            let after = rest.find([' ', '\t']).unwrap_or(rest.len());
            let tail = rest.get(after..).unwrap_or_default();
            at += rest.len() - tail.trim_start().len();
            rest = tail.trim_start();
        }
        let first = rest.chars().next()?;
        match first {
            '#' => {
                self.comments.push((at, at + rest.len()));
                None
            }
            '|' | '>' => Some(self.after_block(at, column)),
            '{' if rest.starts_with("{{") => None,
            '{' | '[' => {
                self.frames.push(name, name);
                let block = Block { start: at, end: self.end, dialect: Dialect::Yaml };
                let end = brackets::read_value(&block, &mut self.tree, &mut self.frames, self.comments);
                self.frames.open.pop();
                Some(self.after_line(end))
            }
            '"' | '\'' => {
                let inside = rest.get(1..)?;
                let length = inside.find(first).unwrap_or(inside.len());
                self.pair(name, (at + 1, at + 1 + length));
                None
            }
            _ => {
                let length = rest.find(" #").unwrap_or(rest.len());
                if length < rest.len() {
                    self.comments.push((at + length + 1, at + rest.len()));
                }
                let value = rest.get(..length).unwrap_or_default().trim_end();
                self.pair(name, (at, at + value.len()));
                None
            }
        }
    }

    fn pair(&mut self, name: Range, value: Range) {
        self.tree.pair(&mut self.frames, name, value, true);
    }

    /// The line after the block scalar of a key, whose lines are indented further.
    fn after_block(&self, at: usize, column: usize) -> usize {
        let mut next = self.after_line(at);
        while next < self.end {
            let line = self.line_at(next);
            if !line.trim().is_empty() && blanks(line) <= column {
                break;
            }
            next += line.len().max(1);
        }
        next
    }

    fn after_line(&self, at: usize) -> usize {
        at + self.line_at(at).len().max(1)
    }

    /// The text from a byte to the end of its line.
    fn line_at(&self, at: usize) -> &'t str {
        self.tree.slice((at, self.end)).split_inclusive('\n').next().unwrap_or_default()
    }
}

/// The bytes of a key, and the offset of its value.
fn pair(content: &str) -> Option<(Range, usize)> {
    let first = content.bytes().next()?;
    if let b'"' | b'\'' = first {
        let length = content.get(1..)?.find(char::from(first))?;
        let after = content.get(length + 2..)?;
        let blanks = blanks(after);
        return after.get(blanks..)?.starts_with(':').then_some(((1, 1 + length), length + 3 + blanks));
    }
    let plain = |byte: &u8| is_name_byte(*byte) || *byte >= 0x80 || b"-./$@<>(){} ".contains(byte);
    let length = content.bytes().take_while(plain).count();
    let after = content.get(length..)?.strip_prefix(':')?;
    let ends = after.is_empty() || after.starts_with([' ', '\t', '\r', '\n']);
    (ends && length > 0).then_some(((0, content.get(..length)?.trim_end().len()), length + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(text: &str) -> Tree<'_> {
        read(text, &Block { start: 0, end: text.len(), dialect: Dialect::Yaml }, &mut Vec::new())
    }

    #[test]
    fn pairs_and_the_keys_around_them_are_read() {
        let cases: [(&str, &[&str]); 6] = [
            (
                "properties:\n  containers:\n  - name: a\n    properties:\n      resources:\n        requests:\n          gpu:\n            count: 1\n            sku: V100 # old\nlocation: 'westeurope'\n",
                &[
                    "properties/containers/properties/resources/requests/gpu/count=\"1",
                    "properties/containers/properties/resources/requests/gpu/sku=\"V100",
                    "/location=\"westeurope",
                ],
            ),
            // Values in brackets are read across lines.
            (
                "gpu: {count: 2,\n  sku: K80}\nresources:\n  accelerators: [K80, 'V100:4']\nsize: NC6\n",
                &[
                    "gpu/gpu/count= 2",
                    "gpu/gpu/sku= K80",
                    "resources/accelerators/accelerators/accelerators=\"K80",
                    "resources/accelerators/accelerators/accelerators=\"V100:4",
                    "/size=\"NC6",
                ],
            ),
            // Block scalars are not keys.
            (
                "run: |\n  size: Standard_NC6\n\n  location: x\nsize: Standard_NC12\n",
                &["/size=\"Standard_NC12"],
            ),
            // Lists may be indented like their key.
            (
                "jobs:\n- size: Standard_NC6\n- size: Standard_NC12\n  location: eastus\n",
                &["jobs/size=\"Standard_NC6", "jobs/size=\"Standard_NC12", "jobs/location=\"eastus"],
            ),
            // A template is read as far as it goes.
            (
                "{{- if .Values.gpu }}\nvm:\n  size: {{ .Values.size }}\n  location: eastus\n{{- end }}\n",
                &["vm/location=\"eastus"],
            ),
            // Documents are independent.
            ("a:\n  size: NC6\n---\nsize: NC12\n", &["a/size=\"NC6", "/size=\"NC12"]),
        ];
        for (text, expected) in cases {
            assert_eq!(tree(text).written(), expected, "{text}");
        }
    }

    #[test]
    fn members_of_a_list_are_scopes_of_their_own() {
        let tree = tree("jobs:\n- size: Standard_NC6\n- size: Standard_NC12\n");
        assert_ne!(tree.pairs[0].scope, tree.pairs[1].scope);
    }
}
