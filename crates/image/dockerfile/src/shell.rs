//! Expands variables in the commands of shell scripts.

use std::borrow::Cow;
use std::ops::Range;

use cudock_base::shell::{self, Part};

use crate::excerpt;
use crate::expand::{Lookup, variable};

/// An argument of a command, after expansion.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Argument<'t> {
    /// Borrowed if it stands in the script like this.
    pub text: Cow<'t, str>,
    /// Whether it contains the output of a command, or a variable that the file does not set.
    pub is_unresolved: bool,
    /// Its bytes in the script.
    pub bytes: Range<usize>,
}

/// A note about the argument at these bytes.
pub type NoteAt = (Range<usize>, String);

/// An expanded command, with notes about its syntax.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ExpandedCommand<'t> {
    pub args: Vec<Argument<'t>>,
    pub notes: Vec<NoteAt>,
}

impl<'t> ExpandedCommand<'t> {
    /// Expands variables, as a shell does before it runs a command.
    pub fn expand(text: &'t str, command: &shell::Command<'t>, lookup: Lookup<'_>) -> Self {
        let mut expanded = Self { args: Vec::with_capacity(command.words.len()), notes: Vec::new() };
        for (index, word) in command.words.iter().enumerate() {
            let before = expanded.args.len();
            if let [Part::Literal { text, .. }] = word.parts.as_slice() {
                let text = Cow::Borrowed(*text);
                expanded.args.push(Argument { text, is_unresolved: false, bytes: word.span.clone() });
            } else {
                let mut expansion = Expansion { text, lookup, args: Vec::new(), open: None };
                expansion.parts(&word.parts, false);
                let args = expansion.args.into_iter().chain(expansion.open);
                expanded.args.extend(args.map(|expanded| Argument { bytes: word.span.clone(), ..expanded }));
            }
            let last = expanded.args.get(before..).and_then(<[Argument<'_>]>::last);
            let redirects = command.redirects.iter().filter(|redirect| redirect.attached_to == Some(index));
            let notes =
                redirects.filter_map(|redirect| Some((redirect.span.clone(), note(text, last?, redirect)?)));
            expanded.notes.extend(notes);
        }
        expanded
    }
}

/// `pip install torch>=2` is a redirection, which is hardly ever intended.
fn note(text: &str, arg: &Argument<'_>, redirect: &shell::Redirect<'_>) -> Option<String> {
    let operator = text.get(redirect.span.clone())?;
    let is_bound = text.get(redirect.target.span.clone())?.starts_with('=');
    let is_name = arg.text.bytes().any(|byte| byte.is_ascii_alphabetic());
    (is_bound && is_name).then(|| {
        let written = excerpt(&arg.text);
        format!("`{written}{operator}=` is not quoted: the shell reads it as a redirection")
    })
}

/// The arguments that one shell word expands to.
struct Expansion<'l, 't> {
    text: &'t str,
    lookup: Lookup<'l>,
    args: Vec<Argument<'t>>,
    open: Option<Argument<'t>>,
}

impl<'t> Expansion<'_, 't> {
    fn parts(&mut self, parts: &[Part<'t>], is_quoted: bool) {
        for part in parts {
            match part {
                Part::Literal { text, .. } => self.literal(text),
                Part::Quoted { parts, .. } => {
                    // Empty quotes are an argument, too.
                    self.literal("");
                    self.parts(parts, true);
                }
                Part::Variable { span } | Part::Substitution { span } => {
                    let written = self.text.get(span.clone()).unwrap_or_default();
                    match variable(written, self.lookup, 0) {
                        Some((value, _)) if value.unknown.is_none() => self.value(&value.text, is_quoted),
                        Some((value, _)) => self.unknown(&value.text),
                        None => self.unknown(written),
                    }
                }
            }
        }
    }

    /// Appends text of the script.
    fn literal(&mut self, text: &'t str) {
        self.open.get_or_insert_with(Argument::default).text += text;
    }

    fn push(&mut self, text: &str) {
        self.open.get_or_insert_with(Argument::default).text.to_mut().push_str(text);
    }

    fn unknown(&mut self, text: &str) {
        self.push(text);
        if let Some(arg) = &mut self.open {
            arg.is_unresolved = true;
        }
    }

    /// Outside quotes, a value with spaces is several arguments.
    fn value(&mut self, text: &str, is_quoted: bool) {
        if is_quoted {
            self.push(text);
            return;
        }
        for ch in text.chars() {
            if ch.is_whitespace() {
                self.args.extend(self.open.take());
            } else {
                self.push(ch.encode_utf8(&mut [0; 4]));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use cudock_base::shell::Script;

    use super::*;

    fn lookup(name: &str) -> Option<String> {
        (name == "PACKAGES").then(|| "torch numpy".to_owned())
    }

    fn commands(text: &str) -> Vec<Vec<String>> {
        let arg = |arg: Argument<'_>| {
            if arg.is_unresolved { format!("?{}", arg.text) } else { arg.text.into_owned() }
        };
        let args =
            |command| ExpandedCommand::expand(text, &command, &lookup).args.into_iter().map(arg).collect();
        Script::new(text).map(args).filter(|args: &Vec<String>| !args.is_empty()).collect()
    }

    #[test]
    fn variables_are_expanded_and_split() {
        let cases: [(&str, &[&[&str]]); 5] = [
            ("pip install $PACKAGES \"$PACKAGES\"", &[&["pip", "install", "torch", "numpy", "torch numpy"]]),
            ("a x${PACKAGES}y", &[&["a", "xtorch", "numpyy"]]),
            ("a $(b $(c d)) e", &[&["a", "?$(b $(c d))", "e"]]),
            ("a `b c` $NO \"$@\" ''", &[&["a", "?`b c`", "?$NO", "?$@", ""]]),
            ("a \"b $", &[&["a", "b $"]]),
        ];
        for (text, expected) in cases {
            assert_eq!(commands(text), expected, "{text}");
        }
    }

    #[test]
    fn a_bound_without_quotes_is_noted() {
        let text = "pip install torch>=2.0 numpy";
        let command = Script::new(text).next().unwrap_or_default();
        let command = ExpandedCommand::expand(text, &command, &lookup);
        assert_eq!(
            command.notes,
            [(17..18, "`torch>=` is not quoted: the shell reads it as a redirection".to_owned())]
        );
        assert_eq!(command.args.len(), 4);
    }
}
