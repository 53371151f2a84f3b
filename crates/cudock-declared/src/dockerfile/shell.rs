//! Shell scripts as simple commands, one after the other: enough to see what is installed, and nothing is run.

use super::expand::{Lookup, variable};
use crate::excerpt;
use crate::pip::{NoteAt, Word};

/// Commands are taken one at a time, so that what one sets is known to the next.
pub(super) struct Script<'a> {
    text: &'a str,
    at: usize,
}

/// A command and what there is to say about how it is written.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) words: Vec<Word>,
    pub(super) notes: Vec<NoteAt>,
}

/// A word while it is read.
#[derive(Default)]
struct Open {
    word: Option<Word>,
}

impl Open {
    fn start(&mut self, at: usize) -> &mut Word {
        self.word.get_or_insert_with(|| Word { at, ..Word::default() })
    }
}

impl<'a> Script<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The next command; `None` at the end. It may have no words.
    pub(super) fn next(&mut self, lookup: Lookup<'_>) -> Option<Command> {
        if self.at >= self.text.len() {
            return None;
        }
        let mut command = Command::default();
        let mut open = Open::default();
        while let Some(letter) = self.rest().chars().next() {
            let at = self.at;
            self.at += letter.len_utf8();
            match letter {
                '\n' | ';' | '&' | '|' | '(' | ')' => {
                    self.at = at + letter.len_utf8();
                    break;
                }
                ' ' | '\t' | '\r' => command.words.extend(open.word.take()),
                '#' if open.word.is_none() => {
                    self.at += self.rest().find('\n').unwrap_or(self.rest().len());
                }
                '<' | '>' => self.redirect(letter, at, &mut open, &mut command),
                '\\' => self.escaped(at, &mut open),
                '\'' => self.single(at, &mut open),
                '"' => self.double(at, &mut open, lookup),
                '$' | '`' => self.dollar(at, letter, &mut open, &mut command, lookup),
                _ => open.start(at).text.push(letter),
            }
        }
        command.words.extend(open.word.take());
        Some(command)
    }

    fn escaped(&mut self, at: usize, open: &mut Open) {
        let Some(next) = self.rest().chars().next() else { return };
        self.at += next.len_utf8();
        if next != '\n' {
            open.start(at).text.push(next);
        }
    }

    fn single(&mut self, at: usize, open: &mut Open) {
        let inside = self.rest().split('\'').next().unwrap_or_default();
        open.start(at).text.push_str(inside);
        self.at = (self.at + inside.len() + 1).min(self.text.len());
    }

    fn double(&mut self, at: usize, open: &mut Open, lookup: Lookup<'_>) {
        open.start(at);
        while let Some(letter) = self.rest().chars().next() {
            let here = self.at;
            self.at += letter.len_utf8();
            match letter {
                '"' => return,
                '\\' => match self.rest().chars().next() {
                    Some(next @ ('"' | '\\' | '$' | '`')) => {
                        self.at += 1;
                        open.start(at).text.push(next);
                    }
                    Some('\n') => self.at += 1,
                    _ => open.start(at).text.push('\\'),
                },
                '$' | '`' => {
                    let word = open.start(at);
                    let (text, is_open) = self.substitution(here, letter, lookup);
                    word.text.push_str(&text);
                    word.is_open |= is_open;
                }
                _ => open.start(at).text.push(letter),
            }
        }
    }

    /// Outside quotes, a value with spaces is several words.
    fn dollar(&mut self, at: usize, sign: char, open: &mut Open, command: &mut Command, lookup: Lookup<'_>) {
        let (text, is_open) = self.substitution(at, sign, lookup);
        if is_open {
            let word = open.start(at);
            word.text.push_str(&text);
            word.is_open = true;
            return;
        }
        for letter in text.chars() {
            if letter.is_whitespace() {
                command.words.extend(open.word.take());
            } else {
                open.start(at).text.push(letter);
            }
        }
    }

    /// The value of `$X`, or the text of `$(…)` and `` `…` ``, which is open. `self.at` is behind the sign.
    fn substitution(&mut self, at: usize, sign: char, lookup: Lookup<'_>) -> (String, bool) {
        let from = self.text.get(at..).unwrap_or_default();
        if sign == '$'
            && let Some((found, taken)) = variable(from, lookup, 0)
        {
            self.at = at + taken;
            return (found.text, found.unknown.is_some());
        }
        let length = match (sign, from.as_bytes().get(1)) {
            ('`', _) => from.get(1..).and_then(|rest| rest.find('`')).map_or(from.len(), |end| end + 2),
            (_, Some(b'(')) => closing_parenthesis(from),
            (_, Some(b'@' | b'*' | b'?' | b'#' | b'!' | b'$' | b'-')) => 2,
            _ => return (sign.to_string(), false),
        };
        self.at = at + length;
        (from.get(..length).unwrap_or(from).to_owned(), true)
    }

    /// Skips a redirection and its target. `pip install torch>=2` is one, though it hardly ever is meant.
    fn redirect(&mut self, sign: char, at: usize, open: &mut Open, command: &mut Command) {
        let name = open.word.as_ref().filter(|word| word.text.bytes().any(|byte| byte.is_ascii_alphabetic()));
        if let (Some(word), true) = (name, self.rest().starts_with('=')) {
            let written = excerpt(&word.text);
            let note = format!("`{written}{sign}=` is not in quotes: the shell takes it for a redirection");
            command.notes.push((at, note));
        }
        let is_descriptor =
            |word: &Word| !word.text.is_empty() && word.text.bytes().all(|byte| byte.is_ascii_digit());
        command.words.extend(open.word.take().filter(|word| !is_descriptor(word)));
        let behind =
            self.rest().trim_start_matches(['<', '>', '&', '|', '-']).trim_start_matches([' ', '\t']);
        let target =
            behind.find([' ', '\t', '\n', ';', '&', '|', '(', ')', '<', '>']).unwrap_or(behind.len());
        self.at = self.text.len() - behind.len() + target;
    }
}

/// The length of `$(…)` with those within; to the end if it is not closed.
fn closing_parenthesis(text: &str) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            b'(' => depth += 1,
            b')' if depth <= 1 => return at + 1,
            b')' => depth -= 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lookup(name: &str) -> Option<String> {
        (name == "PACKAGES").then(|| "torch numpy".to_owned())
    }

    fn commands(text: &str) -> Vec<Vec<String>> {
        let mut script = Script::new(text);
        let mut commands = Vec::new();
        while let Some(command) = script.next(&lookup) {
            let word = |word: Word| if word.is_open { format!("?{}", word.text) } else { word.text };
            commands.push(command.words.into_iter().map(word).collect());
        }
        commands.retain(|words: &Vec<String>| !words.is_empty());
        commands
    }

    #[test]
    fn scripts_are_split_into_commands_and_words() {
        let cases: [(&str, &[&[&str]]); 9] = [
            ("a b&&c;d|e\nf", &[&["a", "b"], &["c"], &["d"], &["e"], &["f"]]),
            ("a 'b c' \"d e\"f \\\n g # h; i", &[&["a", "b c", "d ef", "g"]]),
            ("pip install $PACKAGES \"$PACKAGES\"", &[&["pip", "install", "torch", "numpy", "torch numpy"]]),
            ("a $(b $(c d)) e", &[&["a", "?$(b $(c d))", "e"]]),
            ("a `b c` $NO", &[&["a", "?`b c`", "?$NO"]]),
            ("a 2>&1 > /dev/null b", &[&["a", "b"]]),
            ("(a b) || { c; }", &[&["a", "b"], &["{", "c"], &["}"]]),
            ("a 'b", &[&["a", "b"]]),
            ("a \"b $", &[&["a", "b $"]]),
        ];
        for (text, expected) in cases {
            assert_eq!(commands(text), expected, "{text}");
        }
    }

    #[test]
    fn a_bound_without_quotes_is_noted() {
        let command = Script::new("pip install torch>=2.0 numpy").next(&lookup).unwrap_or_default();
        assert_eq!(
            command.notes,
            [(17, "`torch>=` is not in quotes: the shell takes it for a redirection".to_owned())]
        );
        assert_eq!(command.words.len(), 4);
    }
}
