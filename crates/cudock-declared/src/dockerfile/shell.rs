//! Commands of scripts with the values of their variables.

use cudock_base::shell::{self, Part};

use super::expand::{Lookup, variable};
use crate::excerpt;
use crate::pip::{NoteAt, Word};

/// A command and what there is to say about how it is written.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) words: Vec<Word>,
    pub(super) notes: Vec<NoteAt>,
}

impl Command {
    /// Fills in variables, as a shell does before it runs a command.
    pub(super) fn expand(text: &str, command: &shell::Command<'_>, lookup: Lookup<'_>) -> Self {
        let mut expanded = Self::default();
        for (index, word) in command.words.iter().enumerate() {
            let mut expansion = Expansion { text, lookup, words: Vec::new(), open: None };
            expansion.parts(&word.parts, false);
            let words = expansion.words.into_iter().chain(expansion.open);
            let before = expanded.words.len();
            expanded.words.extend(words.map(|word_text| Word { bytes: word.span.clone(), ..word_text }));
            let last = expanded.words.get(before..).and_then(<[Word]>::last);
            let redirects = command.redirects.iter().filter(|redirect| redirect.attached_to == Some(index));
            let notes =
                redirects.filter_map(|redirect| Some((redirect.span.clone(), note(text, last?, redirect)?)));
            expanded.notes.extend(notes);
        }
        expanded
    }
}

/// `pip install torch>=2` is a redirection, though it hardly ever is meant.
fn note(text: &str, word: &Word, redirect: &shell::Redirect<'_>) -> Option<String> {
    let operator = text.get(redirect.span.clone())?;
    let is_bound = text.get(redirect.target.span.clone())?.starts_with('=');
    let is_name = word.text.bytes().any(|byte| byte.is_ascii_alphabetic());
    (is_bound && is_name).then(|| {
        let written = excerpt(&word.text);
        format!("`{written}{operator}=` is not in quotes: the shell takes it for a redirection")
    })
}

/// The words that one word becomes.
struct Expansion<'a> {
    text: &'a str,
    lookup: Lookup<'a>,
    words: Vec<Word>,
    open: Option<Word>,
}

impl Expansion<'_> {
    fn parts(&mut self, parts: &[Part<'_>], is_quoted: bool) {
        for part in parts {
            match part {
                Part::Literal { text, .. } => self.push(text),
                Part::Quoted { parts, .. } => {
                    // Empty quotes are a word, too.
                    self.push("");
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

    fn push(&mut self, text: &str) {
        self.open.get_or_insert_with(Word::default).text.push_str(text);
    }

    fn unknown(&mut self, text: &str) {
        self.push(text);
        if let Some(word) = &mut self.open {
            word.is_open = true;
        }
    }

    /// Outside quotes, a value with spaces is several words.
    fn value(&mut self, text: &str, is_quoted: bool) {
        if is_quoted {
            self.push(text);
            return;
        }
        for letter in text.chars() {
            if letter.is_whitespace() {
                self.words.extend(self.open.take());
            } else {
                self.push(letter.encode_utf8(&mut [0; 4]));
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
        let word = |word: Word| if word.is_open { format!("?{}", word.text) } else { word.text };
        let words = |command| Command::expand(text, &command, &lookup).words.into_iter().map(word).collect();
        Script::new(text).map(words).filter(|words: &Vec<String>| !words.is_empty()).collect()
    }

    #[test]
    fn variables_are_filled_in_and_split() {
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
        let command = Command::expand(text, &command, &lookup);
        assert_eq!(
            command.notes,
            [(17..18, "`torch>=` is not in quotes: the shell takes it for a redirection".to_owned())]
        );
        assert_eq!(command.words.len(), 4);
    }
}
