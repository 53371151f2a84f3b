//! Assignments of variables, in the languages of shells.

use cudock_base::bug::Parts;

use super::blocks::Block;
use super::dialect::Dialect;
use super::shell::first_arg;
use super::variables::{Located, Variables, variable_name};
use crate::read::names::{blanks, name_length};

/// Maximum length of a value; sizes and regions are shorter.
const MAX_VALUE: usize = 100;

/// Commands that set the variables after them.
const KEYWORDS: [&str; 8] = ["export", "readonly", "local", "declare", "typeset", "set", "setx", "env"];

impl<'t> Variables<'t> {
    /// Collects the assignments of a block.
    pub(in crate::read) fn gather(&mut self, text: &'t str, block: &Block) {
        if matches!(block.dialect, Dialect::Json | Dialect::Python | Dialect::Terraform | Dialect::Bicep) {
            return;
        }
        let none = Variables::default();
        let mut at = block.start;
        for line in text.part(block.start..block.end).split_inclusive('\n') {
            self.line(text, at, at + line.len(), &none);
            at += line.len();
        }
    }

    /// Collects assignments at the start of a line: `A=1 B=2`, `export A=1; B=2`, `$a = 'x'`, `A := x`.
    fn line(&mut self, text: &'t str, start: usize, end: usize, none: &Variables<'t>) {
        let mut at = start;
        loop {
            let rest_from = |at: usize| text.part(at..end);
            at += blanks(rest_from(at));
            let rest = rest_from(at);
            let word = name_length(rest);
            if KEYWORDS.contains(&rest.get(..word).unwrap_or_default()) {
                at += word + blanks(rest_from(at + word));
                // Options of `declare`.
                let rest = rest_from(at);
                if rest.starts_with('-') {
                    at += rest.find(' ').unwrap_or(rest.len());
                    at += blanks(rest_from(at));
                }
            }
            let Some((name, value_at)) = assignment(text, at, end) else { return };
            let (arg, after) = first_arg(text, value_at, none);
            if let Some(located) = arg.located().filter(|located| located.text.len() <= MAX_VALUE) {
                self.add(name, located);
            } else if let Some(value) = raw_variable(text, value_at, end) {
                self.add(name, value);
            }
            // A quoted or continued value ends beyond its line.
            if after >= end {
                return;
            }
            let more = rest_from(after);
            at = after + more.len() - more.trim_start_matches([' ', '\t', ';']).len();
            if after <= value_at || at >= end {
                return;
            }
        }
    }
}

/// The name of an assignment at a byte, and the start of its value.
fn assignment(text: &str, at: usize, end: usize) -> Option<(&str, usize)> {
    let rest = text.get(at..end)?;
    let dollar = usize::from(rest.starts_with('$'));
    let length = name_length(rest.get(dollar..)?);
    let name = rest.get(dollar..dollar + length)?;
    if name.is_empty() || name.starts_with(|ch: char| ch.is_ascii_digit()) {
        return None;
    }
    let after = rest.get(dollar + length..)?;
    let apart = blanks(after);
    let trimmed = after.get(apart..)?;
    let mark = [":=", "?=", "="].into_iter().find(|mark| trimmed.starts_with(mark))?;
    let value = trimmed.get(mark.len()..)?;
    if value.starts_with('=') {
        return None;
    }
    // PowerShell and make allow spaces around the sign.
    let skipped = if apart > 0 || mark != "=" || dollar > 0 { blanks(value) } else { 0 };
    Some((name, at + dollar + length + apart + mark.len() + skipped))
}

/// A value that is another variable, as written.
fn raw_variable(text: &str, at: usize, end: usize) -> Option<Located> {
    let rest = text.get(at..end)?;
    let quote = usize::from(rest.starts_with('"'));
    let rest = rest.get(quote..)?;
    let length = rest.find(['"', ' ', '\t', '\r', '\n', ';']).unwrap_or(rest.len());
    let value = rest.get(..length)?;
    variable_name(value)?;
    Some(Located { text: value.to_owned(), start: at + quote, end: at + quote + length })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(text: &str) -> Variables<'_> {
        let mut variables = Variables::default();
        variables.gather(text, &Block { start: 0, end: text.len(), dialect: Dialect::Shell });
        variables
    }

    #[test]
    fn assignments_of_several_shells_are_understood() {
        let cases = [
            ("SIZE=Standard_NC6\n", "SIZE", Some("Standard_NC6")),
            ("  export A='x' SIZE=\"Standard_NC6\" # y\n", "SIZE", Some("Standard_NC6")),
            ("declare -r SIZE=NC6; B=2\n", "B", Some("2")),
            ("$size = 'Standard_NC6'\r\n", "size", Some("Standard_NC6")),
            ("SIZE ?= Standard_NC6\n", "SIZE", Some("Standard_NC6")),
            ("A=x\nSIZE=$A\n", "SIZE", Some("x")),
            ("A=$B\nB=$A\n", "A", None),
            ("if [ $a == 1 ]; then\n", "a", None),
        ];
        for (text, name, expected) in cases {
            let located = variables(text).get(name, text.len());
            assert_eq!(located.as_ref().map(|located| located.text.as_str()), expected, "{text}");
            assert!(located.is_none_or(|located| text[located.start..located.end] == located.text), "{text}");
        }
    }

    #[test]
    fn the_last_value_before_the_use_wins() {
        let variables = variables("S=a\nuse\nS=b\nuse\n");
        assert_eq!(variables.get("S", 5).unwrap().text, "a");
        assert_eq!(variables.get("S", 13).unwrap().text, "b");
    }
}
