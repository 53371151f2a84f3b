//! Words of a command line, as shells take them apart.

use super::names::is_name_byte;
use super::variables::Variables;

/// A word. Each part is what one pair of quotes, one variable or one run of plain letters gives.
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

/// A word's value with the place that it would have to be changed at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Placed {
    pub(super) text: String,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Word {
    pub(super) fn text(&self) -> String {
        self.parts.iter().map(|part| part.text.as_str()).collect()
    }

    /// The whole word, in its place.
    pub(super) fn placed(&self) -> Option<Placed> {
        self.after(0)
    }

    /// What follows the first bytes of a word: the value in `--size=VALUE`.
    pub(super) fn after(&self, mut bytes: usize) -> Option<Placed> {
        let mut parts = self.parts.iter();
        let mut placed: Option<Placed> = None;
        for part in &mut parts {
            let cut = bytes.min(part.text.len());
            bytes -= cut;
            let text = part.text.get(cut..)?;
            if text.is_empty() && cut > 0 {
                continue;
            }
            match &mut placed {
                None => {
                    placed = Some(Placed { text: text.to_owned(), start: part.start + cut, end: part.end });
                }
                Some(placed) => {
                    placed.text.push_str(text);
                    // A variable's value stands elsewhere; only quotes or a line's end lie between neighbours.
                    let gap = part.start.checked_sub(placed.end);
                    placed.end = if gap.is_some_and(|gap| gap <= 4) { part.end } else { placed.end };
                }
            }
        }
        placed
    }
}

/// Takes a command apart, from a byte of its first word to its end: a line's end that is not continued, or a mark that
/// begins another command. `within` is the quote the command stands in, if it does.
pub(super) fn words(
    text: &str,
    at: usize,
    within: Option<u8>,
    variables: &Variables<'_>,
) -> (Vec<Word>, usize) {
    let mut cutter = Cutter { text, bytes: text.as_bytes(), at, within, variables };
    let mut words = Vec::new();
    while cutter.skip_blanks() {
        let before = cutter.at;
        words.push(cutter.word());
        if cutter.at == before {
            break;
        }
    }
    (words, cutter.at.max(at))
}

/// Cuts a single word: the value of an assignment.
pub(super) fn word(text: &str, at: usize, variables: &Variables<'_>) -> (Word, usize) {
    let mut cutter = Cutter { text, bytes: text.as_bytes(), at, within: None, variables };
    let word = cutter.word();
    (word, cutter.at)
}

struct Cutter<'t, 'v> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    within: Option<u8>,
    variables: &'v Variables<'t>,
}

impl Cutter<'_, '_> {
    fn byte(&self, offset: usize) -> Option<u8> {
        self.bytes.get(self.at + offset).copied()
    }

    /// How long the continuation of a line is that begins here: the mark of a shell, then the line's end.
    fn continuation(&self) -> Option<usize> {
        let mark = matches!(self.byte(0), Some(b'\\' | b'`' | b'^'));
        match (mark, self.byte(1), self.byte(2)) {
            (true, Some(b'\n'), _) => Some(2),
            (true, Some(b'\r'), Some(b'\n')) => Some(3),
            _ => None,
        }
    }

    /// Goes to the next word; false at the end of the command.
    fn skip_blanks(&mut self) -> bool {
        loop {
            match self.byte(0) {
                None | Some(b'\n' | b'\r' | b'#') => return false,
                Some(b' ' | b'\t') => self.at += 1,
                Some(byte) => match self.continuation() {
                    Some(length) => self.at += length,
                    None => return !self.ends_command(byte),
                },
            }
        }
    }

    fn ends_command(&self, byte: u8) -> bool {
        Some(byte) == self.within || b";|&()<>`".contains(&byte)
    }

    fn word(&mut self) -> Word {
        let mut word = Word::default();
        let mut plain: Option<Part> = None;
        let flush = |word: &mut Word, plain: &mut Option<Part>| word.parts.extend(plain.take());
        while let Some(byte) = self.byte(0) {
            if let Some(length) = self.continuation() {
                // A word goes on where the next line begins without a blank.
                self.at += length;
                flush(&mut word, &mut plain);
                continue;
            }
            if matches!(byte, b' ' | b'\t' | b'\n' | b'\r') || self.ends_command(byte) {
                break;
            }
            match byte {
                b'\'' | b'"' => match self.closing(byte) {
                    Some(end) => {
                        flush(&mut word, &mut plain);
                        self.quoted(byte, end, &mut word);
                    }
                    None => self.literal(1, &mut plain),
                },
                b'$' => {
                    if let Some((part, end)) = self.variable() {
                        flush(&mut word, &mut plain);
                        word.parts.extend(part);
                        self.at = end;
                    } else {
                        self.literal(1, &mut plain);
                    }
                }
                b'\\' => {
                    self.at += 1;
                    let length = self
                        .text
                        .get(self.at..)
                        .and_then(|rest| rest.chars().next())
                        .map_or(0, char::len_utf8);
                    self.literal(length, &mut plain);
                }
                _ => {
                    let length = self
                        .text
                        .get(self.at..)
                        .and_then(|rest| rest.chars().next())
                        .map_or(1, char::len_utf8);
                    self.literal(length, &mut plain);
                }
            }
        }
        flush(&mut word, &mut plain);
        word
    }

    fn literal(&mut self, length: usize, plain: &mut Option<Part>) {
        let end = self.at + length;
        let text = self.text.get(self.at..end).unwrap_or_default();
        match plain {
            Some(part) => {
                part.text.push_str(text);
                part.end = end;
            }
            None => *plain = Some(Part { text: text.to_owned(), start: self.at, end }),
        }
        self.at = end.min(self.bytes.len());
    }

    /// Where the quote that opens here closes.
    fn closing(&self, quote: u8) -> Option<usize> {
        let mut at = self.at + 1;
        while let Some(byte) = self.bytes.get(at) {
            match *byte {
                byte if byte == quote => return Some(at),
                b'\\' if quote == b'"' => at += 2,
                _ => at += 1,
            }
        }
        None
    }

    fn quoted(&mut self, quote: u8, end: usize, word: &mut Word) {
        let start = self.at + 1;
        let text = self.text.get(start..end).unwrap_or_default();
        self.at = start;
        if quote == b'"'
            && let Some((part, after)) = self.variable().filter(|(_, after)| *after == end)
        {
            word.parts.extend(part);
            self.at = after + 1;
            return;
        }
        word.parts.push(Part { text: text.to_owned(), start, end });
        self.at = end + 1;
    }

    /// A variable at this byte and where it ends; no part if nothing is known of it.
    fn variable(&self) -> Option<(Option<Part>, usize)> {
        let rest = nearby(self.text.get(self.at..)?).strip_prefix('$')?;
        let (name, length) = if let Some(inside) = rest.strip_prefix("{{") {
            let length = inside.find("}}")?;
            (inside.get(..length)?.trim(), length + 4)
        } else if let Some(inside) = rest.strip_prefix('{') {
            let length = inside.find(['}', '\n'])?;
            (inside.get(..length)?, length + 2)
        } else if let Some(inside) = rest.strip_prefix('(') {
            // Azure Pipelines writes variables like this; what is more than a name is a command.
            let length = inside.find([')', '\n'])?;
            (inside.get(..length)?, length + 2)
        } else {
            let length = rest.bytes().take_while(|byte| is_name_byte(*byte)).count();
            (rest.get(..length)?, length)
        };
        if length == 0 {
            return None;
        }
        let (name, fallback) =
            name.split_once(":-").map_or((name, None), |(name, fallback)| (name, Some(fallback)));
        let name = name.rsplit(['.', ':']).next().unwrap_or(name);
        let end = self.at + 1 + length;
        let known = self.variables.get(name, self.at);
        let part = known.or_else(|| {
            let fallback = fallback?;
            let start = self.at + 2 + name.len() + 2;
            Some(Placed { text: fallback.to_owned(), start, end: start + fallback.len() })
        });
        Some((part.map(|placed| Part { text: placed.text, start: placed.start, end: placed.end }), end))
    }
}

/// The beginning of a text: no name of a variable is longer.
fn nearby(text: &str) -> &str {
    let mut end = text.len().min(200);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or(text)
}

/// The comments of a script: from a `#` that begins a word to the end of its line.
pub(super) fn comments(text: &str, start: usize, end: usize, comments: &mut Vec<(usize, usize)>) {
    let mut at = start;
    for line in text.get(start..end).unwrap_or_default().split_inclusive('\n') {
        let content = line.trim_end();
        let mut quote = None;
        let mut before = b' ';
        for (offset, byte) in content.bytes().enumerate() {
            match (quote, byte) {
                (None, b'\'' | b'"') => quote = Some(byte),
                (Some(open), _) if open == byte => quote = None,
                (None, b'#') if matches!(before, b' ' | b'\t' | b';') => {
                    comments.push((at + offset, at + content.len()));
                    break;
                }
                _ => {}
            }
            before = byte;
        }
        at += line.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str) -> Vec<String> {
        words(text, 0, None, &Variables::default()).0.iter().map(Word::text).collect()
    }

    #[test]
    fn quotes_and_continued_lines_make_words() {
        assert_eq!(cut("a 'b c' \"d\"e \\\r\n  --f=`\n g ^\n h; i"), ["a", "b c", "de", "--f=", "g", "h"]);
        assert_eq!(cut("a | b"), ["a"]);
        assert_eq!(cut("a # b"), ["a"]);
        assert_eq!(cut("it's"), ["it's"]);
    }

    #[test]
    fn a_word_knows_where_it_stands() {
        let text = "x --size=\"Standard_NC6\"";
        let word = words(text, 0, None, &Variables::default()).0.pop().unwrap();
        let value = word.after("--size=".len()).unwrap();
        assert_eq!((&text[value.start..value.end], value.text.as_str()), ("Standard_NC6", "Standard_NC6"));
    }

    #[test]
    fn what_follows_a_number_sign_is_a_comment_unless_it_is_quoted() {
        let mut found = Vec::new();
        let text = "a '# b' # c\r\n#d\nx#y\n";
        comments(text, 0, text.len(), &mut found);
        let found: Vec<&str> = found.iter().map(|(start, end)| &text[*start..*end]).collect();
        assert_eq!(found, ["# c", "#d"]);
    }
}
