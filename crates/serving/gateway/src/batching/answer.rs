//! Splits the answer to a batch into those to its requests.
//!
//! A list is split if the user has named its key or it is part of a [known](KNOWN_LISTS) server's format; numbers, strings,
//! `true`, `false` and `null` are copied, and so is what the user has named as shared. Any other list or object may hold
//! rows of other clients, whatever its length, so an answer with one is not split at all.

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;

use crate::batching::rows::{RequestRows, RowFormat};
use crate::batching::scan::{Malformed, Scanner};

/// Longest key in messages.
const MAX_SHOWN_KEY: usize = 64;

/// A list with one element per row that is part of a server's format, and need not be named by the user.
struct KnownList {
    key: &'static str,
    /// Key of the rows in requests of this format; any if `None`.
    input_key: Option<&'static str>,
    /// A key with a scalar that such an answer has, too.
    beside: Option<&'static str>,
    elements: Elements,
}

/// The type of a list's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Elements {
    Any,
    /// Lists of `{"label": …}`.
    Labels,
}

/// The lists of servers that are recognized by the form of their responses. A top-level list, as
/// TorchServe sends, is always one of rows. Triton's and others of the Open Inference Protocol have
/// none: their `outputs` are tensors. Neither has TensorFlow's columnar format, in which outputs
/// need not have rows.
static KNOWN_LISTS: [KnownList; 2] = [
    // cudock serve: {"prediction": […], "device": "cpu", "labels": [[{"label": "cat", "score": 0.9}, …], …]}
    KnownList { key: "labels", input_key: None, beside: Some("device"), elements: Elements::Labels },
    // TensorFlow Serving by rows, KServe's version 1, Vertex AI: {"predictions": […]}
    KnownList { key: "predictions", input_key: Some("instances"), beside: None, elements: Elements::Any },
];

/// Why an answer cannot be split.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SplitError {
    #[error("status {0}")]
    Status(u16),
    #[error("content type {0}")]
    ContentType(String),
    #[error("content encoding {0}")]
    ContentEncoding(String),
    #[error("neither a JSON object nor a list")]
    NotJson,
    #[error("`{key}` is a list or an object")]
    UnknownList { key: String },
    #[error("no list of rows")]
    NoRows,
    #[error("`{key}` is not a list with one element per row")]
    NotAList { key: String },
    #[error("{list} has {actual} elements for {expected} rows")]
    WrongRows { list: String, expected: usize, actual: usize },
}

impl SplitError {
    /// Whether all answers of this form are so, whatever their rows are.
    pub(crate) fn is_about_form(&self) -> bool {
        matches!(self, Self::UnknownList { .. })
    }

    /// A suggestion for the user.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::UnknownList { key } => Some(format!(
                "--output-key {key} if it has one element per row, --shared-key {key} if it is the same for all rows"
            )),
            Self::NoRows | Self::NotAList { .. } | Self::WrongRows { .. } => {
                Some("set the key of the list of rows with --output-key".to_owned())
            }
            Self::Status(_) | Self::ContentType(_) | Self::ContentEncoding(_) | Self::NotJson => None,
        }
    }
}

/// A value with one element per row.
struct RowList {
    value: Range<usize>,
    rows: Vec<Range<usize>>,
}

impl RowFormat {
    /// Splits an answer to [`join`](crate::batching::rows::join)ed requests into the pieces of each request's answer, in their order.
    pub fn split(&self, answer: &Bytes, requests: &[&RequestRows]) -> Result<Vec<Vec<Bytes>>, SplitError> {
        let expected = requests.iter().map(|request| request.count()).sum();
        let lists = AnswerReader::new(self, answer, expected).read()?;
        let mut first = 0;
        let mut answers = Vec::with_capacity(requests.len());
        for request in requests {
            let rows = first..first + request.count();
            first = rows.end;
            answers.push(pieces(answer, &lists, &rows, request.is_single()).ok_or(SplitError::NotJson)?);
        }
        Ok(answers)
    }
}

/// Finds the lists of rows in an answer.
struct AnswerReader<'a> {
    format: &'a RowFormat,
    answer: &'a [u8],
    /// Number of rows.
    expected: usize,
    lists: Vec<RowList>,
    /// Keys with scalars.
    scalars: Vec<Cow<'a, str>>,
    /// Known lists that are in the answer.
    known: Vec<&'static KnownList>,
    problem: Option<SplitError>,
}

impl<'a> AnswerReader<'a> {
    fn new(format: &'a RowFormat, answer: &'a [u8], expected: usize) -> Self {
        let (lists, scalars, known) = (Vec::new(), Vec::new(), Vec::new());
        Self { format, answer, expected, lists, scalars, known, problem: None }
    }

    fn read(mut self) -> Result<Vec<RowList>, SplitError> {
        let mut scanner = Scanner::new(self.answer);
        let outcome = match scanner.peek() {
            Some(b'[') => self.list(&mut scanner, None, Elements::Any),
            _ => scanner.object(|scanner, key| self.field(scanner, key)),
        };
        outcome.and_then(|()| scanner.end()).map_err(|Malformed| SplitError::NotJson)?;
        for known in std::mem::take(&mut self.known) {
            if known.beside.is_some_and(|beside| !self.scalars.iter().any(|key| key == beside)) {
                self.note(SplitError::UnknownList { key: known.key.to_owned() });
            }
        }
        match self.problem {
            Some(problem) => Err(problem),
            None if self.lists.is_empty() => Err(SplitError::NoRows),
            None => Ok(self.lists),
        }
    }

    /// Keeps the first problem; one that is about the form of answers is the one to report.
    fn note(&mut self, problem: SplitError) {
        if self.problem.as_ref().is_none_or(|known| problem.is_about_form() && !known.is_about_form()) {
            self.problem = Some(problem);
        }
    }

    fn field(&mut self, scanner: &mut Scanner<'a>, key: &'a [u8]) -> Result<(), Malformed> {
        let key = unescaped(key)?;
        let named = |keys: &[String]| keys.iter().any(|known| *known == key);
        if named(&self.format.output_keys) {
            return self.output(scanner, &key);
        }
        if named(&self.format.shared_keys) {
            return scanner.value().map(drop);
        }
        let input_key = &self.format.input_key;
        let known = KNOWN_LISTS
            .iter()
            .find(|known| known.key == key && known.input_key.is_none_or(|known| known == input_key));
        match (scanner.peek(), known) {
            (Some(b'['), Some(known)) => {
                self.known.push(known);
                self.list(scanner, Some(&key), known.elements)
            }
            (Some(b'[' | b'{'), _) => {
                self.note(SplitError::UnknownList { key: shown(&key) });
                scanner.value().map(drop)
            }
            _ => {
                self.scalars.push(key);
                scanner.value().map(drop)
            }
        }
    }

    /// Reads the value of an output key: a list of rows, or an object of such lists and scalars, as servers answer that
    /// have several outputs.
    fn output(&mut self, scanner: &mut Scanner<'a>, key: &str) -> Result<(), Malformed> {
        match scanner.peek() {
            Some(b'[') => return self.list(scanner, Some(key), Elements::Any),
            Some(b'{') => {}
            _ => {
                self.note(SplitError::NotAList { key: shown(key) });
                return scanner.value().map(drop);
            }
        }
        let lists = self.lists.len();
        scanner.object(|scanner, name| match scanner.peek() {
            Some(b'[') => {
                let name = format!("{key}.{}", unescaped(name)?);
                self.list(scanner, Some(&name), Elements::Any)
            }
            Some(b'{') => {
                self.note(SplitError::NotAList { key: shown(&format!("{key}.{}", unescaped(name)?)) });
                scanner.value().map(drop)
            }
            _ => scanner.value().map(drop),
        })?;
        if self.lists.len() == lists {
            self.note(SplitError::NotAList { key: shown(key) });
        }
        Ok(())
    }

    /// Reads a list of rows under a key, or one without anything around it.
    fn list(
        &mut self,
        scanner: &mut Scanner<'a>,
        key: Option<&str>,
        elements: Elements,
    ) -> Result<(), Malformed> {
        let (expected, answer) = (self.expected, self.answer);
        let mut rows = Vec::with_capacity(expected);
        let (mut actual, mut is_known) = (0, true);
        let value = scanner.list(|span, _| {
            actual += 1;
            if elements == Elements::Labels {
                is_known &= answer.get(span.clone()).is_some_and(is_label_list);
            }
            // An answer with more of them is rejected, so its rows need no memory.
            if rows.len() < expected {
                rows.push(span);
            }
        })?;
        if !is_known {
            self.note(SplitError::UnknownList { key: key.map(shown).unwrap_or_default() });
        } else if actual != expected {
            let list = key.map_or("the list".to_owned(), |key| format!("`{}`", shown(key)));
            self.note(SplitError::WrongRows { list, expected, actual });
        }
        self.lists.push(RowList { value, rows });
        Ok(())
    }
}

/// The key that an answer means, which may be written with escapes.
fn unescaped(key: &[u8]) -> Result<Cow<'_, str>, Malformed> {
    if !key.contains(&b'\\') {
        return std::str::from_utf8(key).map(Cow::Borrowed).map_err(|_| Malformed);
    }
    let quoted = [b"\"", key, b"\""].concat();
    serde_json::from_slice::<String>(&quoted).map(Cow::Owned).map_err(|_| Malformed)
}

fn shown(key: &str) -> String {
    key.chars().take(MAX_SHOWN_KEY).collect()
}

/// Whether a value is a list that is empty or begins with an object whose first key is `label`.
fn is_label_list(value: &[u8]) -> bool {
    let mut rest = value;
    let begins = |rest: &mut &[u8], token: &[u8]| {
        let after = rest.trim_ascii_start().strip_prefix(token);
        *rest = after.unwrap_or(rest);
        after.is_some()
    };
    begins(&mut rest, b"[")
        && (begins(&mut rest, b"]") || (begins(&mut rest, b"{") && begins(&mut rest, b"\"label\"")))
}

/// The pieces of the answer to one request: the answer with only its own rows.
fn pieces(answer: &Bytes, lists: &[RowList], rows: &Range<usize>, is_single: bool) -> Option<Vec<Bytes>> {
    let mut pieces = Vec::with_capacity(lists.len() * 2 + 1);
    let mut at = 0;
    for list in lists {
        let own = list.rows.get(rows.clone())?;
        let own = own.first()?.start..own.last()?.end;
        // The brackets of the list, where the request was a list.
        let (open, close) = if is_single { (0, 0) } else { (1, 1) };
        pieces.push(answer.slice(at..list.value.start + open));
        pieces.push(answer.slice(own));
        at = list.value.end - close;
    }
    pieces.push(answer.slice(at..));
    Some(pieces)
}
