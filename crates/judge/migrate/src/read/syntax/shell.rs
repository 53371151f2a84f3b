//! Splits command lines into arguments with variables resolved, each with the bytes to change.

use cudock_base::shell::{self, Snippet};

use super::variables::{Located, Variables};

/// An argument. Each part comes from one quoted string, one variable or one run of plain characters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::read) struct ShellArg {
    parts: Vec<Located>,
}

impl ShellArg {
    pub(in crate::read) fn text(&self) -> String {
        self.parts.iter().map(|part| part.text.as_str()).collect()
    }

    pub(in crate::read) fn located(&self) -> Option<Located> {
        self.after(0)
    }

    /// The part after the first bytes: the value in `--size=VALUE`.
    pub(in crate::read) fn after(&self, mut bytes: usize) -> Option<Located> {
        let mut parts = self.parts.iter();
        let mut located: Option<Located> = None;
        for part in &mut parts {
            let cut = bytes.min(part.text.len());
            bytes -= cut;
            let text = part.text.get(cut..)?;
            if text.is_empty() && cut > 0 {
                continue;
            }
            match &mut located {
                None => {
                    located = Some(Located { text: text.to_owned(), start: part.start + cut, end: part.end });
                }
                Some(located) => {
                    located.text.push_str(text);
                    // A variable's value is elsewhere; only quotes or a line end may be between adjacent parts.
                    let gap = part.start.checked_sub(located.end);
                    located.end = if gap.is_some_and(|gap| gap <= 4) { part.end } else { located.end };
                }
            }
        }
        located
    }
}

/// Splits a command, from a byte of its first argument to its end. `quote` is the quote around the command, if any.
pub(in crate::read) fn split_args(
    text: &str,
    at: usize,
    quote: Option<u8>,
    variables: &Variables<'_>,
) -> (Vec<ShellArg>, usize) {
    let mut snippet = Snippet::new(text, at, quote);
    let args = snippet.by_ref().map(|word| ShellArg::resolve(text, &word, variables)).collect();
    (args, snippet.position())
}

/// Reads a single argument: the value of an assignment.
pub(in crate::read) fn first_arg(text: &str, at: usize, variables: &Variables<'_>) -> (ShellArg, usize) {
    let mut snippet = Snippet::new(text, at, None);
    let arg = ShellArg::resolve(text, &snippet.word(), variables);
    (arg, snippet.position())
}

impl ShellArg {
    fn resolve(text: &str, word: &shell::Word<'_>, variables: &Variables<'_>) -> Self {
        let parts = word.parts.iter().filter_map(|part| {
            let variable = match part {
                shell::Part::Variable { span } | shell::Part::Substitution { span } => Some(span),
                // Text around a variable makes a value that is not in the file: it is kept as written.
                shell::Part::Quoted { quote: b'"', parts, .. } => match parts.as_slice() {
                    [shell::Part::Variable { span } | shell::Part::Substitution { span }] => Some(span),
                    _ => None,
                },
                _ => None,
            };
            if let Some(span) = variable {
                return variable_value(text.get(span.clone())?, span.start, variables);
            }
            let span = part.span();
            Some(Located { text: text.get(span.clone())?.to_owned(), start: span.start, end: span.end })
        });
        Self { parts: parts.collect() }
    }
}

/// The value of a variable, or its default.
fn variable_value(written: &str, at: usize, variables: &Variables<'_>) -> Option<Located> {
    let name = written.strip_prefix('$')?;
    let name = match name.strip_prefix("{{").and_then(|name| name.strip_suffix("}}")) {
        Some(name) => name.trim(),
        // Azure Pipelines writes variables as `$(name)`; anything more than a name is a command.
        None => name.strip_prefix(['{', '(']).map_or(name, |name| name.trim_end_matches(['}', ')'])),
    };
    let (name, default) = name.split_once(":-").map_or((name, None), |(name, default)| (name, Some(default)));
    let name = name.rsplit(['.', ':']).next().unwrap_or(name);
    variables.get(name, at).or_else(|| {
        let default = default?;
        let start = at + written.find(":-")? + ":-".len();
        Some(Located { text: default.to_owned(), start, end: start + default.len() })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_has_the_bytes_of_its_value() {
        let text = "x --size=\"Standard_NC6\"";
        let word = split_args(text, 0, None, &Variables::default()).0.pop().unwrap();
        let value = word.after("--size=".len()).unwrap();
        assert_eq!((&text[value.start..value.end], value.text.as_str()), ("Standard_NC6", "Standard_NC6"));
    }

    #[test]
    fn a_default_has_its_own_bytes() {
        let text = "x ${SIZE:-Standard_NC6}";
        let value = split_args(text, 0, None, &Variables::default()).0.pop().unwrap().located().unwrap();
        assert_eq!(&text[value.start..value.end], "Standard_NC6");
        assert_eq!(split_args("x $SIZE", 0, None, &Variables::default()).0.pop().unwrap().located(), None);
    }
}
