//! From text to choices.

mod az;
mod blocks;
mod brackets;
mod containers;
mod context;
mod dialect;
mod draft;
mod key;
mod lexer;
mod mention;
mod names;
mod sdk;
mod shell;
mod sizes;
mod tree;
mod variables;
mod yaml;

use crate::choice::Choice;
use blocks::Block;
use dialect::Dialect;
use draft::Draft;
use tree::Tree;
use variables::Variables;

/// So many choices of one text are told. A program has a handful; a text with more is a list of sizes.
pub const MOST_CHOICES: usize = 10_000;

/// What a text chooses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The choices in the order of the text.
    pub choices: Vec<Choice>,
    /// How many more there are.
    pub left_out: usize,
}

/// Finds the choices a text makes. Any text has a reading: what is not understood is skipped.
pub fn read(text: &str) -> Reading {
    let blocks = blocks::of(text);
    let mut draft = Draft::new(text);
    let mut variables = Variables::default();
    let mut trees = Vec::new();
    for block in &blocks {
        let tree = structure(text, block, &mut draft);
        variables.gather(text, block);
        variables.gather_pairs(text, &tree);
        trees.push(tree);
    }
    draft.comments.sort_unstable();
    variables.sort();
    az::read(text, &variables, &mut draft);
    let hint = context::hint_of(text);
    for tree in &trees {
        sizes::read(text, tree, hint, &mut draft);
        containers::read(text, tree, &mut draft);
    }
    sdk::read(text, &mut draft);
    mention::read(text, hint, &mut draft);
    draft.finish()
}

fn structure(text: &str, block: &Block, draft: &mut Draft<'_>) -> Tree {
    match block.dialect {
        Dialect::Prose => Tree::default(),
        Dialect::Shell => {
            let comments = cudock_base::shell::comments(text, block.start..block.end);
            draft.comments.extend(comments.into_iter().map(|bytes| (bytes.start, bytes.end)));
            Tree::default()
        }
        Dialect::Yaml => yaml::read(text, block.start, block.end, &mut draft.comments),
        Dialect::Json | Dialect::Terraform | Dialect::Bicep | Dialect::Python | Dialect::Plain => {
            brackets::read(text, block.start, block.end, block.dialect, &mut draft.comments)
        }
    }
}
