//! Scopes and the pairs in them: the structure that maps, blocks and calls share in all languages.
//!
//! Only pairs that may matter are kept, and only the scopes around those, so a tree is small whatever the text is.

use std::collections::HashMap;

use crate::read::key::Key;
use crate::read::names::{is_bare_gpu_size, is_gpu_size};

/// Deeper brackets count as part of their parent.
pub(in crate::read) const MAX_DEPTH: usize = 128;

pub(in crate::read) type Range = (usize, usize);

/// The contents of brackets, or of a key.
#[derive(Clone, Copy, Debug)]
pub(in crate::read) struct Scope {
    pub(in crate::read) parent: Option<usize>,
    /// The key it is the value of, or the callee.
    pub(in crate::read) key: Range,
    /// The statement up to the bracket.
    pub(in crate::read) head: Range,
}

/// A key and a single value.
#[derive(Clone, Copy, Debug)]
pub(in crate::read) struct Pair {
    pub(in crate::read) scope: Option<usize>,
    pub(in crate::read) name: Range,
    pub(in crate::read) key: Key,
    pub(in crate::read) value: Range,
    /// Whether the value is a literal; otherwise it is a name or a number.
    pub(in crate::read) literal: bool,
}

/// The scopes and pairs of a text.
#[derive(Debug)]
pub(in crate::read) struct Tree<'t> {
    pub(in crate::read) text: &'t str,
    pub(in crate::read) scopes: Vec<Scope>,
    pub(in crate::read) pairs: Vec<Pair>,
    first: HashMap<(Option<usize>, Key), usize>,
}

impl<'t> Tree<'t> {
    pub(in crate::read) fn new(text: &'t str) -> Self {
        Self { text, scopes: Vec::new(), pairs: Vec::new(), first: HashMap::new() }
    }

    pub(in crate::read) fn slice(&self, range: Range) -> &'t str {
        self.text.get(range.0..range.1).unwrap_or_default()
    }

    /// Keeps a pair if it may matter.
    pub(in crate::read) fn pair(&mut self, frames: &mut Frames, name: Range, value: Range, literal: bool) {
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

    pub(in crate::read) fn first(&self, scope: Option<usize>, key: Key) -> Option<&Pair> {
        self.pairs.get(*self.first.get(&(scope, key))?)
    }

    /// A scope and its ancestors, up to the text itself (`None`).
    pub(in crate::read) fn around(&self, scope: Option<usize>) -> impl Iterator<Item = Option<usize>> {
        let mut next = Some(scope);
        std::iter::from_fn(move || {
            let here = next?;
            next = here.map(|id| self.scopes.get(id).and_then(|scope| scope.parent));
            Some(here)
        })
    }

    pub(in crate::read) fn scope(&self, id: Option<usize>) -> Option<&Scope> {
        self.scopes.get(id?)
    }

    /// The pairs with the keys around them, as tests compare them: a quote marks a literal.
    #[cfg(test)]
    pub(in crate::read) fn written(&self) -> Vec<String> {
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
pub(in crate::read) struct Frames {
    pub(in crate::read) open: Vec<Frame>,
    /// Brackets beyond [`MAX_DEPTH`].
    pub(in crate::read) too_deep: usize,
}

#[derive(Clone, Copy, Debug)]
pub(in crate::read) struct Frame {
    pub(in crate::read) key: Range,
    pub(in crate::read) head: Range,
    pub(in crate::read) id: Option<usize>,
    /// The start of the statement around it.
    pub(in crate::read) statement: usize,
    pub(in crate::read) bracket: u8,
}

impl Frames {
    pub(in crate::read) fn push(&mut self, key: Range, head: Range) {
        self.open.push(Frame { key, head, id: None, statement: head.0, bracket: b'{' });
    }

    pub(in crate::read) fn last_key(&self) -> Range {
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
