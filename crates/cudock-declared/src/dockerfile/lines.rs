//! A Dockerfile's text as instructions: parser directives, continued lines, here-documents.

use crate::{Fault, excerpt};

/// An instruction with its arguments on one line, as Docker joins them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Instruction {
    /// In capitals.
    pub(super) keyword: String,
    pub(super) arguments: String,
    pub(super) heredocs: Vec<Heredoc>,
    /// Where it starts, from 1.
    pub(super) line: usize,
    /// For each continued line: where in `arguments` it starts, and its number.
    continued: Vec<(usize, usize)>,
}

/// Text that follows an instruction up to a line with its name.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Heredoc {
    pub(super) name: String,
    pub(super) body: String,
    /// Where the body starts.
    pub(super) line: usize,
}

impl Instruction {
    /// The line of a byte of the arguments.
    pub(super) fn line_of(&self, at: usize) -> usize {
        let next = self.continued.partition_point(|(start, _)| *start <= at);
        next.checked_sub(1).and_then(|index| self.continued.get(index)).map_or(self.line, |(_, line)| *line)
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

/// The instructions, and the character that continues lines and escapes others.
pub(super) fn parse(text: &str) -> Result<(Vec<Instruction>, char), Fault> {
    let escape = escape_directive(text)?;
    let mut instructions = Vec::new();
    let mut lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
    while let Some((number, line)) = lines.next() {
        if is_blank(line) {
            continue;
        }
        let mut joined = String::new();
        let mut continued = Vec::new();
        let mut current = Some((number, line.trim_start()));
        while let Some((number, line)) = current.take() {
            continued.push((joined.len(), number));
            match without_continuation(line, escape) {
                Some(part) => {
                    joined.push_str(part);
                    // Blank lines and comments between continued lines do not end them.
                    current = lines.by_ref().find(|(_, line)| !is_blank(line));
                }
                None => joined.push_str(line),
            }
        }
        let mut instruction = instruction(&joined, number, continued)?;
        if matches!(instruction.keyword.as_str(), "RUN" | "COPY" | "ADD") {
            for (name, strips_tabs) in heredoc_names(&instruction.arguments) {
                let heredoc = heredoc(&name, strips_tabs, &mut lines, number)?;
                instruction.heredocs.push(heredoc);
            }
        }
        instructions.push(instruction);
    }
    Ok((instructions, escape))
}

fn is_blank(line: &str) -> bool {
    let line = line.trim_start();
    line.is_empty() || line.starts_with('#')
}

/// `# escape=` among the comments at the very top.
fn escape_directive(text: &str) -> Result<char, Fault> {
    for (index, line) in text.lines().enumerate() {
        let Some((key, value)) =
            line.trim_start().strip_prefix('#').and_then(|comment| comment.split_once('='))
        else {
            break;
        };
        let key = key.trim();
        if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            break;
        }
        if key.eq_ignore_ascii_case("escape") {
            return match value.trim() {
                "\\" => Ok('\\'),
                "`" => Ok('`'),
                other => Err(Fault::new(index + 1, 1, format!("`{}` cannot be the escape", excerpt(other)))),
            };
        }
    }
    Ok('\\')
}

/// The line without the escape at its end; two of them are a character, not a continuation.
fn without_continuation(line: &str, escape: char) -> Option<&str> {
    let part = line.trim_end_matches([' ', '\t']).strip_suffix(escape)?;
    (!part.ends_with(escape)).then_some(part)
}

fn instruction(joined: &str, line: usize, continued: Vec<(usize, usize)>) -> Result<Instruction, Fault> {
    let end = joined.find(char::is_whitespace).unwrap_or(joined.len());
    let (word, rest) = joined.split_at_checked(end).unwrap_or((joined, ""));
    let keyword = word.to_ascii_uppercase();
    if KEYWORDS.binary_search(&keyword.as_str()).is_err() {
        return Err(Fault::new(line, 1, format!("unknown instruction `{}`", excerpt(word))));
    }
    let arguments = rest.trim();
    if arguments.is_empty() {
        return Err(Fault::new(line, word.chars().count() + 1, format!("{keyword} without arguments")));
    }
    let before = end + (rest.len() - rest.trim_start().len());
    let continued = continued.into_iter().map(|(start, line)| (start.saturating_sub(before), line)).collect();
    Ok(Instruction { keyword, arguments: arguments.to_owned(), heredocs: Vec::new(), line, continued })
}

/// The names after `<<` and `<<-`, outside quotes.
fn heredoc_names(arguments: &str) -> Vec<(String, bool)> {
    let mut names = Vec::new();
    let mut quote = None;
    let mut at_word_start = true;
    for (at, letter) in arguments.char_indices() {
        match quote {
            Some(end) => quote = Some(end).filter(|end| *end != letter),
            None if matches!(letter, '"' | '\'') => quote = Some(letter),
            None if at_word_start && letter == '<' => {
                names.extend(heredoc_name(arguments.get(at..).unwrap_or("")));
            }
            None => {}
        }
        at_word_start = letter.is_whitespace() || at_word_start && letter.is_ascii_digit();
    }
    names
}

fn heredoc_name(text: &str) -> Option<(String, bool)> {
    let rest = text.strip_prefix("<<")?;
    let (rest, strips_tabs) = rest.strip_prefix('-').map_or((rest, false), |rest| (rest, true));
    let word = rest.split(char::is_whitespace).next()?;
    let name: String = word.chars().filter(|letter| !matches!(letter, '"' | '\'')).collect();
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'));
    (!name.is_empty() && is_name).then_some((name, strips_tabs))
}

fn heredoc<'a>(
    name: &str,
    strips_tabs: bool,
    lines: &mut impl Iterator<Item = (usize, &'a str)>,
    opened: usize,
) -> Result<Heredoc, Fault> {
    let mut body = String::new();
    let mut first = None;
    for (number, line) in lines {
        let line = if strips_tabs { line.trim_start_matches('\t') } else { line };
        let start = *first.get_or_insert(number);
        if line == name {
            return Ok(Heredoc { name: name.to_owned(), body, line: start });
        }
        body.push_str(line);
        body.push('\n');
    }
    Err(Fault::new(opened, 1, format!("no line `{}` ends the text that starts here", excerpt(name))))
}
