//! Scopes and the pairs in them: the structure that maps, blocks and calls share in all languages.
//!
//! Only pairs that may matter are kept, and only the scopes around those, so a tree is small whatever the text is.

use std::collections::HashMap;

use super::key::Key;
use super::names::{is_bare_gpu_size, is_gpu_size};

/// Deeper brackets count as part of their parent.
pub(super) const MAX_DEPTH: usize = 128;

pub(super) type Range = (usize, usize);

/// The contents of brackets, or of a key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scope {
    pub(super) parent: Option<usize>,
    /// The key it is the value of, or the callee.
    pub(super) key: Range,
    /// The statement up to the bracket.
    pub(super) head: Range,
}

/// A key and a single value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    pub(super) scope: Option<usize>,
    pub(super) name: Range,
    pub(super) key: Key,
    pub(super) value: Range,
    /// Whether the value is a literal; otherwise it is a name or a number.
    pub(super) literal: bool,
}

/// The scopes and pairs of a text.
#[derive(Debug)]
pub(super) struct Tree<'t> {
    pub(super) text: &'t str,
    pub(super) scopes: Vec<Scope>,
    pub(super) pairs: Vec<Pair>,
    first: HashMap<(Option<usize>, Key), usize>,
}

impl<'t> Tree<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, scopes: Vec::new(), pairs: Vec::new(), first: HashMap::new() }
    }

    pub(super) fn slice(&self, range: Range) -> &'t str {
        self.text.get(range.0..range.1).unwrap_or_default()
    }

    /// Keeps a pair if it may matter.
    pub(super) fn pair(&mut self, frames: &mut Frames, name: Range, value: Range, literal: bool) {
        let content = self.slice(value);
        let mut key = Key::of(self.slice(name));
        if key == Key::Other && Key::of(self.slice(frames.last_key())) == Key::Accelerators {
            key = Key::Accelerators;
        }
        if key != Key::Other || is_gpu_size(content) || is_bare_gpu_size(content) {
            let scope = frames.keep(self);
            self.first.entry((scope, key)).or_insert(self.pairs.len());
            self.pairs.push(Pair { scope, name, key, value, literal });
        }
    }

    pub(super) fn first(&self, scope: Option<usize>, key: Key) -> Option<&Pair> {
        self.pairs.get(*self.first.get(&(scope, key))?)
    }

    /// A scope and its ancestors, up to the text itself (`None`).
    pub(super) fn around(&self, scope: Option<usize>) -> impl Iterator<Item = Option<usize>> {
        let mut next = Some(scope);
        std::iter::from_fn(move || {
            let here = next?;
            next = here.map(|id| self.scopes.get(id).and_then(|scope| scope.parent));
            Some(here)
        })
    }

    pub(super) fn scope(&self, id: Option<usize>) -> Option<&Scope> {
        self.scopes.get(id?)
    }

    /// The pairs with the keys around them, as tests compare them: a quote marks a literal.
    #[cfg(test)]
    pub(super) fn written(&self) -> Vec<String> {
        let one = |pair: &Pair| {
            let around = self.around(pair.scope).filter_map(|scope| Some(self.slice(self.scope(scope)?.key)));
            let mut path: Vec<&str> = around.collect();
            path.reverse();
            let mark = if pair.literal { '"' } else { ' ' };
            format!("{}/{}={mark}{}", path.join("/"), self.slice(pair.name), self.slice(pair.value))
        };
        self.pairs.iter().map(one).collect()
    }
}

/// The open scopes. They are added to the tree when a pair in them is kept.
#[derive(Debug, Default)]
pub(super) struct Frames {
    pub(super) open: Vec<Frame>,
    /// Brackets beyond [`MAX_DEPTH`].
    pub(super) too_deep: usize,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) key: Range,
    pub(super) head: Range,
    pub(super) id: Option<usize>,
    /// The start of the statement around it.
    pub(super) statement: usize,
    pub(super) bracket: u8,
}

impl Frames {
    pub(super) fn push(&mut self, key: Range, head: Range) {
        self.open.push(Frame { key, head, id: None, statement: head.0, bracket: b'{' });
    }

    pub(super) fn last_key(&self) -> Range {
        self.open.last().map_or((0, 0), |frame| frame.key)
    }

    /// Adds the open scopes to the tree, and returns the innermost.
    fn keep(&mut self, tree: &mut Tree<'_>) -> Option<usize> {
        let mut parent = None;
        for frame in &mut self.open {
            let id = *frame.id.get_or_insert_with(|| {
                tree.scopes.push(Scope { parent, key: frame.key, head: frame.head });
                tree.scopes.len() - 1
            });
            parent = Some(id);
        }
        parent
    }
}
