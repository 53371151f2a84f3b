//! Reads what a Python program states literally, without running it: assignments, calls, literals and arithmetic on them.
//!
//! A name stands for the value that was assigned to it last. What needs the program to run, such as a function's argument
//! or a comprehension, is [`Expr::Unknown`], and the caller reports it.

mod evaluate;
mod expression;
mod literal;
mod value;

use cudock_base::bug::Parts;
use std::collections::HashMap;

use crate::read::{Token, TokenKind, python_tokens};
use expression::Parser;
pub(super) use value::{Expr, PythonCall, Value, is_named, slice};

/// Calls that are kept; a program has a handful.
const MOST_CALLS: usize = 1000;

/// The assignments and calls in a program.
#[derive(Debug)]
pub(super) struct Program<'t> {
    /// The last value of each variable and attribute.
    variables: HashMap<&'t str, Value<'t>>,
    /// Calls of the functions given to [`Program::read`].
    pub(super) calls: Vec<Value<'t>>,
}

impl<'t> Program<'t> {
    /// Reads a program, and the calls of some functions in it.
    pub(super) fn read(text: &'t str, functions: &[&str]) -> Self {
        let tokens = python_tokens(text);
        let mut program = Self { variables: HashMap::new(), calls: Vec::new() };
        let mut at = 0;
        while at < tokens.len() {
            let end = statement_end(&tokens, at);
            let statement = tokens.part(at..end);
            for (index, pair) in statement.windows(2).enumerate() {
                let [word, bracket] = pair else { continue };
                let callee = slice(text, *word);
                let is_call = word.kind == TokenKind::Word && bracket.kind == TokenKind::Mark(b'(');
                if is_call
                    && functions.iter().any(|name| is_named(callee, name))
                    && program.calls.len() < MOST_CALLS
                {
                    let call =
                        Parser::new(text, statement.get(index..).unwrap_or_default(), &program.variables)
                            .value();
                    program.calls.push(call);
                }
            }
            program.assign(text, statement);
            at = end.max(at + 1);
        }
        program
    }

    /// Keeps an assignment; one that changes a value in place makes it unknown.
    fn assign(&mut self, text: &'t str, statement: &[Token]) {
        let [name, mark, rest @ ..] = statement else { return };
        if name.kind != TokenKind::Word {
            return;
        }
        let is_equals =
            |token: Option<&Token>| token.is_some_and(|token| token.kind == TokenKind::Mark(b'='));
        let name = slice(text, *name);
        match mark.kind {
            TokenKind::Mark(b'=') if !is_equals(rest.first()) => {
                let value = Parser::new(text, rest, &self.variables).whole();
                self.variables.insert(name, value);
            }
            // `a += 1`, `a: int = 1` and `a **= 2`.
            TokenKind::Mark(b'+' | b'-' | b'*' | b'/' | b'|' | b'%')
                if is_equals(rest.first()) || is_equals(rest.get(1)) =>
            {
                self.variables.remove(name);
            }
            TokenKind::Mark(b':') if is_equals(rest.get(1)) => {
                let value = Parser::new(text, rest.get(2..).unwrap_or_default(), &self.variables).whole();
                self.variables.insert(name, value);
            }
            _ => {}
        }
    }

    /// The last value of a variable or attribute.
    pub(super) fn variable(&self, name: &str) -> Option<&Value<'t>> {
        self.variables.get(name)
    }

    /// The last call of a function.
    pub(super) fn call(&self, function: &str) -> Option<&PythonCall<'t>> {
        self.calls.iter().rev().filter_map(Value::call).find(|call| call.is(function))
    }
}

/// The index after the last token of a statement. Lines continue within brackets and after a backslash.
pub(super) fn statement_end(tokens: &[Token], from: usize) -> usize {
    let mut depth = 0_usize;
    let mut is_continued = false;
    for (index, token) in tokens.iter().enumerate().skip(from) {
        match token.kind {
            TokenKind::Mark(b'(' | b'[' | b'{') => depth += 1,
            TokenKind::Mark(b')' | b']' | b'}') => depth = depth.saturating_sub(1),
            TokenKind::Newline if depth == 0 && !is_continued => return index + 1,
            TokenKind::Mark(b';') if depth == 0 => return index + 1,
            _ => {}
        }
        is_continued = token.kind == TokenKind::Mark(b'\\');
    }
    tokens.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value of `x` at the end of a program.
    fn x(text: &str) -> String {
        Program::read(text, &[]).variable("x").map_or_else(String::new, shown)
    }

    fn shown(value: &Value<'_>) -> String {
        match &*value.expr {
            Expr::Text(text) => format!("'{text}'"),
            Expr::Int(number) => number.to_string(),
            Expr::Float(number) => format!("{number:?}"),
            Expr::Bool(value) => value.to_string(),
            Expr::None => "None".to_owned(),
            Expr::Name(name) => format!("<{name}>"),
            Expr::List(list) => format!("[{}]", list.iter().map(shown).collect::<Vec<_>>().join(" ")),
            Expr::Map(map) => {
                let pairs: Vec<String> =
                    map.iter().map(|(key, value)| format!("{}:{}", shown(key), shown(value))).collect();
                format!("{{{}}}", pairs.join(" "))
            }
            Expr::Call(call) => {
                let arguments: Vec<String> = call
                    .arguments
                    .iter()
                    .map(|argument| {
                        let name = argument.name.map_or_else(String::new, |name| format!("{name}="));
                        let star = if argument.is_unpacked { "*" } else { "" };
                        format!("{star}{name}{}", shown(&argument.value))
                    })
                    .collect();
                format!("{}({})", call.callee, arguments.join(" "))
            }
            Expr::Unknown => "?".to_owned(),
        }
    }

    #[test]
    fn literals_and_arithmetic_are_computed() {
        for (program, expected) in [
            ("x = 1e-4\n", "0.0001"),
            ("x = -.5", "-0.5"),
            ("x = 0x10 + 1_000", "1016"),
            ("x = 60 * 60 // 7 % 5", "4"),
            ("x = 2 ** -3", "0.125"),
            ("x = -2 ** 2", "-4"),
            ("x = (1 + 2) * 3 - 4 / 2", "7.0"),
            ("x = 'a' \"b\"\n", "'ab'"),
            ("x = 'it\\'s\\t\\u00e9' + r'\\n'", "'it's\té\\n'"),
            ("x = f'{name}-1'", "?"),
            ("x = f'plain'", "'plain'"),
            ("x = [1, 2.5, True, None,]\n", "[1 2.5 true None]"),
            ("x = (1,)", "[1]"),
            ("x = (1)", "1"),
            ("x = {'a': 1, \"b\": [2]}", "{'a':1 'b':[2]}"),
            ("x = list(range(1, 10, 3))", "[1 4 7]"),
            ("x = [1] + [2]", "[1 2]"),
            ("x = math.log(1.0)", "0.0"),
            ("x = int('7') if y else 2", "?"),
            ("x = [i for i in range(3)]", "?"),
            ("x = lambda a: a", "?"),
            ("x = 9223372036854775807 + 1", "?"),
            ("x = 1 / 0", "?"),
            ("x = range(100000000000)", "?"),
        ] {
            assert_eq!(x(program), expected, "{program}");
        }
    }

    #[test]
    fn names_stand_for_what_was_assigned_last() {
        for (program, expected) in [
            ("a = 3\nx = a * 2\na = 4\n", "6"),
            ("a = 3\nif b:\n    a = 5\nx = [a, b]\n", "[5 <b>]"),
            ("a = 3\na += 1\nx = a\n", "<a>"),
            ("e = Environment('n')\ne.docker.image = 'i'\nx = e.docker.image", "'i'"),
            ("x: int = 5\n", "5"),
            ("x = f(1,\n  k=[2], # comment\n  *more, **rest)\n", "f(1 k=[2] *<more> *<rest>)"),
            ("x = a \\\n  .b(1).c(2)[3]\n", "?"),
            ("x = ds.as_named_input('d').as_mount()\n", ".as_mount()"),
            ("x = ws.compute_targets['gpu']", "ws.compute_targets('gpu')"),
            ("if x == 1:\n  pass\n", ""),
            ("x = (1, # one\n\n 2)\ny = 3", "[1 2]"),
        ] {
            assert_eq!(x(program), expected, "{program}");
        }
    }

    #[test]
    fn calls_are_found_wherever_they_stand() {
        let text =
            "def make():\n  return hd.HyperDriveConfig(a=LIMIT)\nrun = e.submit(HyperDriveConfig(b=1))\n";
        let program = Program::read(text, &["HyperDriveConfig"]);
        let calls: Vec<String> = program.calls.iter().map(shown).collect();
        assert_eq!(calls, ["hd.HyperDriveConfig(a=<LIMIT>)", "HyperDriveConfig(b=1)"]);
    }

    #[test]
    fn depth_and_doubling_cost_nothing() {
        let deep = format!("x = {}1{}", "(".repeat(100_000), ")".repeat(100_000));
        assert_eq!(x(&deep), "?");
        let mut doubled = "a0 = [1, 1]\n".to_owned();
        for level in 1..200 {
            use std::fmt::Write;
            writeln!(doubled, "a{level} = [a{0}, a{0}]", level - 1).unwrap();
        }
        let program = Program::read(&doubled, &[]);
        assert!(matches!(&*program.variable("a199").unwrap().expr, Expr::List(list) if list.len() == 2));
        let signs = format!("x = {}1", "-".repeat(100_000));
        assert_eq!(x(&signs), "?");
        let powers = format!("x = 1{}", "**1".repeat(100_000));
        assert_eq!(x(&powers), "?");
    }
}
