//! Splits scripts into simple commands.

use crate::bug::Parts;
use std::ops::Range;

use super::lexer::{Lexer, Style};
use super::word::{Part, Word};

/// A simple command. It may have no words, as between `;` and `;`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Command<'t> {
    /// The program and its arguments, with assignments before them and without redirections.
    pub words: Vec<Word<'t>>,
    pub redirects: Vec<Redirect<'t>>,
    /// The operator that ends it: `&&`, `|`, `;`, a parenthesis; empty at the end of a line.
    pub operator: &'t str,
}

/// A redirection: `> file`, `2>&1`, `<<EOF`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect<'t> {
    /// The bytes of its operator.
    pub span: Range<usize>,
    /// The file or descriptor.
    pub target: Word<'t>,
    /// The index of the word that ends right before the operator.
    pub attached_to: Option<usize>,
    /// The text, for a here-document.
    pub here_doc: Option<HereDoc>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HereDoc {
    /// The lines, without the delimiter. With `<<-` they still have their tabs.
    pub body: Range<usize>,
    /// Whether variables in it are expanded: its delimiter is not quoted.
    pub expands: bool,
}

/// The commands of a script, in the order of the text: lists, pipelines, groups and the bodies of `if` and `for` alike.
#[derive(Debug)]
pub struct Script<'t> {
    lexer: Lexer<'t>,
    /// The end of the line with here-documents, and of their texts.
    here_docs: Option<(usize, usize)>,
}

impl<'t> Script<'t> {
    pub fn new(text: &'t str) -> Self {
        Self { lexer: Lexer::new(text, 0, Style::Script), here_docs: None }
    }

    /// Skips the end of a line, and the here-documents that follow it.
    fn end_line(&mut self) {
        let next = self.lexer.position() + 1;
        let resume =
            self.here_docs.take_if(|(line_end, _)| *line_end < next).map_or(next, |(_, end)| end.max(next));
        self.lexer.set_position(resume);
    }

    fn skip_comment(&mut self) {
        let rest = self.lexer.rest();
        self.lexer.set_position(self.lexer.position() + rest.find('\n').unwrap_or(rest.len()));
    }

    fn redirect(&mut self, command: &mut Command<'t>) {
        let start = self.lexer.position();
        let attached = command.words.last().filter(|word| word.span.end == start);
        let attached_to = attached.map(|_| command.words.len() - 1);
        let is_descriptor = attached.is_some_and(|word| match word.parts.as_slice() {
            [Part::Literal { text, span }] => {
                *span == word.span && text.bytes().all(|byte| byte.is_ascii_digit())
            }
            _ => false,
        });
        let rest = self.lexer.rest();
        let operators = ["<<<", "<<-", "&>>", "<<", ">>", "<&", ">&", ">|", "<>", "&>", "<", ">"];
        let length = operators.into_iter().find(|operator| rest.starts_with(operator)).map_or(1, str::len);
        let operator = rest.part(..length);
        self.lexer.set_position(start + length);
        self.lexer.skip_blanks();
        let target = if self.lexer.is_at_end() { Word::default() } else { self.lexer.word() };
        let here_doc = match operator {
            "<<" => Some(self.here_doc(&target, false)),
            "<<-" => Some(self.here_doc(&target, true)),
            _ => None,
        };
        let attached_to = attached_to.filter(|_| !is_descriptor);
        if is_descriptor {
            command.words.pop();
        }
        command.redirects.push(Redirect { span: start..start + length, target, attached_to, here_doc });
    }

    /// The text after this line, or after previous here-documents of this line.
    fn here_doc(&mut self, target: &Word<'_>, strips_tabs: bool) -> HereDoc {
        let text = self.lexer.text();
        let (line_end, start) = self.here_docs.unwrap_or_else(|| {
            let at = self.lexer.position();
            let end = text.get(at..).and_then(|rest| rest.find('\n')).map_or(text.len(), |end| at + end);
            (end, (end + 1).min(text.len()))
        });
        let delimiter = text.get(target.span.clone()).unwrap_or_default();
        let expands = !delimiter.contains(['\'', '"', '\\']);
        let delimiter = delimiter.replace(['\'', '"', '\\'], "");
        let mut at = start;
        let mut body = start..text.len();
        for line in text.part(start..).split_inclusive('\n') {
            let content = line.trim_end_matches(['\n', '\r']);
            let content = if strips_tabs { content.trim_start_matches('\t') } else { content };
            let is_end = content == delimiter;
            if is_end {
                body.end = at;
            }
            at += line.len();
            if is_end {
                break;
            }
        }
        self.here_docs = Some((line_end, at));
        HereDoc { body, expands }
    }
}

impl<'t> Iterator for Script<'t> {
    type Item = Command<'t>;

    fn next(&mut self) -> Option<Command<'t>> {
        if self.lexer.rest().is_empty() {
            return None;
        }
        let mut command = Command::default();
        loop {
            self.lexer.skip_blanks();
            match self.lexer.byte(0) {
                None => break,
                Some(b'\n') => {
                    self.end_line();
                    break;
                }
                Some(b'#') => self.skip_comment(),
                Some(b'<' | b'>') => self.redirect(&mut command),
                Some(b'&') if self.lexer.byte(1) == Some(b'>') => self.redirect(&mut command),
                Some(b';' | b'&' | b'|' | b'(' | b')') => {
                    let rest = self.lexer.rest();
                    let is_double = ["&&", "||", ";;", "|&"].iter().any(|double| rest.starts_with(double));
                    command.operator = rest.get(..1 + usize::from(is_double)).unwrap_or_default();
                    self.lexer.set_position(self.lexer.position() + command.operator.len());
                    break;
                }
                Some(_) => {
                    let word = self.lexer.word();
                    // A backslash at the end is not a word.
                    if !word.parts.is_empty() {
                        command.words.push(word);
                    }
                }
            }
        }
        Some(command)
    }
}
