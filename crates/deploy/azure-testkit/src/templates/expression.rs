//! Expressions of templates: `[concat(parameters('a'), '-', resourceGroup().name)]`.

use serde_json::Value;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Expression {
    Literal(Value),
    Call {
        function: String,
        arguments: Vec<Expression>,
    },
    /// `of.name`
    Member {
        of: Box<Expression>,
        name: String,
    },
    /// `of[index]`
    Index {
        of: Box<Expression>,
        index: Box<Expression>,
    },
}

/// Parses a string of a template. None if it is a text without an expression, and an error if the expression is wrong.
pub(crate) fn parse(text: &str) -> Option<Result<Expression, String>> {
    if text.starts_with("[[") {
        return None;
    }
    let inner = text.strip_prefix('[')?.strip_suffix(']')?;
    let mut parser = Parser { rest: inner };
    let parsed = parser
        .expression()
        .and_then(|expression| if parser.rest.trim().is_empty() { Some(expression) } else { None });
    Some(parsed.ok_or_else(|| format!("cannot parse the expression {text}")))
}

struct Parser<'a> {
    rest: &'a str,
}

impl Parser<'_> {
    fn take(&mut self, symbol: char) -> bool {
        let trimmed = self.rest.trim_start();
        let found = trimmed.strip_prefix(symbol);
        self.rest = found.unwrap_or(trimmed);
        found.is_some()
    }

    fn expression(&mut self) -> Option<Expression> {
        let mut expression = self.primary()?;
        loop {
            if self.take('.') {
                let name = self.word()?;
                expression = Expression::Member { of: Box::new(expression), name };
            } else if self.take('[') {
                let index = Box::new(self.expression()?);
                if !self.take(']') {
                    return None;
                }
                expression = Expression::Index { of: Box::new(expression), index };
            } else {
                return Some(expression);
            }
        }
    }

    fn primary(&mut self) -> Option<Expression> {
        if self.take('\'') {
            return self.text().map(|text| Expression::Literal(Value::from(text)));
        }
        let word = self.word()?;
        if let Ok(number) = word.parse::<i64>() {
            return Some(Expression::Literal(Value::from(number)));
        }
        if !self.take('(') {
            return None;
        }
        let mut arguments = Vec::new();
        while !self.take(')') {
            if !arguments.is_empty() && !self.take(',') {
                return None;
            }
            arguments.push(self.expression()?);
        }
        Some(Expression::Call { function: word.to_ascii_lowercase(), arguments })
    }

    /// The rest of a text in quotes, in which two of them stand for one.
    fn text(&mut self) -> Option<String> {
        let mut text = String::new();
        loop {
            let (before, after) = self.rest.split_once('\'')?;
            text.push_str(before);
            self.rest = after;
            match after.strip_prefix('\'') {
                Some(after) => {
                    text.push('\'');
                    self.rest = after;
                }
                None => return Some(text),
            }
        }
    }

    fn word(&mut self) -> Option<String> {
        self.rest = self.rest.trim_start();
        let end = self
            .rest
            .find(|character: char| {
                !character.is_ascii_alphanumeric() && character != '-' && character != '_'
            })
            .unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        (!word.is_empty()).then(|| word.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_are_no_expressions_and_wrong_ones_are_errors() {
        for text in ["", "plain", "[[escaped]", "[open", "a]"] {
            assert_eq!(parse(text), None, "{text}");
        }
        for text in ["[]", "[a]", "[a(]", "[a('b)]", "[a() b()]", "[a(1 2)]", "[a()[0]"] {
            assert!(parse(text).unwrap().is_err(), "{text}");
        }
    }

    #[test]
    fn calls_members_and_indexes_nest() {
        let parsed = parse("[reference('it''s', 1).outputs.id['x'].value]").unwrap().unwrap();
        let call = Expression::Call {
            function: "reference".to_owned(),
            arguments: vec![Expression::Literal(json!("it's")), Expression::Literal(json!(1))],
        };
        let member = |of, name: &str| Expression::Member { of: Box::new(of), name: name.to_owned() };
        let index = Expression::Index {
            of: Box::new(member(member(call, "outputs"), "id")),
            index: Box::new(Expression::Literal(json!("x"))),
        };
        assert_eq!(parsed, member(index, "value"));
    }
}
