//! Parses shell commands into words with byte spans. Nothing is expanded: variables and substitutions are parts of a word,
//! and the caller resolves them.
//!
//! [`Script`] reads whole POSIX scripts, command by command. [`Snippet`] reads one command within another text
//! (documentation, pipelines, string literals), whose shell may also be PowerShell or cmd. Both take linear time.

mod lexer;
mod script;
mod word;

use crate::bug::Parts;
use std::borrow::Cow;
use std::ops::Range;

use lexer::{Lexer, Style};
pub use script::{Command, HereDoc, Redirect, Script};
pub use word::{Part, Word};

/// One command within another text.
#[derive(Debug)]
pub struct Snippet<'t> {
    lexer: Lexer<'t>,
}

impl<'t> Snippet<'t> {
    /// A command whose next word starts at a byte, or after blanks. `quote` is the quote around the command, which ends it.
    pub fn new(text: &'t str, at: usize, quote: Option<u8>) -> Self {
        Self { lexer: Lexer::new(text, at, Style::Snippet { quote }) }
    }

    /// The word that starts right here; empty at a blank.
    pub fn word(&mut self) -> Word<'t> {
        self.lexer.word()
    }

    /// The byte after the last word.
    pub fn position(&self) -> usize {
        self.lexer.position()
    }
}

impl<'t> Iterator for Snippet<'t> {
    type Item = Word<'t>;

    /// The next word of the command; `None` at its end: a line that is not continued, or an operator.
    fn next(&mut self) -> Option<Word<'t>> {
        self.lexer.skip_blanks();
        let before = self.lexer.position();
        let is_end = self.lexer.is_at_end();
        let word = if is_end { Word::default() } else { self.lexer.word() };
        (self.lexer.position() > before).then_some(word)
    }
}

/// A word for a POSIX shell that stands for exactly this text.
pub fn quote(text: &str) -> Cow<'_, str> {
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:@%+,".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_safe) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("'{}'", text.replace('\'', r"'\''")))
}

/// The comments in some lines of a script: from a `#` that starts a word to the end of its line. Quotes count within
/// their line only, so that an apostrophe in a comment does not hide the next one.
pub fn comments(text: &str, bytes: Range<usize>) -> Vec<Range<usize>> {
    let mut comments = Vec::new();
    let mut at = bytes.start;
    for line in text.part(bytes).split_inclusive('\n') {
        let content = line.trim_end();
        let mut quote = None;
        let mut before = b' ';
        for (offset, byte) in content.bytes().enumerate() {
            match (quote, byte) {
                (None, b'\'' | b'"') => quote = Some(byte),
                (Some(open), _) if open == byte => quote = None,
                (None, b'#') if matches!(before, b' ' | b'\t' | b';') => {
                    comments.push(at + offset..at + content.len());
                    break;
                }
                _ => {}
            }
            before = byte;
        }
        at += line.len();
    }
    comments
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Words as text: quotes and escapes removed, variables and substitutions in angle brackets.
    fn shown(parts: &[Part<'_>], text: &str) -> String {
        let part = |part: &Part<'_>| match part {
            Part::Literal { text, .. } => (*text).to_owned(),
            Part::Quoted { parts, .. } => shown(parts, text),
            Part::Variable { span } | Part::Substitution { span } => format!("<{}>", &text[span.clone()]),
        };
        parts.iter().map(part).collect()
    }

    fn commands(text: &str) -> Vec<Vec<String>> {
        let commands = Script::new(text)
            .map(|command| command.words.iter().map(|word| shown(&word.parts, text)).collect());
        commands.filter(|words: &Vec<String>| !words.is_empty()).collect()
    }

    fn snippet(text: &str) -> Vec<String> {
        Snippet::new(text, 0, None).map(|word| shown(&word.parts, text)).collect()
    }

    #[test]
    fn scripts_are_split_into_commands_and_words() {
        let cases: [(&str, &[&[&str]]); 16] = [
            ("a b&&c;d|e\nf", &[&["a", "b"], &["c"], &["d"], &["e"], &["f"]]),
            ("a 'b c' \"d e\"f \\\n g # h; i", &[&["a", "b c", "d ef", "g"]]),
            ("a $(b $(c d)) e", &[&["a", "<$(b $(c d))>", "e"]]),
            ("a $(b ')' \")\") e", &[&["a", "<$(b ')' \")\")>", "e"]]),
            ("a `b c` $NO \"x${Y:-z}\"", &[&["a", "<`b c`>", "<$NO>", "x<${Y:-z}>"]]),
            ("a 2>&1 > /dev/null b", &[&["a", "b"]]),
            ("a &> log b", &[&["a", "b"]]),
            ("(a b) || { c; }", &[&["a", "b"], &["{", "c"], &["}"]]),
            ("a 'b", &[&["a", "b"]]),
            ("a \"b $", &[&["a", "b $"]]),
            ("a ''", &[&["a", ""]]),
            ("a \"\\$b\\x\\\\\"", &[&["a", "$b\\x\\"]]),
            ("a x\\\r\ny", &[&["a", "xy"]]),
            ("cat <<EOF > f; b\nc d\nEOF\ne", &[&["cat"], &["b"], &["e"]]),
            ("a <<-'X' <<Y\n1\n\tX\n2\nY\nb", &[&["a"], &["b"]]),
            ("a <<< word b", &[&["a", "b"]]),
        ];
        for (text, expected) in cases {
            assert_eq!(commands(text), expected, "{text}");
        }
    }

    #[test]
    fn here_documents_are_found_with_their_text() {
        let text = "sh <<'A' | tee <<-B\n$x\nA\n\ty\n\tB\nz";
        let all: Vec<Command<'_>> = Script::new(text).collect();
        let docs: Vec<(&str, bool)> = all
            .iter()
            .flat_map(|command| &command.redirects)
            .filter_map(|redirect| redirect.here_doc.as_ref())
            .map(|doc| (&text[doc.body.clone()], doc.expands))
            .collect();
        assert_eq!(docs, [("$x\n", false), ("\ty\n", true)]);
        assert_eq!(all.last().unwrap().words.len(), 1);
    }

    #[test]
    fn a_redirection_knows_the_word_it_is_attached_to() {
        let command = Script::new("pip install torch>=2.0 numpy").next().unwrap();
        assert_eq!(command.words.len(), 4);
        assert_eq!((command.redirects[0].span.clone(), command.redirects[0].attached_to), (17..18, Some(2)));
    }

    #[test]
    fn snippets_of_several_shells_are_split() {
        let text = "a 'b c' \"d\"e \\\r\n  --f=`\n g ^\n h; i";
        assert_eq!(snippet(text), ["a", "b c", "de", "--f=", "g", "h"]);
        assert_eq!(snippet("a | b"), ["a"]);
        assert_eq!(snippet("a # b"), ["a"]);
        assert_eq!(snippet("it's"), ["it's"]);
        assert_eq!(snippet("a $(b) ${{ c }} $("), ["a", "<$(b)>", "<${{ c }}>", "$"]);
        let quoted: Vec<_> = Snippet::new("a 'b' c\" d", 0, Some(b'"')).collect();
        assert_eq!(quoted.len(), 3);
    }

    #[test]
    fn comments_are_found_outside_quotes() {
        let text = "a '# b' # c\r\n#d\nx#y\n";
        let found = comments(text, 0..text.len());
        let found: Vec<&str> = found.into_iter().map(|bytes| &text[bytes]).collect();
        assert_eq!(found, ["# c", "#d"]);
    }

    proptest! {
        #[test]
        fn a_quoted_text_is_one_word_and_itself_again(text in "[ -~\n\u{e9}]{0,20}") {
            let quoted = quote(&text).into_owned();
            prop_assert_eq!(commands(&format!("x {quoted}")), [vec!["x".to_owned(), text]]);
        }

        #[test]
        fn every_span_lies_in_the_text(text in "[a1 $'\"`(){}<>\\\\\n\r#;&|=\u{e9}-]{0,80}") {
            fn check(parts: &[Part<'_>], text: &str) {
                for part in parts {
                    assert!(text.get(part.span()).is_some(), "{part:?}");
                    match part {
                        Part::Literal { text: literal, span } => assert_eq!(&text[span.clone()], *literal),
                        Part::Quoted { parts, .. } => check(parts, text),
                        _ => assert!(text[part.span()].starts_with(['$', '`'])),
                    }
                }
            }
            for command in Script::new(&text) {
                for redirect in &command.redirects {
                    prop_assert!(text.get(redirect.span.clone()).is_some());
                    let body = redirect.here_doc.as_ref().map(|doc| doc.body.clone());
                    prop_assert!(body.is_none_or(|body| text.get(body).is_some()));
                }
                for word in &command.words {
                    prop_assert!(text.get(word.span.clone()).is_some());
                    check(&word.parts, &text);
                }
            }
            for word in Snippet::new(&text, 0, Some(b'"')) {
                prop_assert!(!text[word.span.clone()].is_empty());
                check(&word.parts, &text);
            }
        }
    }
}
