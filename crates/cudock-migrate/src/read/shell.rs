//! Words of a command line with the values of their variables, each with the bytes to change.

use cudock_base::shell::{self, Snippet};

use super::variables::Variables;

/// A word. Each part is what one pair of quotes, one variable or one run of plain characters gives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Word {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Part {
    text: String,
    start: usize,
    end: usize,
}

/// A value with the bytes that would have to be changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Located {
    pub(super) text: String,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Word {
    pub(super) fn text(&self) -> String {
        self.parts.iter().map(|part| part.text.as_str()).collect()
    }

    /// The whole word.
    pub(super) fn located(&self) -> Option<Located> {
        self.after(0)
    }

    /// What follows the first bytes of a word: the value in `--size=VALUE`.
    pub(super) fn after(&self, mut bytes: usize) -> Option<Located> {
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
                    // A variable's value stands elsewhere; only quotes or a line's end lie between neighbours.
                    let gap = part.start.checked_sub(located.end);
                    located.end = if gap.is_some_and(|gap| gap <= 4) { part.end } else { located.end };
                }
            }
        }
        located
    }
}

/// Splits a command, from a byte of its first word to its end. `quote` is the quote the command stands in, if it does.
pub(super) fn words(
    text: &str,
    at: usize,
    quote: Option<u8>,
    variables: &Variables<'_>,
) -> (Vec<Word>, usize) {
    let mut snippet = Snippet::new(text, at, quote);
    let words = snippet.by_ref().map(|word| Word::resolve(text, &word, variables)).collect();
    (words, snippet.position())
}

/// Reads a single word: the value of an assignment.
pub(super) fn word(text: &str, at: usize, variables: &Variables<'_>) -> (Word, usize) {
    let mut snippet = Snippet::new(text, at, None);
    let word = Word::resolve(text, &snippet.word(), variables);
    (word, snippet.position())
}

impl Word {
    fn resolve(text: &str, word: &shell::Word<'_>, variables: &Variables<'_>) -> Self {
        let parts = word.parts.iter().filter_map(|part| {
            let variable = match part {
                shell::Part::Variable { span } | shell::Part::Substitution { span } => Some(span),
                // Text around a variable makes a value that is written nowhere: it stays as it is.
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
            Some(Part { text: text.get(span.clone())?.to_owned(), start: span.start, end: span.end })
        });
        Self { parts: parts.collect() }
    }
}

/// The value of a variable, or the default it is written with; nothing if neither is known.
fn variable_value(written: &str, at: usize, variables: &Variables<'_>) -> Option<Part> {
    let name = written.strip_prefix('$')?;
    let name = match name.strip_prefix("{{").and_then(|name| name.strip_suffix("}}")) {
        Some(name) => name.trim(),
        // Azure Pipelines writes variables as `$(name)`; what is more than a name is a command.
        None => name.strip_prefix(['{', '(']).map_or(name, |name| name.trim_end_matches(['}', ')'])),
    };
    let (name, default) = name.split_once(":-").map_or((name, None), |(name, default)| (name, Some(default)));
    let name = name.rsplit(['.', ':']).next().unwrap_or(name);
    let located = variables.get(name, at).or_else(|| {
        let default = default?;
        let start = at + written.find(":-")? + ":-".len();
        Some(Located { text: default.to_owned(), start, end: start + default.len() })
    })?;
    Some(Part { text: located.text, start: located.start, end: located.end })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_knows_where_it_stands() {
        let text = "x --size=\"Standard_NC6\"";
        let word = words(text, 0, None, &Variables::default()).0.pop().unwrap();
        let value = word.after("--size=".len()).unwrap();
        assert_eq!((&text[value.start..value.end], value.text.as_str()), ("Standard_NC6", "Standard_NC6"));
    }

    #[test]
    fn a_default_stands_where_it_is_written() {
        let text = "x ${SIZE:-Standard_NC6}";
        let value = words(text, 0, None, &Variables::default()).0.pop().unwrap().located().unwrap();
        assert_eq!(&text[value.start..value.end], "Standard_NC6");
        assert_eq!(words("x $SIZE", 0, None, &Variables::default()).0.pop().unwrap().located(), None);
    }
}
