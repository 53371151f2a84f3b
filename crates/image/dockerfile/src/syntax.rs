//! Parses a Dockerfile into instructions: parser directives, continued lines, here-documents.
//!
//! The rules are those of `BuildKit`'s parser. `parse-dockerfile` 0.1.9 is not an alternative: it reads the text of
//! `RUN bash <<EOF` and of a second here-document as instructions, and lets `\\` at the end of a line continue it.

use std::ops::Range;

use cudock_base::{LineIndex, Span};
use smallvec::SmallVec;

use crate::{SyntaxError, excerpt};

/// A Dockerfile's instructions as written.
#[derive(Debug)]
pub struct Dockerfile<'t> {
    pub lines: LineIndex<'t>,
    /// The character that continues lines and escapes others.
    pub escape: char,
    /// The instructions, in the order of the file.
    pub instructions: Vec<Instruction>,
}

impl Dockerfile<'_> {
    /// Shifts spans by the length of a byte order mark that was stripped.
    fn shift_spans(&mut self, bytes: usize) {
        if bytes == 0 {
            return;
        }
        let shift = |span: &mut Span| (span.start, span.end) = (span.start + bytes, span.end + bytes);
        for instruction in &mut self.instructions {
            shift(&mut instruction.span);
            instruction.arguments.shift(bytes);
            for here_doc in &mut instruction.here_docs {
                shift(&mut here_doc.span);
                here_doc.body.shift(bytes);
            }
        }
    }
}

/// An instruction and its here-documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction {
    /// The keyword, in upper case.
    pub keyword: &'static str,
    /// The text from the keyword to the end of the last line, without here-documents.
    pub span: Span,
    /// The text after the keyword, with continued lines joined.
    pub arguments: Joined,
    /// The here-documents that follow it.
    pub here_docs: Vec<HereDoc>,
}

/// Text that follows an instruction up to a line with its delimiter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HereDoc {
    /// The delimiter, without quotes.
    pub delimiter: String,
    /// The lines, without the tabs that `<<-` strips.
    pub body: Joined,
    /// The lines as they are written, without the delimiter.
    pub span: Span,
}

/// Text that was joined from several lines of the file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Joined {
    pub text: String,
    lines: SmallVec<[JoinedLine; 1]>,
    has_unicode: bool,
}

/// A line, or what is left of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct JoinedLine {
    /// Its start in the text.
    start: usize,
    /// Its start in the file.
    source: usize,
    line: usize,
    column: usize,
}

impl Joined {
    fn push(&mut self, text: &str, line: Line<'_>) {
        let Line { start: source, number, column, .. } = line;
        self.lines.push(JoinedLine { start: self.text.len(), source, line: number, column });
        self.text.push_str(text);
        self.has_unicode |= !text.is_ascii();
    }

    fn shift(&mut self, bytes: usize) {
        for line in &mut self.lines {
            line.source += bytes;
            // The byte order mark is a character of the first line.
            line.column += usize::from(line.line == 1);
        }
    }

    /// The index of the line of a byte.
    fn line(&self, at: usize) -> usize {
        self.lines.partition_point(|line| line.start <= at).saturating_sub(1)
    }

    /// The bytes of the file that some bytes of the text come from.
    pub fn source_range(&self, bytes: Range<usize>) -> Range<usize> {
        let source =
            |line: usize, at: usize| self.lines.get(line).map_or(0, |line| line.source + at - line.start);
        let line = self.line(bytes.start);
        let start = source(line, bytes.start);
        let Some(last) = bytes.end.checked_sub(1).filter(|last| *last >= bytes.start) else {
            return start..start;
        };
        let ends_there = self.lines.get(line + 1).is_none_or(|next| last < next.start);
        start..source(if ends_there { line } else { self.line(last) }, last) + 1
    }

    /// The span of some bytes of the text; `index` is that of the file.
    pub fn span(&self, bytes: Range<usize>, index: &LineIndex<'_>) -> Span {
        let source = self.source_range(bytes.clone());
        match self.lines.get(self.line(bytes.start)) {
            // Where every byte is a character, nothing has to be searched or counted.
            Some(&JoinedLine { start, line, column, .. })
                if !self.has_unicode && bytes.end <= self.text.len() =>
            {
                Span { line, column: column + bytes.start - start, start: source.start, end: source.end }
            }
            _ => index.span(source),
        }
    }

    /// Drops all but some bytes of the text.
    fn keep(&mut self, bytes: Range<usize>) {
        self.text.truncate(bytes.end);
        self.text.drain(..bytes.start);
        let first = self.line(bytes.start);
        self.lines.drain(..first);
        self.lines.retain(|line| line.start <= bytes.start || line.start < bytes.end);
        for line in &mut self.lines {
            let dropped = bytes.start.saturating_sub(line.start);
            line.source += dropped;
            line.column += dropped;
            line.start = line.start.saturating_sub(bytes.start);
        }
    }
}

const KEYWORDS: [&str; 18] = [
    "ADD",
    "ARG",
    "CMD",
    "COPY",
    "ENTRYPOINT",
    "ENV",
    "EXPOSE",
    "FROM",
    "HEALTHCHECK",
    "LABEL",
    "MAINTAINER",
    "ONBUILD",
    "RUN",
    "SHELL",
    "STOPSIGNAL",
    "USER",
    "VOLUME",
    "WORKDIR",
];

#[derive(Clone, Copy)]
struct Line<'t> {
    /// The byte of the file.
    start: usize,
    /// The line number, from 1.
    number: usize,
    /// The column at which the text begins, from 1.
    column: usize,
    text: &'t str,
}

impl Line<'_> {
    /// The line without the first bytes of its text.
    fn skip(self, bytes: usize) -> Self {
        let (skipped, text) = self.text.split_at_checked(bytes).unwrap_or(("", self.text));
        Self {
            start: self.start + skipped.len(),
            column: self.column + skipped.chars().count(),
            text,
            ..self
        }
    }
}

/// Parses the instructions of a Dockerfile, without resolving stages or variables.
pub fn parse(text: &str) -> Result<Dockerfile<'_>, SyntaxError> {
    let without_mark = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (escape, instructions) = parse_without_mark(without_mark)?;
    let mut file = Dockerfile { lines: LineIndex::new(text), escape, instructions };
    file.shift_spans(text.len() - without_mark.len());
    Ok(file)
}

fn parse_without_mark(text: &str) -> Result<(char, Vec<Instruction>), SyntaxError> {
    let escape = escape_directive(text)?;
    let mut instructions = Vec::new();
    let mut lines = lines(text);
    while let Some(first) = lines.next() {
        if is_blank(first.text) {
            continue;
        }
        let first = first.skip(first.text.len() - first.text.trim_start().len());
        let Line { start, number: line, column, .. } = first;
        let mut joined = Joined::default();
        let mut end = start;
        let mut current = Some(first);
        while let Some(line) = current.take() {
            end = line.start + line.text.len();
            match without_continuation(line.text, escape) {
                Some(part) => {
                    joined.push(part, line);
                    // Blank lines and comments between continued lines do not end them.
                    current = lines.by_ref().find(|line| !is_blank(line.text));
                }
                None => joined.push(line.text, line),
            }
        }
        let mut instruction = instruction(joined, Span { line, column, start, end })?;
        for (delimiter, strips_tabs) in here_doc_delimiters(&instruction) {
            let here_doc = here_doc(delimiter, strips_tabs, &mut lines, instruction.span)?;
            instruction.here_docs.push(here_doc);
        }
        instructions.push(instruction);
    }
    Ok((escape, instructions))
}

/// The lines of a text, without what ends them.
fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    let mut start = 0;
    text.split_inclusive('\n').zip(1..).map(move |(line, number)| {
        let at = start;
        start += line.len();
        let text = line.strip_suffix('\n').map_or(line, |line| line.strip_suffix('\r').unwrap_or(line));
        Line { start: at, number, column: 1, text }
    })
}

fn is_blank(line: &str) -> bool {
    let line = line.trim_start();
    line.is_empty() || line.starts_with('#')
}

/// `# escape=` among the directives at the very top; anything else ends them.
fn escape_directive(text: &str) -> Result<char, SyntaxError> {
    for (index, line) in text.lines().enumerate() {
        let directive = line.trim_start().strip_prefix('#').and_then(|comment| comment.split_once('='));
        let Some((key, value)) = directive.map(|(key, value)| (key.trim().to_ascii_lowercase(), value))
        else {
            break;
        };
        match (key.as_str(), value.trim()) {
            ("escape", "\\") => return Ok('\\'),
            ("escape", "`") => return Ok('`'),
            ("escape", other) => {
                let message = format!("invalid escape character `{}`", excerpt(other));
                return Err(SyntaxError::new(index + 1, 1, message));
            }
            ("syntax" | "check", _) => {}
            _ => break,
        }
    }
    Ok('\\')
}

/// The line without the escape character at its end; two of them are a literal character, not a continuation.
fn without_continuation(line: &str, escape: char) -> Option<&str> {
    let part = line.trim_end_matches([' ', '\t']).strip_suffix(escape)?;
    (!part.ends_with(escape)).then_some(part)
}

fn instruction(mut joined: Joined, span: Span) -> Result<Instruction, SyntaxError> {
    let text = joined.text.as_str();
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let (word, rest) = text.split_at_checked(end).unwrap_or((text, ""));
    let Some(keyword) = KEYWORDS.into_iter().find(|known| known.eq_ignore_ascii_case(word)) else {
        return Err(SyntaxError::new(span.line, 1, format!("unknown instruction `{}`", excerpt(word))));
    };
    let arguments = rest.trim();
    // Without arguments, these two reset what the base image starts.
    if arguments.is_empty() && !["CMD", "ENTRYPOINT"].contains(&keyword) {
        let column = word.chars().count() + 1;
        return Err(SyntaxError::new(span.line, column, format!("{keyword} without arguments")));
    }
    let start = end + (rest.len() - rest.trim_start().len());
    let end = start + arguments.len();
    joined.keep(start..end);
    Ok(Instruction { keyword, span, arguments: joined, here_docs: Vec::new() })
}

/// The delimiters after `<<` and `<<-`, outside quotes, of the instructions that take here-documents.
fn here_doc_delimiters(instruction: &Instruction) -> Vec<(String, bool)> {
    let text = instruction.arguments.text.as_str();
    if !text.contains("<<") {
        return Vec::new();
    }
    let triggered = || text.split_whitespace().next().unwrap_or_default().to_ascii_uppercase();
    let takes_them = |keyword: &str| matches!(keyword, "RUN" | "COPY" | "ADD");
    let is_trigger = instruction.keyword == "ONBUILD" && takes_them(&triggered());
    if !takes_them(instruction.keyword) && !is_trigger {
        return Vec::new();
    }
    let mut delimiters = Vec::new();
    let mut quote = None;
    let mut at_word_start = true;
    for (at, ch) in text.char_indices() {
        match quote {
            Some(end) => quote = Some(end).filter(|end| *end != ch),
            None if matches!(ch, '"' | '\'') => quote = Some(ch),
            None if at_word_start && ch == '<' => {
                delimiters.extend(here_doc_delimiter(text.get(at..).unwrap_or_default()));
            }
            None => {}
        }
        at_word_start = ch.is_whitespace() || at_word_start && ch.is_ascii_digit();
    }
    delimiters
}

fn here_doc_delimiter(text: &str) -> Option<(String, bool)> {
    let rest = text.strip_prefix("<<")?;
    let (rest, strips_tabs) = rest.strip_prefix('-').map_or((rest, false), |rest| (rest, true));
    let word = rest.split(char::is_whitespace).next()?;
    let name: String = word.chars().filter(|ch| !matches!(ch, '"' | '\'')).collect();
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'));
    (!name.is_empty() && is_name).then_some((name, strips_tabs))
}

fn here_doc<'t>(
    delimiter: String,
    strips_tabs: bool,
    lines: &mut impl Iterator<Item = Line<'t>>,
    opened: Span,
) -> Result<HereDoc, SyntaxError> {
    let mut body = Joined::default();
    let mut first = None;
    for line in lines {
        let tabs = line.text.len() - line.text.trim_start_matches('\t').len();
        let content = line.skip(if strips_tabs { tabs } else { 0 });
        let Line { start, number, column, .. } = *first.get_or_insert(line);
        if content.text == delimiter {
            let span = Span { line: number, column, start, end: line.start };
            return Ok(HereDoc { delimiter, body, span });
        }
        body.push(content.text, content);
        body.text.push('\n');
    }
    let message = format!("here-document is not closed by a line `{}`", excerpt(&delimiter));
    Err(SyntaxError::new(opened.line, 1, message))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Each instruction as `line KEYWORD arguments <here-document>`.
    fn shown(text: &str) -> Vec<String> {
        let file = parse(text).unwrap();
        let one = |instruction: &Instruction| {
            let here_docs: String =
                instruction.here_docs.iter().map(|doc| format!(" <{}>", doc.body.text)).collect();
            format!(
                "{} {} {}{here_docs}",
                instruction.span.line, instruction.keyword, instruction.arguments.text
            )
        };
        file.instructions.iter().map(one).collect()
    }

    #[test]
    fn everything_buildkit_accepts_is_parsed() {
        let cases: [(&str, &[&str]); 14] = [
            ("from a\nrun x\n", &["1 FROM a", "2 RUN x"]),
            ("FROM a\r\nRUN x \\\r\n  y\r\n", &["1 FROM a", "2 RUN x   y"]),
            (
                "# syntax=docker/dockerfile:1\n# escape=`\nFROM a\nRUN x `\ny \\\n",
                &["3 FROM a", "4 RUN x y \\"],
            ),
            ("# unknown=1\n# escape=`\nRUN x \\\n y", &["3 RUN x  y"]),
            ("RUN x \\\n\n # c\n\t y\nUSER z", &["1 RUN x \t y", "5 USER z"]),
            ("COPY a C:\\\\\nRUN y\n", &["1 COPY a C:\\\\", "2 RUN y"]),
            ("RUN bash <<EOF\nFROM b\nEOF\nUSER z", &["1 RUN bash <<EOF <FROM b\n>", "4 USER z"]),
            ("RUN cat <<'E-1' > /x\n$a\nE-1\n", &["1 RUN cat <<'E-1' > /x <$a\n>"]),
            ("RUN <<A 3<<-\"B\"\r\n1\r\nA\r\n\t\t2\r\n\tB\r\n", &["1 RUN <<A 3<<-\"B\" <1\n> <2\n>"]),
            ("ONBUILD RUN <<E\nx\nE\n", &["1 ONBUILD RUN <<E <x\n>"]),
            ("ONBUILD ENV A=<<E\nUSER x", &["1 ONBUILD ENV A=<<E", "2 USER x"]),
            ("RUN echo '<<E' $((1<<2)) <<< b\nUSER x", &["1 RUN echo '<<E' $((1<<2)) <<< b", "2 USER x"]),
            ("RUN x \\", &["1 RUN x"]),
            ("FROM a\nENTRYPOINT\n", &["1 FROM a", "2 ENTRYPOINT "]),
        ];
        for (text, expected) in cases {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn bytes_of_joined_lines_map_to_the_file() {
        let text = "FROM a\n  RUN x \\\n # c\n  y && z\nRUN <<-E\n\tp q\nE\n";
        let file = parse(text).unwrap();
        let [_, run, here] = file.instructions.as_slice() else { panic!("three instructions") };
        assert_eq!(&text[run.span.bytes()], "RUN x \\\n # c\n  y && z");
        assert_eq!((run.span.line, run.span.column), (2, 3));
        let y = run.arguments.text.find('y').unwrap();
        assert_eq!(&text[run.arguments.source_range(y..y + 6)], "y && z");
        assert_eq!(&text[run.arguments.source_range(0..y + 1)], "x \\\n # c\n  y");
        let doc = &here.here_docs[0];
        assert_eq!((&text[doc.span.bytes()], &text[doc.body.source_range(2..3)]), ("\tp q\n", "q"));
    }

    proptest! {
        #[test]
        fn every_byte_of_an_argument_maps_to_the_same_byte_of_the_file(
            text in "(FROM a|RUN |run|\\\\|`|\n|\r\n| |\t|#|x|\u{e9}|<<E|E|<<-'E'|# escape=`|COPY a b){0,20}"
        ) {
            let Ok(file) = parse(&text) else { return Ok(()) };
            for instruction in &file.instructions {
                prop_assert!(text[instruction.span.bytes()].chars().count() > 0);
                let joined = &instruction.arguments;
                for (at, ch) in joined.text.char_indices() {
                    let source = joined.source_range(at..at + ch.len_utf8());
                    prop_assert!(text[source].chars().eq([ch]));
                }
                for doc in &instruction.here_docs {
                    prop_assert!(text.get(doc.span.bytes()).is_some());
                }
            }
        }
    }
}
