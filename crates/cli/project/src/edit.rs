//! Changes keys of `[serve]` in the text of a `cudock.toml`. Everything else keeps its bytes: comments, order, blank lines.
//!
//! The crate `toml_edit` writes the whole file anew: without carriage returns, without the comments above a removed key,
//! and with dotted keys in another order.

use cudock_base::bug::Parts;
use std::ops::Range;
use std::path::Path;

use toml::Table;
use toml::de::{DeTable, DeValue};

use crate::{ProjectError, parse};

const SERVE: &str = "serve";

/// Sets keys of `[serve]` to values, written as TOML, or removes those without a value. `path` is for errors.
pub fn edit_serve(
    path: &Path,
    text: &str,
    changes: &[(&str, Option<String>)],
) -> Result<String, ProjectError> {
    let document = DeTable::parse(text).map_err(|error| ProjectError::parse(path, text, &error))?;
    let serve = document.get_ref().iter().find(|(key, _)| key.get_ref() == SERVE);
    let mut edits: Vec<(Range<usize>, String)> = Vec::new();
    let mut added = String::new();
    // New keys go below the last one that is not a table.
    let mut below = None;
    let keys = match serve.map(|(_, value)| value.get_ref()) {
        Some(DeValue::Table(keys)) => keys.iter().collect(),
        _ => Vec::new(),
    };
    if let Some((_, value)) = serve.filter(|(_, value)| is_header(text, value.span())) {
        below = Some(value.span().end);
        let plain = keys.iter().filter(|(_, value)| !is_table(value.get_ref()));
        below = below.max(plain.map(|(_, value)| value.span().end).max());
    }
    for (key, value) in changes {
        let existing = keys.iter().find(|(name, _)| name.get_ref() == key);
        match (existing, value) {
            (Some((_, old)), Some(value)) => edits.push((old.span(), value.clone())),
            (Some((name, old)), None) => {
                edits.push((
                    line_start(text, name.span().start)..line_end(text, old.span().end),
                    String::new(),
                ));
            }
            (None, Some(value)) => added.extend([key, " = ", value, "\n"]),
            (None, None) => {}
        }
    }
    if !added.is_empty() {
        let at = below.map_or(text.len(), |below| line_end(text, below));
        let starts_line = text.get(..at).is_some_and(|before| before.is_empty() || before.ends_with('\n'));
        let newline = if starts_line { "" } else { "\n" };
        let header = match below {
            Some(_) => "",
            None if text.is_empty() => "[serve]\n",
            None => "\n[serve]\n",
        };
        edits.push((at..at, format!("{newline}{header}{added}")));
    }
    let edited = apply(text, edits);
    verify(path, text, &edited, changes)?;
    Ok(edited)
}

/// Whether the bytes are the header `[serve]`: a table may also be written inline, or implied by those below it.
fn is_header(text: &str, span: Range<usize>) -> bool {
    let header = text.get(span).and_then(|header| header.strip_prefix('[')?.strip_suffix(']'));
    header.is_some_and(|name| name.trim() == SERVE)
}

/// Whether a value may have its own header.
fn is_table(value: &DeValue<'_>) -> bool {
    match value {
        DeValue::Table(_) => true,
        DeValue::Array(entries) => entries.iter().any(|entry| matches!(entry.get_ref(), DeValue::Table(_))),
        _ => false,
    }
}

fn line_start(text: &str, offset: usize) -> usize {
    text.get(..offset).and_then(|before| before.rfind('\n')).map_or(0, |newline| newline + 1)
}

/// The offset after the newline that ends the line.
fn line_end(text: &str, offset: usize) -> usize {
    let newline = text.get(offset..).and_then(|rest| rest.find('\n'));
    newline.map_or(text.len(), |newline| offset + newline + 1)
}

fn apply(text: &str, mut edits: Vec<(Range<usize>, String)>) -> String {
    edits.sort_by_key(|(span, _)| (span.start, span.end));
    let mut edited = String::with_capacity(text.len() + 256);
    let mut at = 0;
    for (span, new) in edits {
        edited.push_str(text.part(at..span.start));
        edited.push_str(&new);
        at = at.max(span.end);
    }
    edited.push_str(text.part(at..));
    edited
}

/// Checks that the edited text means the original with the changes, and nothing else: TOML can be written in ways that
/// the edits above do not know.
fn verify(
    path: &Path,
    text: &str,
    edited: &str,
    changes: &[(&str, Option<String>)],
) -> Result<(), ProjectError> {
    let table =
        |text: &str| toml::from_str::<Table>(text).map_err(|error| ProjectError::parse(path, text, &error));
    let (mut expected, actual) = (table(text)?, table(edited)?);
    let serve = expected.entry(SERVE).or_insert_with(|| Table::new().into());
    if let Some(serve) = serve.as_table_mut() {
        for (key, value) in changes {
            match value {
                Some(value) => serve.extend(table(&format!("{key} = {value}"))?),
                None => drop(serve.remove(*key)),
            }
        }
        if serve.is_empty() && !actual.contains_key(SERVE) {
            expected.remove(SERVE);
        }
    }
    if expected != actual {
        let problem = "cannot change `serve` as it is written here: use a [serve] header".to_owned();
        let offset = text.find(SERVE).unwrap_or(0);
        return Err(ProjectError::at(path, text, offset, problem, None));
    }
    parse(path, edited).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(text: &str, changes: &[(&str, Option<&str>)]) -> Result<String, String> {
        let changes: Vec<_> =
            changes.iter().map(|(key, value)| (*key, value.map(ToString::to_string))).collect();
        edit_serve(Path::new("cudock.toml"), text, &changes).map_err(|error| error.to_string())
    }

    #[test]
    fn keys_are_changed_added_and_removed_and_all_else_stays() {
        let lanes = ("lanes", Some("2"));
        for (text, changes, expected) in [
            ("", &[lanes][..], "[serve]\nlanes = 2\n"),
            ("name = 'a'", &[lanes], "name = 'a'\n\n[serve]\nlanes = 2\n"),
            ("[serve]", &[lanes], "[serve]\nlanes = 2\n"),
            (
                "[serve] # all\nlanes = 1 # one\n\n# next\n[serve.try]\nrange = [0, 16]\n",
                &[lanes, ("max_batch", Some("64")), ("preferred", Some("[1, 8]"))],
                "[serve] # all\nlanes = 2 # one\nmax_batch = 64\npreferred = [1, 8]\n\n# next\n[serve.try]\n\
                 range = [0, 16]\n",
            ),
            (
                "[serve.try]\nrange = [0, 1]\n",
                &[lanes],
                "[serve.try]\nrange = [0, 1]\n\n[serve]\nlanes = 2\n",
            ),
            (
                "[serve]\npreferred = [\n  1, # one\n  8,\n]\nlanes = 3\n[lint]\n",
                &[("preferred", None), ("lanes", None), ("nhwc", None)],
                "[serve]\n[lint]\n",
            ),
            (
                "[serve]\nmax_batch = 8\n\n[[serve.inputs]]\nname = 'x'\ndtype = 'float32'\nshape = [-1]\n",
                &[("graphs", Some("true"))],
                "[serve]\nmax_batch = 8\ngraphs = true\n\n[[serve.inputs]]\nname = 'x'\ndtype = 'float32'\n\
                 shape = [-1]\n",
            ),
            ("[serve]\nlanes = 1", &[("sessions", Some("2"))], "[serve]\nlanes = 1\nsessions = 2\n"),
            ("[serve]\r\nlanes = 1\r\n# end\r\n", &[lanes], "[serve]\r\nlanes = 2\r\n# end\r\n"),
            (
                "[serve]\n# max_batch = 64\nlanes = 1\n\n[lint]\n",
                &[("lanes", None)],
                "[serve]\n# max_batch = 64\n\n[lint]\n",
            ),
            ("name = 'a'\n# end", &[lanes], "name = 'a'\n# end\n\n[serve]\nlanes = 2\n"),
            (
                "serve.lanes = 1\nname = 'a'\nserve.sessions = 2",
                &[lanes],
                "serve.lanes = 2\nname = 'a'\nserve.sessions = 2",
            ),
        ] {
            assert_eq!(edit(text, changes).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_edited_is_an_error_and_not_another_file() {
        let inline = edit("name = 'a'\nserve = { lanes = 1 }\n", &[("sessions", Some("2"))]).unwrap_err();
        assert!(inline.starts_with("cudock.toml:"), "{inline}");
        for (text, value) in [("[serve]\n", "'many'"), ("[serve]\n", "1\n[other]"), ("[serve", "1")] {
            assert!(edit(text, &[("lanes", Some(value))]).is_err(), "{text}{value}");
        }
    }

    #[test]
    fn an_inline_table_can_be_changed_in_place() {
        let edited = edit("serve = { lanes = 1, max_batch = 8 }\n", &[("lanes", Some("2"))]);
        assert_eq!(edited.as_deref(), Ok("serve = { lanes = 2, max_batch = 8 }\n"));
    }
}
