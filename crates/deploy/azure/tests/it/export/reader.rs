//! Reads the parts of Bicep and of HCL that are written: blocks, objects, lists, strings and expressions.

use serde_json::{Map, Value, json};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    Bicep,
    Hcl,
}

/// A declaration at the top of a file, or a block within a block: its tokens, and its value.
#[derive(Debug)]
pub(super) struct Declaration {
    pub(super) tokens: Vec<String>,
    pub(super) value: Value,
}

/// Reads a file. An expression becomes `{"$": text}` without blanks.
pub(super) fn read(text: &str, language: Language) -> Vec<Declaration> {
    let mut reader = Reader { rest: text, language };
    let mut declarations = Vec::new();
    loop {
        reader.skip_blanks_and_comments();
        if reader.rest.is_empty() {
            return declarations;
        }
        let mut tokens = Vec::new();
        let value = loop {
            reader.skip_spaces();
            match reader.rest.chars().next().unwrap_or('\n') {
                '\n' => break Value::Null,
                '=' => {
                    reader.bump(1);
                    reader.skip_spaces();
                    break reader.value();
                }
                '{' => break reader.object(),
                c if c == reader.quote() => tokens.push(reader.string()),
                _ => tokens.push(reader.word()),
            }
        };
        declarations.push(Declaration { tokens, value });
    }
}

struct Reader<'t> {
    rest: &'t str,
    language: Language,
}

impl<'t> Reader<'t> {
    fn quote(&self) -> char {
        if self.language == Language::Bicep { '\'' } else { '"' }
    }

    fn bump(&mut self, bytes: usize) {
        self.rest = &self.rest[bytes..];
    }

    fn take(&mut self, is_taken: impl Fn(char) -> bool) -> &'t str {
        let (taken, rest) = self.rest.split_at(self.rest.find(|c| !is_taken(c)).unwrap_or(self.rest.len()));
        self.rest = rest;
        taken
    }

    fn skip_spaces(&mut self) {
        self.take(|c| c == ' ');
    }

    fn skip_blanks_and_comments(&mut self) {
        loop {
            self.take(char::is_whitespace);
            if !self.rest.starts_with("//") && !self.rest.starts_with('#') {
                return;
            }
            self.take(|c| c != '\n');
        }
    }

    fn word(&mut self) -> String {
        let word = self.take(|c| c.is_ascii_alphanumeric() || "_@().".contains(c));
        assert!(!word.is_empty(), "no word at {:.60}", self.rest);
        word.to_owned()
    }

    fn value(&mut self) -> Value {
        match self.rest.chars().next().unwrap() {
            '{' => self.object(),
            '[' => self.list(),
            c if c == self.quote() => Value::from(self.string()),
            _ => self.expression(),
        }
    }

    fn object(&mut self) -> Value {
        let mut members = Map::new();
        self.bump(1);
        loop {
            self.skip_blanks_and_comments();
            if self.rest.starts_with('}') {
                self.bump(1);
                return Value::Object(members);
            }
            let key = if self.rest.starts_with(self.quote()) { self.string() } else { self.word() };
            self.skip_spaces();
            // Blocks of HCL have no equals sign.
            if !self.rest.starts_with('{') {
                assert!(self.rest.starts_with([':', '=']), "no separator at {:.60}", self.rest);
                self.bump(1);
                self.skip_spaces();
            }
            let value = self.value();
            assert!(members.insert(key.clone(), value).is_none(), "`{key}` twice");
        }
    }

    fn list(&mut self) -> Value {
        let mut items = Vec::new();
        self.bump(1);
        loop {
            self.take(|c| c.is_whitespace() || c == ',');
            if self.rest.starts_with(']') {
                self.bump(1);
                return Value::Array(items);
            }
            items.push(self.value());
        }
    }

    fn string(&mut self) -> String {
        let quote = self.quote();
        let mut text = String::new();
        self.bump(1);
        loop {
            let c = self.rest.chars().next().unwrap();
            let after = &self.rest[c.len_utf8()..];
            if self.language == Language::Hcl
                && (self.rest.starts_with("$${") || self.rest.starts_with("%%{"))
            {
                self.bump(1);
                text.push_str(&self.rest[..2]);
                self.bump(2);
                continue;
            }
            assert!(!self.rest.starts_with("${"), "an interpolation at {:.60}", self.rest);
            self.rest = after;
            match c {
                '\\' => self.escape(&mut text),
                c if c == quote => return text,
                '\n' => panic!("a string ends with its line: {text}"),
                c => text.push(c),
            }
        }
    }

    fn escape(&mut self, text: &mut String) {
        let c = self.rest.chars().next().unwrap();
        self.bump(c.len_utf8());
        match c {
            'n' => text.push('\n'),
            'r' => text.push('\r'),
            't' => text.push('\t'),
            'u' => {
                let digits =
                    self.take(|c| c.is_ascii_hexdigit() || c == '{').trim_start_matches('{').to_owned();
                self.take(|c| c == '}');
                text.push(char::from_u32(u32::from_str_radix(&digits, 16).unwrap()).unwrap());
            }
            '\\' | '\'' | '"' | '$' => text.push(c),
            other => panic!("an unknown escape: {other}"),
        }
    }

    /// A number, a constant, or what is to be evaluated.
    fn expression(&mut self) -> Value {
        let mut depth = 0_usize;
        let mut is_quoted = false;
        let end = self.rest.char_indices().find(|(_, c)| {
            is_quoted ^= *c == self.quote();
            match c {
                '(' | '[' if !is_quoted => depth += 1,
                ')' | ']' if !is_quoted && depth > 0 => depth -= 1,
                '\n' | ']' | '}' => return true,
                ',' if depth == 0 => return true,
                _ => {}
            }
            false
        });
        let (text, rest) = self.rest.split_at(end.map_or(self.rest.len(), |(at, _)| at));
        self.rest = rest;
        let text = text.trim();
        let number = text.strip_prefix("json('").and_then(|number| number.strip_suffix("')"));
        serde_json::from_str(number.unwrap_or(text)).unwrap_or_else(|_| json!({"$": text.replace(' ', "")}))
    }
}
