//! Reads YAML line by line.
//!
//! A YAML parser rejects a file at its first error, and many files here are templates that only become YAML later. This
//! reader interprets each line by its look, and skips what it does not understand.

use super::brackets;
use super::names::is_name_byte;
use super::tree::{Frames, Range, Tree};

/// Reads the bytes from `start` to `end`.
pub(super) fn read(text: &str, start: usize, end: usize, comments: &mut Vec<Range>) -> Tree {
    let mut reader = YamlReader {
        text,
        end,
        tree: Tree::default(),
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
    /// Its last key.
    last: Range,
}

struct YamlReader<'t, 'c> {
    text: &'t str,
    end: usize,
    tree: Tree,
    frames: Frames,
    levels: Vec<Level>,
    comments: &'c mut Vec<Range>,
}

/// The limit for nested levels; deeper ones count as the last.
const MAX_DEPTH: usize = 128;

impl<'t> YamlReader<'t, '_> {
    /// Reads the line at a byte with its value, and returns the start of the next line.
    fn line(&mut self, start: usize) -> usize {
        let rest = self.text.get(start..self.end).unwrap_or_default();
        let line = rest.split_inclusive('\n').next().unwrap_or_default();
        let next = start + line.len().max(1);
        let mut column = line.len() - line.trim_start_matches([' ', '\t']).len();
        let mut content = line.get(column..).unwrap_or_default();
        if content.trim_end() == "---" || content.trim_end() == "..." {
            self.frames.truncate(0);
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
            let blanks = after.len() - after.trim_start_matches([' ', '\t']).len();
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
        self.frames.truncate(depth);
    }

    fn enter(&mut self, key: Range, indent: usize) {
        if self.levels.len() < MAX_DEPTH {
            self.frames.push(key, key);
            self.levels.push(Level { indent, depth: self.frames.depth(), last: (key.0, key.0) });
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
                let end = brackets::read_value(
                    self.text,
                    at,
                    self.end,
                    &mut self.tree,
                    &mut self.frames,
                    self.comments,
                );
                self.frames.truncate(self.frames.depth().saturating_sub(1));
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
        self.tree.pair(self.text, &mut self.frames, name, value, true);
    }

    /// The line after the block scalar of a key, whose lines are indented further.
    fn after_block(&self, at: usize, column: usize) -> usize {
        let mut next = self.after_line(at);
        while next < self.end {
            let rest = self.text.get(next..self.end).unwrap_or_default();
            let line = rest.split_inclusive('\n').next().unwrap_or_default();
            let indent = line.len() - line.trim_start_matches([' ', '\t']).len();
            if !line.trim().is_empty() && indent <= column {
                break;
            }
            next += line.len().max(1);
        }
        next
    }

    fn after_line(&self, at: usize) -> usize {
        let rest = self.text.get(at..self.end).unwrap_or_default();
        at + rest.find('\n').map_or(rest.len().max(1), |length| length + 1)
    }
}

/// The bytes of a key, and the offset of its value.
fn pair(content: &str) -> Option<(Range, usize)> {
    let first = content.bytes().next()?;
    if let b'"' | b'\'' = first {
        let length = content.get(1..)?.find(char::from(first))?;
        let after = content.get(length + 2..)?;
        let blanks = after.len() - after.trim_start_matches([' ', '\t']).len();
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
    use super::super::tree::{Pair, slice};
    use super::*;

    fn pairs(text: &str) -> Vec<String> {
        let mut comments = Vec::new();
        let tree = read(text, 0, text.len(), &mut comments);
        let shown = |pair: &Pair| {
            let around: Vec<&str> = tree
                .around(pair.scope)
                .filter_map(|scope| Some(slice(text, tree.scope(scope)?.key)))
                .collect();
            let path: Vec<&str> = around.into_iter().rev().collect();
            format!("{}/{}={}", path.join("/"), slice(text, pair.name), slice(text, pair.value))
        };
        tree.pairs.iter().map(shown).collect()
    }

    #[test]
    fn maps_and_lists_nest() {
        let text = "properties:\n  containers:\n  - name: a\n    properties:\n      resources:\n        requests:\n          gpu:\n            count: 1\n            sku: V100 # old\nlocation: 'westeurope'\n";
        assert_eq!(
            pairs(text),
            [
                "properties/containers/properties/resources/requests/gpu/count=1",
                "properties/containers/properties/resources/requests/gpu/sku=V100",
                "/location=westeurope"
            ]
        );
    }

    #[test]
    fn values_in_brackets_are_read_across_lines() {
        let text = "gpu: {count: 2,\n  sku: K80}\nresources:\n  accelerators: [K80, 'V100:4']\nsize: NC6\n";
        assert_eq!(
            pairs(text),
            [
                "gpu/gpu/count=2",
                "gpu/gpu/sku=K80",
                "resources/accelerators/accelerators/accelerators=K80",
                "resources/accelerators/accelerators/accelerators=V100:4",
                "/size=NC6"
            ]
        );
    }

    #[test]
    fn block_scalars_are_not_keys() {
        let text = "run: |\n  size: Standard_NC6\n\n  location: x\nsize: Standard_NC12\n";
        assert_eq!(pairs(text), ["/size=Standard_NC12"]);
    }

    #[test]
    fn lists_may_be_indented_like_their_key() {
        let text = "jobs:\n- size: Standard_NC6\n- size: Standard_NC12\n  location: eastus\n";
        assert_eq!(
            pairs(text),
            ["jobs/size=Standard_NC6", "jobs/size=Standard_NC12", "jobs/location=eastus"]
        );
        let tree = read(text, 0, text.len(), &mut Vec::new());
        assert_ne!(tree.pairs[0].scope, tree.pairs[1].scope);
    }

    #[test]
    fn a_template_is_read_as_far_as_it_goes() {
        let text = "{{- if .Values.gpu }}\nvm:\n  size: {{ .Values.size }}\n  location: eastus\n{{- end }}\n";
        assert_eq!(pairs(text), ["vm/location=eastus"]);
    }

    #[test]
    fn documents_are_independent() {
        assert_eq!(pairs("a:\n  size: NC6\n---\nsize: NC12\n"), ["a/size=NC6", "/size=NC12"]);
    }
}
