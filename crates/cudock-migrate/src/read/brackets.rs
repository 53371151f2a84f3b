//! Reads JSON, Terraform, Bicep and Python: brackets, and pairs with a colon or an equals sign.

use super::dialect::Dialect;
use super::key::Key;
use super::lexer::{Lexer, Token, TokenKind};
use super::tree::{Frame, Frames, MAX_DEPTH, Range, Tree, slice};

/// Reads the bytes from `start` to `end`.
pub(super) fn read(
    text: &str,
    start: usize,
    end: usize,
    dialect: Dialect,
    comments: &mut Vec<Range>,
) -> Tree {
    let mut tree = Tree::default();
    let mut frames = Frames::default();
    let mut parser = BracketParser::new(text, start, &mut tree, &mut frames);
    for token in Lexer::new(text, start, end, dialect, comments) {
        parser.take(token);
    }
    parser.finish();
    tree
}

/// Reads one value in brackets at `start`, inside the open frames, and returns its end.
pub(super) fn read_value(
    text: &str,
    start: usize,
    end: usize,
    tree: &mut Tree,
    frames: &mut Frames,
    comments: &mut Vec<Range>,
) -> usize {
    let depth = frames.depth();
    let mut parser = BracketParser::new(text, start, tree, frames);
    let mut last = start;
    for token in Lexer::new(text, start, end, Dialect::Yaml, comments) {
        parser.take(token);
        last = token.end;
        if parser.frames.depth() <= depth && parser.frames.too_deep == 0 {
            break;
        }
    }
    parser.finish();
    frames.truncate(depth);
    last
}

struct BracketParser<'t, 'b> {
    text: &'t str,
    tree: &'b mut Tree,
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
    fn new(text: &'t str, start: usize, tree: &'b mut Tree, frames: &'b mut Frames) -> Self {
        let (first, second, key, annotated) = (None, None, None, None);
        Self { text, tree, frames, statement: start, first, second, before: [None; 3], key, annotated }
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
            let declares =
                self.first.is_some_and(|token| slice(self.text, (token.start, token.end)) == "param");
            match (declares, self.second, self.annotated) {
                (true, Some(name), _) => return (name.start, name.end),
                (false, _, Some(name)) => return name,
                _ => {}
            }
        }
        (before.start, before.end)
    }

    fn value(&mut self, token: Token) {
        match (self.first, self.second) {
            (None, _) => self.first = Some(token),
            (Some(_), None) => self.second = Some(token),
            _ => {}
        }
        let range = (token.start, token.end);
        self.annotated = None;
        if let Some(name) = self.key.take() {
            self.tree.pair(self.text, self.frames, name, range, token.kind == TokenKind::Text);
            self.annotated = (token.kind == TokenKind::Word).then_some(name);
        } else if Key::of(slice(self.text, self.frames.last_key())) == Key::Accelerators {
            // A list of GPUs has no keys.
            let name = self.frames.last_key();
            let in_list = self.frames.open.last().is_some_and(|frame| frame.bracket == b'[');
            if in_list {
                self.tree.pair(self.text, self.frames, name, range, true);
            }
        }
    }

    fn open(&mut self, token: Token, bracket: u8) {
        let before = self.previous().filter(|before| before.kind == TokenKind::Word && bracket == b'(');
        let key = match (self.key.take(), before) {
            (Some(key), _) => key,
            (None, Some(callee)) => (callee.start, callee.end),
            // Blocks of Terraform are named by the statement before them, list members by their list.
            (None, None) => match self.first {
                Some(first) => (first.start, first.end),
                None => self.frames.last_key(),
            },
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
        if self.frames.too_deep > 0 {
            self.frames.too_deep -= 1;
        } else if let Some(frame) = self.frames.open.pop() {
            self.new_statement(token.end);
            self.statement = frame.statement;
            return;
        }
        self.new_statement(token.end);
    }

    fn new_statement(&mut self, at: usize) {
        self.statement = at;
        (self.first, self.second, self.key, self.annotated) = (None, None, None, None);
    }

    fn finish(&mut self) {
        self.frames.too_deep = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::Pair;
    use super::*;

    fn pairs(text: &str, dialect: Dialect) -> Vec<String> {
        let mut comments = Vec::new();
        let tree = read(text, 0, text.len(), dialect, &mut comments);
        let shown = |pair: &Pair| {
            let path: Vec<&str> = tree
                .around(pair.scope)
                .filter_map(|scope| Some(slice(text, tree.scope(scope)?.key)))
                .collect();
            let path: Vec<&str> = path.into_iter().rev().collect();
            let mark = if pair.literal { '"' } else { ' ' };
            format!("{}/{}={mark}{}", path.join("/"), slice(text, pair.name), slice(text, pair.value))
        };
        tree.pairs.iter().map(shown).collect()
    }

    #[test]
    fn json_has_keys_and_values() {
        let text = r#"{"resources": [{"type": "Microsoft.Compute/virtualMachines", "properties": {"hardwareProfile": {"vmSize": "Standard_NC6"}}}]}"#;
        assert_eq!(
            pairs(text, Dialect::Json),
            [
                "/resources/resources/type=\"Microsoft.Compute/virtualMachines",
                "/resources/resources/properties/hardwareProfile/vmSize=\"Standard_NC6"
            ]
        );
    }

    #[test]
    fn a_terraform_block_is_known_by_its_first_word_and_its_head() {
        let text = "resource \"azurerm_batch_pool\" \"p\" {\n  vm_size = \"STANDARD_NC6\"\n  count = 2\n}\n";
        assert_eq!(pairs(text, Dialect::Terraform), ["resource/vm_size=\"STANDARD_NC6", "resource/count= 2"]);
        let mut comments = Vec::new();
        let tree = read(text, 0, text.len(), Dialect::Terraform, &mut comments);
        assert_eq!(slice(text, tree.scopes[0].head).trim(), "resource \"azurerm_batch_pool\" \"p\"");
    }

    #[test]
    fn calls_name_their_arguments() {
        let text =
            "c = AmlCompute.provisioning_configuration(\n    vm_size='STANDARD_NC6',\n    location=where)\n";
        assert_eq!(
            pairs(text, Dialect::Python),
            [
                "AmlCompute.provisioning_configuration/vm_size=\"STANDARD_NC6",
                "AmlCompute.provisioning_configuration/location= where"
            ]
        );
    }

    #[test]
    fn declarations_with_a_type_keep_their_name() {
        assert_eq!(
            pairs("param gpuSize string = 'Standard_NC6'\n", Dialect::Bicep),
            ["/gpuSize=\"Standard_NC6"]
        );
        assert_eq!(
            pairs("vm_size: str = \"Standard_NC6\"\n", Dialect::Python),
            ["/vm_size= str", "/vm_size=\"Standard_NC6"]
        );
    }

    #[test]
    fn comparisons_are_not_pairs() {
        assert!(pairs("if size == \"Standard_NC6\":\n", Dialect::Python).is_empty());
    }

    #[test]
    fn brackets_without_end_cost_no_depth() {
        let text = "{".repeat(100_000) + "\"size\": \"Standard_NC6\"" + &"}".repeat(100_000);
        assert_eq!(pairs(&text, Dialect::Json).len(), 1);
    }
}
