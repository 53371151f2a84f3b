//! Finds choices in a text.

mod az;
mod collector;
mod containers;
mod context;
mod key;
mod mention;
mod names;
mod sdk;
mod sizes;
mod syntax;

use collector::ChoiceCollector;
use context::Contexts;
use syntax::blocks::Block;
use syntax::dialect::Dialect;
use syntax::tree::Tree;
use syntax::variables::Variables;

pub use collector::{MAX_CHOICES, Reading};
pub(crate) use syntax::lexer::{Token, TokenKind};

/// Finds the choices in a text. Any text is accepted: what is not understood is skipped.
pub fn read(text: &str) -> Reading {
    let blocks = syntax::blocks::of(text);
    let mut collector = ChoiceCollector::new(text);
    let mut variables = Variables::default();
    let mut trees = Vec::new();
    for block in &blocks {
        let tree = structure(text, block, &mut collector);
        variables.gather(text, block);
        variables.gather_pairs(&tree);
        trees.push(tree);
    }
    collector.comments.sort_unstable();
    variables.sort();
    az::read(text, &variables, &mut collector);
    let hint = context::hint_of(text);
    for tree in &trees {
        let contexts = Contexts::of(tree);
        sizes::read(tree, &contexts, hint, &mut collector);
        containers::read(tree, &contexts, &mut collector);
    }
    sdk::read(text, &mut collector);
    mention::read(text, hint, &mut collector);
    collector.finish()
}

/// The tokens of a Python program.
pub(crate) fn python_tokens(text: &str) -> Vec<Token> {
    let block = Block { start: 0, end: text.len(), dialect: Dialect::Python };
    syntax::lexer::Lexer::new(text, &block, &mut Vec::new()).collect()
}

fn structure<'t>(text: &'t str, block: &Block, collector: &mut ChoiceCollector<'_>) -> Tree<'t> {
    match block.dialect {
        Dialect::Prose => Tree::new(text),
        Dialect::Shell => {
            let comments = cudock_base::shell::comments(text, block.start..block.end);
            collector.comments.extend(comments.into_iter().map(|bytes| (bytes.start, bytes.end)));
            Tree::new(text)
        }
        Dialect::Yaml => syntax::yaml::read(text, block, &mut collector.comments),
        Dialect::Json | Dialect::Terraform | Dialect::Bicep | Dialect::Python | Dialect::Plain => {
            syntax::brackets::read(text, block, &mut collector.comments)
        }
    }
}
