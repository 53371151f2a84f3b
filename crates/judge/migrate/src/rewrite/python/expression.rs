//! Parses one expression.

use std::collections::HashMap;
use std::rc::Rc;

use super::value::{Argument, Expr, PythonCall, Value, slice};
use super::{evaluate, literal};
use crate::read::{Token, TokenKind};

/// Deeper expressions are unknown.
const MAX_DEPTH: usize = 64;

/// The precedence of `**`, which binds to its right and before a sign.
const POWER: u8 = 3;

pub(super) struct Parser<'t, 'p> {
    text: &'t str,
    tokens: &'p [Token],
    at: usize,
    variables: &'p HashMap<&'t str, Value<'t>>,
    /// Open brackets, within which lines do not end.
    brackets: usize,
    depth: usize,
}

impl<'t, 'p> Parser<'t, 'p> {
    pub(super) fn new(
        text: &'t str,
        tokens: &'p [Token],
        variables: &'p HashMap<&'t str, Value<'t>>,
    ) -> Self {
        Self { text, tokens, at: 0, variables, brackets: 0, depth: 0 }
    }

    /// The expression up to the end of the statement; unknown if there is more than can be read.
    pub(super) fn whole(mut self) -> Value<'t> {
        let value = self.expression(0);
        match self.peek().map(|token| token.kind) {
            None | Some(TokenKind::Newline | TokenKind::Mark(b';')) => value,
            _ => Value { expr: Expr::Unknown.into(), ..value },
        }
    }

    /// The expression at the beginning of the text.
    pub(super) fn value(mut self) -> Value<'t> {
        self.postfix()
    }

    fn peek(&mut self) -> Option<Token> {
        loop {
            let token = *self.tokens.get(self.at)?;
            let is_continued = token.kind == TokenKind::Mark(b'\\');
            if is_continued
                || token.kind == TokenKind::Newline && (self.brackets > 0 || self.is_after_backslash())
            {
                self.at += 1;
            } else {
                return Some(token);
            }
        }
    }

    fn is_after_backslash(&self) -> bool {
        let before = self.at.checked_sub(1).and_then(|before| self.tokens.get(before));
        before.is_some_and(|token| token.kind == TokenKind::Mark(b'\\'))
    }

    fn take_mark(&mut self, mark: u8) -> bool {
        let is_next = self.peek().is_some_and(|token| token.kind == TokenKind::Mark(mark));
        self.at += usize::from(is_next);
        is_next
    }

    /// The operator at the current token, its precedence and its number of tokens.
    fn operator(&mut self) -> Option<(&'static str, u8, usize)> {
        let token = self.peek()?;
        let next = self.tokens.get(self.at + 1).filter(|next| next.start == token.end);
        let is_doubled = next.is_some_and(|next| next.kind == token.kind);
        Some(match token.kind {
            TokenKind::Mark(b'+') => ("+", 1, 1),
            TokenKind::Mark(b'-') => ("-", 1, 1),
            TokenKind::Mark(b'*') if is_doubled => ("**", POWER, 2),
            TokenKind::Mark(b'*') => ("*", 2, 1),
            TokenKind::Mark(b'/') if is_doubled => ("//", 2, 2),
            TokenKind::Mark(b'/') => ("/", 2, 1),
            TokenKind::Mark(b'%') => ("%", 2, 1),
            _ => return None,
        })
    }

    /// An expression of operators that bind at least this tightly.
    fn expression(&mut self, least: u8) -> Value<'t> {
        self.depth += 1;
        let mut left = if self.depth > MAX_DEPTH { self.skipped() } else { self.signed() };
        while let Some((operator, precedence, tokens)) = self.operator() {
            if precedence < least || self.depth > MAX_DEPTH {
                break;
            }
            self.at += tokens;
            let right = self.expression(if precedence == POWER { POWER } else { precedence + 1 });
            let expr = evaluate::binary(operator, &left, &right).into();
            left = Value { expr, name: None, start: left.start, end: right.end };
        }
        self.depth -= 1;
        left
    }

    /// A value after its sign. `-2 ** 2` is the negative of a power.
    fn signed(&mut self) -> Value<'t> {
        let Some(token) = self.peek() else { return unknown(self.text.len()) };
        match token.kind {
            TokenKind::Mark(sign @ (b'-' | b'+')) => {
                self.at += 1;
                let value = self.expression(POWER);
                let expr = if sign == b'-' { evaluate::negative(&value).into() } else { value.expr };
                Value { expr, name: None, start: token.start, end: value.end }
            }
            _ => self.postfix(),
        }
    }

    /// An atom with the calls and indices after it.
    fn postfix(&mut self) -> Value<'t> {
        let mut value = self.atom();
        loop {
            let Some(token) = self.peek() else { return value };
            let callee = match &*value.expr {
                Expr::Name(name) => *name,
                _ => value.name.unwrap_or_default(),
            };
            let is_method = matches!(&*value.expr, Expr::Call(_) | Expr::Unknown);
            match token.kind {
                TokenKind::Mark(open @ (b'(' | b'[')) if !callee.is_empty() => {
                    self.at += 1;
                    let arguments = self.arguments(if open == b'(' { b')' } else { b']' });
                    let known = (open == b'(').then(|| evaluate::function(callee, &arguments)).flatten();
                    let call = || Expr::Call(PythonCall { callee, receiver: None, arguments });
                    let expr = known.unwrap_or_else(call).into();
                    value = Value { expr, name: None, start: value.start, end: self.last_end() };
                }
                // `.method` of a call.
                TokenKind::Word if is_method && slice(self.text, token).starts_with('.') => {
                    let callee = slice(self.text, token);
                    self.at += 1;
                    if !self.take_mark(b'(') {
                        return Value { expr: Expr::Unknown.into(), name: None, end: token.end, ..value };
                    }
                    let arguments = self.arguments(b')');
                    let call = PythonCall { callee, receiver: Some(value.expr), arguments };
                    let expr = Rc::new(Expr::Call(call));
                    value = Value { expr, name: None, start: value.start, end: self.last_end() };
                }
                TokenKind::Mark(b'(' | b'[') => {
                    self.at += 1;
                    self.arguments(if token.kind == TokenKind::Mark(b'(') { b')' } else { b']' });
                    let end = self.last_end();
                    value = Value { expr: Expr::Unknown.into(), name: None, start: value.start, end };
                }
                _ => return value,
            }
        }
    }

    fn atom(&mut self) -> Value<'t> {
        let Some(token) = self.peek() else { return unknown(self.text.len()) };
        match token.kind {
            TokenKind::Text => self.string(token),
            TokenKind::Word => {
                self.at += 1;
                let word = slice(self.text, token);
                let is_number = word.trim_start_matches('.').starts_with(|ch: char| ch.is_ascii_digit());
                if is_number { self.number(token, word) } else { self.name(token, word) }
            }
            TokenKind::Mark(open @ (b'(' | b'[' | b'{')) => {
                self.at += 1;
                let expr = match open {
                    b'{' => self.map(),
                    _ => self.list(if open == b'(' { b')' } else { b']' }),
                };
                Value { expr: expr.into(), name: None, start: token.start, end: self.last_end() }
            }
            _ => unknown(token.start),
        }
    }

    fn name(&self, token: Token, word: &'t str) -> Value<'t> {
        let Token { start, end, .. } = token;
        let constant = match word {
            "True" => Some(Expr::Bool(true)),
            "False" => Some(Expr::Bool(false)),
            "None" => Some(Expr::None),
            "lambda" | "not" | "await" | "yield" => Some(Expr::Unknown),
            _ => None,
        };
        match (constant, self.variables.get(word)) {
            (Some(expr), _) => Value { expr: expr.into(), name: None, start, end },
            (None, Some(value)) => Value { expr: Rc::clone(&value.expr), name: Some(word), start, end },
            (None, None) => Value { expr: Expr::Name(word).into(), name: Some(word), start, end },
        }
    }

    /// A number; the sign of an exponent is a token of its own.
    fn number(&mut self, token: Token, word: &'t str) -> Value<'t> {
        let mut end = token.end;
        let is_hexadecimal = word.starts_with("0x") || word.starts_with("0X");
        if word.ends_with(['e', 'E']) && !is_hexadecimal {
            let sign = self.tokens.get(self.at).filter(|sign| sign.start == end);
            let digits = self.tokens.get(self.at + 1).filter(|digits| digits.start == end + 1);
            if let (Some(TokenKind::Mark(b'-' | b'+')), Some(digits)) = (sign.map(|sign| sign.kind), digits) {
                end = digits.end;
                self.at += 2;
            }
        }
        let text = self.text.get(token.start..end).unwrap_or_default();
        Value { expr: literal::number(text).into(), name: None, start: token.start, end }
    }

    /// Strings next to each other are one.
    fn string(&mut self, first: Token) -> Value<'t> {
        let mut text = Some(String::new());
        let mut end = first.end;
        while let Some(token) = self.peek().filter(|token| token.kind == TokenKind::Text) {
            let part = literal::string(self.text, token.start, token.end);
            text = text.zip(part).map(|(text, part)| text + &part);
            end = token.end;
            self.at += 1;
        }
        let expr = text.map_or(Expr::Unknown, Expr::Text);
        Value { expr: expr.into(), name: None, start: first.start, end }
    }

    /// The rest of a list or of what is in parentheses.
    fn list(&mut self, close: u8) -> Expr<'t> {
        let mut members = Vec::new();
        let mut is_tuple = false;
        let is_known = self.members(close, |parser| {
            members.push(parser.element(false));
            is_tuple |= parser.peek().is_some_and(|token| token.kind == TokenKind::Mark(b','));
        });
        match members.pop() {
            _ if !is_known => Expr::Unknown,
            // A comprehension, perhaps: the number of members is unknown, too.
            Some(only) if !is_tuple && *only.expr == Expr::Unknown => Expr::Unknown,
            Some(only) if close == b')' && !is_tuple => (*only.expr).clone(),
            last => {
                members.extend(last);
                Expr::List(members)
            }
        }
    }

    /// The rest of a map.
    fn map(&mut self) -> Expr<'t> {
        let mut pairs = Vec::new();
        let mut is_map = true;
        let is_known = self.members(b'}', |parser| {
            let key = parser.element(true);
            if parser.take_mark(b':') {
                pairs.push((key, parser.element(false)));
            } else {
                is_map = false;
            }
        });
        if is_known && is_map { Expr::Map(pairs) } else { Expr::Unknown }
    }

    fn arguments(&mut self, close: u8) -> Vec<Argument<'t>> {
        let mut arguments = Vec::new();
        self.members(close, |parser| {
            let mut is_unpacked = false;
            while parser.take_mark(b'*') {
                is_unpacked = true;
            }
            let name = parser.keyword();
            let value = parser.element(false);
            arguments.push(Argument { name, is_unpacked, value });
        });
        arguments
    }

    /// The name in `name=value`, which is passed over.
    fn keyword(&mut self) -> Option<&'t str> {
        let name = self.peek().filter(|token| token.kind == TokenKind::Word)?;
        let is_equals = |offset: usize| {
            self.tokens.get(self.at + offset).is_some_and(|token| token.kind == TokenKind::Mark(b'='))
        };
        if !is_equals(1) || is_equals(2) {
            return None;
        }
        self.at += 2;
        Some(slice(self.text, name))
    }

    /// Reads members up to the closing bracket. Returns whether all were separated by commas.
    fn members(&mut self, close: u8, mut read: impl FnMut(&mut Self)) -> bool {
        self.brackets += 1;
        let mut is_known = true;
        loop {
            if self.take_mark(close) {
                break;
            }
            let before = self.at;
            read(self);
            if self.take_mark(b',') {
                continue;
            }
            is_known &= self.peek().is_some_and(|token| token.kind == TokenKind::Mark(close));
            if self.take_mark(close) || self.peek().is_none() {
                break;
            }
            // A bracket that closes something else, or a member that could not be read.
            if self.at == before {
                self.at += 1;
            }
        }
        self.brackets -= 1;
        is_known
    }

    /// A member or argument; unknown if there is more of it than can be read.
    fn element(&mut self, is_key: bool) -> Value<'t> {
        let value = self.expression(0);
        let is_end = |kind: TokenKind| match kind {
            TokenKind::Mark(b',' | b')' | b']' | b'}') => true,
            TokenKind::Mark(b':') => is_key,
            _ => false,
        };
        if self.peek().is_none_or(|token| is_end(token.kind)) {
            return value;
        }
        let mut depth = 0_usize;
        while let Some(token) = self.peek() {
            match token.kind {
                TokenKind::Mark(b'(' | b'[' | b'{') => depth += 1,
                kind if depth == 0 && is_end(kind) => break,
                TokenKind::Mark(b')' | b']' | b'}') => depth = depth.saturating_sub(1),
                _ => {}
            }
            self.at += 1;
        }
        Value { expr: Expr::Unknown.into(), name: None, start: value.start, end: self.last_end() }
    }

    /// Passes over what is too deep to be read.
    fn skipped(&mut self) -> Value<'t> {
        let start = self.peek().map_or(self.text.len(), |token| token.start);
        self.at = self.tokens.len();
        unknown(start)
    }

    fn last_end(&self) -> usize {
        let last = self.at.checked_sub(1).and_then(|last| self.tokens.get(last));
        last.map_or(self.text.len(), |token| token.end)
    }
}

fn unknown<'t>(start: usize) -> Value<'t> {
    Value { expr: Expr::Unknown.into(), name: None, start, end: start }
}
