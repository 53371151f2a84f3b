//! Expressions of templates in Bicep's syntax: the same functions, other strings and names.

use super::super::error::ExportError;
use super::string::string;

/// Functions of templates that are operators in Bicep.
const OPERATORS: [&str; 14] = [
    "add",
    "and",
    "createarray",
    "createobject",
    "div",
    "equals",
    "greater",
    "greaterorequals",
    "if",
    "less",
    "lessorequals",
    "mul",
    "not",
    "or",
];

enum Token<'t> {
    Name(&'t str),
    /// A string without its quotes.
    Text(String),
    Other(char),
}

/// Translates an expression without its brackets.
pub(super) fn to_bicep(expression: &str) -> Result<String, ExportError> {
    let tokens = tokens(expression);
    let mut out = String::new();
    let mut rest = tokens.as_slice();
    while let Some((token, after)) = rest.split_first() {
        rest = after;
        match (token, after) {
            (
                Token::Name(function),
                [Token::Other('('), Token::Text(name), Token::Other(')'), after @ ..],
            ) if ["parameters", "variables"].iter().any(|own| own.eq_ignore_ascii_case(function)) => {
                out.push_str(name);
                rest = after;
            }
            (Token::Name(function), [Token::Other('('), ..])
                if OPERATORS.iter().any(|own| own.eq_ignore_ascii_case(function)) =>
            {
                return Err(ExportError::unsupported(expression, format!("function {function} in Bicep")));
            }
            (Token::Name(name), _) => out.push_str(name),
            (Token::Text(text), _) => out.push_str(&string(text)),
            (Token::Other(','), _) => out.push_str(", "),
            (Token::Other(c), _) => out.push(*c),
        }
    }
    Ok(out)
}

/// The words of an expression.
pub(super) fn parts(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c));
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Tokens; blanks are left out.
fn tokens(expression: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = expression;
    while let Some(first) = rest.chars().next() {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if first == '\'' {
            let (text, after) = quoted(rest.get(1..).unwrap_or_default());
            tokens.push(Token::Text(text));
            rest = after;
        } else if is_name(first) {
            let (name, after) = rest.split_at(rest.find(|c| !is_name(c)).unwrap_or(rest.len()));
            tokens.push(Token::Name(name));
            rest = after;
        } else {
            if !first.is_whitespace() {
                tokens.push(Token::Other(first));
            }
            rest = rest.get(first.len_utf8()..).unwrap_or_default();
        }
    }
    tokens
}

/// The string up to its closing quote, and what follows. Two quotes stand for one.
fn quoted(text: &str) -> (String, &str) {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\'') {
        out.push_str(before);
        match after.strip_prefix('\'') {
            Some(after) => {
                out.push('\'');
                rest = after;
            }
            None => return (out, after),
        }
    }
    (out + rest, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_keep_their_functions_and_change_their_strings() {
        let cases = [
            ("parameters('a')", "a"),
            ("concat(variables('b'),'it''s')", r"concat(b, 'it\'s')"),
            (
                "reference(resourceId('Microsoft.Logic/workflows', 'w'), '2019-05-01', 'full').identity.principalId",
                "reference(resourceId('Microsoft.Logic/workflows', 'w'), '2019-05-01', 'full').identity.principalId",
            ),
            ("resourceGroup().id", "resourceGroup().id"),
        ];
        for (template, expected) in cases {
            assert_eq!(to_bicep(template).unwrap(), expected);
        }
        assert!(to_bicep("if(true(), 1, 2)").is_err());
    }
}
