//! Reads JSON, Terraform, Bicep and Python: brackets, and pairs with a colon or an equals sign.

use super::blocks::Block;
use super::lexer::{Lexer, Token, TokenKind};
use super::tree::{Frame, Frames, MAX_DEPTH, Range, Tree};
use crate::read::key::Key;

pub(in crate::read) fn read<'t>(text: &'t str, block: &Block, comments: &mut Vec<Range>) -> Tree<'t> {
    let mut tree = Tree::new(text);
    let mut frames = Frames::default();
    let mut parser = BracketParser::new(block.start, &mut tree, &mut frames);
    for token in Lexer::new(text, block, comments) {
        parser.take(token);
    }
    tree
}

/// Reads one value in brackets at `start`, inside the open frames, and returns its end.
pub(in crate::read) fn read_value(
    block: &Block,
    tree: &mut Tree<'_>,
    frames: &mut Frames,
    comments: &mut Vec<Range>,
) -> usize {
    let (text, depth) = (tree.text, frames.open.len());
    let mut parser = BracketParser::new(block.start, tree, frames);
    let mut last = block.start;
    for token in Lexer::new(text, block, comments) {
        parser.take(token);
        last = token.end;
        if parser.frames.open.len() <= depth && parser.frames.too_deep == 0 {
            break;
        }
    }
    frames.too_deep = 0;
    frames.open.truncate(depth);
    last
}

struct BracketParser<'t, 'b> {
    tree: &'b mut Tree<'t>,
    frames: &'b mut Frames,
    /// The start of the statement, and its first two tokens.
    statement: usize,
    first: Option<Token>,
    second: Option<Token>,
    /// The previous tokens, the nearest last.
    before: [Option<Token>; 3],
    /// A key that waits for its value.
    key: Option<Range>,
    /// The key of the value before, for `name: type = value`.
    annotated: Option<Range>,
}

impl<'t, 'b> BracketParser<'t, 'b> {
    fn new(start: usize, tree: &'b mut Tree<'t>, frames: &'b mut Frames) -> Self {
        let (first, second, key, annotated) = (None, None, None, None);
        Self { tree, frames, statement: start, first, second, before: [None; 3], key, annotated }
    }

    fn take(&mut self, token: Token) {
        match token.kind {
            TokenKind::Mark(b':' | b'=') => self.separator(token),
            TokenKind::Word | TokenKind::Text => self.value(token),
            TokenKind::Mark(bracket @ (b'{' | b'[' | b'(')) => self.open(token, bracket),
            TokenKind::Mark(b'}' | b']' | b')') => self.close(token),
            TokenKind::Mark(b',' | b';') => self.new_statement(token.end),
            TokenKind::Newline => {
                // A newline inside parentheses does not end a statement.
                if self.frames.open.last().is_none_or(|frame| frame.bracket != b'(') {
                    self.new_statement(token.end);
                }
                return;
            }
            TokenKind::Mark(_) => self.key = None,
        }
        self.before.rotate_left(1);
        if let Some(last) = self.before.last_mut() {
            *last = Some(token);
        }
    }

    fn previous(&self) -> Option<Token> {
        self.before.last().copied().flatten()
    }

    fn separator(&mut self, token: Token) {
        let previous = self.previous();
        let named = previous.filter(|token| matches!(token.kind, TokenKind::Word | TokenKind::Text));
        self.key = named.map(|name| self.name_of(name, token));
    }

    /// The name that a value goes role: not always the word before the mark.
    fn name_of(&self, before: Token, mark: Token) -> Range {
        if mark.kind == TokenKind::Mark(b'=') {
            let declares = self.first.is_some_and(|token| self.tree.slice(token.range()) == "param");
            match (declares, self.second, self.annotated) {
                (true, Some(name), _) => return name.range(),
                (false, _, Some(name)) => return name,
                _ => {}
            }
        }
        before.range()
    }

    fn value(&mut self, token: Token) {
        match (self.first, self.second) {
            (None, _) => self.first = Some(token),
            (Some(_), None) => self.second = Some(token),
            _ => {}
        }
        self.annotated = None;
        let last_key = self.frames.last_key();
        if let Some(name) = self.key.take() {
            self.tree.pair(self.frames, name, token.range(), token.kind == TokenKind::Text);
            self.annotated = (token.kind == TokenKind::Word).then_some(name);
        } else if Key::of(self.tree.slice(last_key)) == Key::Accelerators
            && self.frames.open.last().is_some_and(|frame| frame.bracket == b'[')
        {
            // A list of GPUs has no keys.
            self.tree.pair(self.frames, last_key, token.range(), true);
        }
    }

    fn open(&mut self, token: Token, bracket: u8) {
        let before = self.previous().filter(|before| before.kind == TokenKind::Word && bracket == b'(');
        let key = match (self.key.take(), before) {
            (Some(key), _) => key,
            (None, Some(callee)) => callee.range(),
            // Blocks of Terraform are named by the statement before them, list members by their list.
            (None, None) => self.first.map_or_else(|| self.frames.last_key(), Token::range),
        };
        if self.frames.open.len() >= MAX_DEPTH {
            self.frames.too_deep += 1;
        } else {
            let head = (self.statement, token.start);
            self.frames.open.push(Frame { key, head, id: None, statement: self.statement, bracket });
        }
        self.new_statement(token.end);
    }

    fn close(&mut self, token: Token) {
        self.new_statement(token.end);
        if self.frames.too_deep > 0 {
            self.frames.too_deep -= 1;
        } else if let Some(frame) = self.frames.open.pop() {
            self.statement = frame.statement;
        }
    }

    fn new_statement(&mut self, at: usize) {
        self.statement = at;
        (self.first, self.second, self.key, self.annotated) = (None, None, None, None);
    }
}

#[cfg(test)]
mod tests {
    use super::super::dialect::Dialect;
    use super::*;

    fn tree(text: &str, dialect: Dialect) -> Tree<'_> {
        read(text, &Block { start: 0, end: text.len(), dialect }, &mut Vec::new())
    }

    #[test]
    fn pairs_and_the_keys_around_them_are_read() {
        let cases: [(Dialect, &str, &[&str]); 6] = [
            (
                Dialect::Json,
                r#"{"resources": [{"type": "Microsoft.Compute/virtualMachines", "properties": {"hardwareProfile": {"vmSize": "Standard_NC6"}}}]}"#,
                &[
                    "/resources/resources/type=\"Microsoft.Compute/virtualMachines",
                    "/resources/resources/properties/hardwareProfile/vmSize=\"Standard_NC6",
                ],
            ),
            // A block of Terraform is known by its first word.
            (
                Dialect::Terraform,
                "resource \"azurerm_batch_pool\" \"p\" {\n  vm_size = \"STANDARD_NC6\"\n  count = 2\n}\n",
                &["resource/vm_size=\"STANDARD_NC6", "resource/count= 2"],
            ),
            // Calls name their arguments.
            (
                Dialect::Python,
                "c = AmlCompute.provisioning_configuration(\n    vm_size='STANDARD_NC6',\n    location=where)\n",
                &[
                    "AmlCompute.provisioning_configuration/vm_size=\"STANDARD_NC6",
                    "AmlCompute.provisioning_configuration/location= where",
                ],
            ),
            // Declarations with a type keep their name.
            (Dialect::Bicep, "param gpuSize string = 'Standard_NC6'\n", &["/gpuSize=\"Standard_NC6"]),
            (
                Dialect::Python,
                "vm_size: str = \"Standard_NC6\"\n",
                &["/vm_size= str", "/vm_size=\"Standard_NC6"],
            ),
            // Comparisons are not pairs.
            (Dialect::Python, "if size == \"Standard_NC6\":\n", &[]),
        ];
        for (dialect, text, expected) in cases {
            assert_eq!(tree(text, dialect).written(), expected, "{text}");
        }
    }

    #[test]
    fn a_terraform_block_has_its_head() {
        let tree = tree("resource \"azurerm_batch_pool\" \"p\" {\n  count = 2\n}\n", Dialect::Terraform);
        assert_eq!(tree.slice(tree.scopes[0].head).trim(), "resource \"azurerm_batch_pool\" \"p\"");
    }

    #[test]
    fn brackets_without_end_cost_no_depth() {
        let text = "{".repeat(100_000) + "\"size\": \"Standard_NC6\"" + &"}".repeat(100_000);
        assert_eq!(tree(&text, Dialect::Json).pairs.len(), 1);
    }
}
