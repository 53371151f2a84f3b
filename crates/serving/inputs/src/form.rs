//! Files in a request: `multipart/form-data`, and base64 in JSON.

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use cudock_base::bug::Parts;
use cudock_base::text::truncate;
use memchr::memmem;

use crate::InputError;

/// Longest boundary that RFC 2046 allows.
const LONGEST_BOUNDARY: usize = 70;
/// Maximum number of files of a request.
const MOST_FILES: usize = 1024;
/// Longest head of a part.
const LONGEST_HEAD: usize = 4096;

/// One file of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputFile {
    /// Its name in messages.
    pub name: String,
    pub bytes: Bytes,
}

/// The files of a `multipart/form-data` body, in order. Every part is a file, whatever its name; their bytes are slices
/// of the body.
pub fn read_form(body: &Bytes, content_type: &str) -> Result<Vec<InputFile>, InputError> {
    let boundary = boundary(content_type).ok_or_else(|| {
        InputError::Invalid("the content-type of the form has no valid boundary".to_owned())
    })?;
    let delimiter = format!("\r\n--{boundary}");
    let finder = memmem::Finder::new(&delimiter);
    // The first delimiter has no line before it, unless there is a preamble.
    let first = if body.starts_with(delimiter.trim_start().as_bytes()) {
        Some(delimiter.len() - 2)
    } else {
        finder.find(body).map(|at| at + delimiter.len())
    };
    let mut at = first.ok_or_else(|| invalid("the form does not contain its boundary"))?;
    let mut files = Vec::new();
    loop {
        let rest = body.part(at..);
        if rest.starts_with(b"--") {
            break;
        }
        let number = files.len() + 1;
        check_count(number)?;
        let padding = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        // The line end belongs to the head, so that a part without headers begins with an empty line.
        let start = at + padding;
        let length = body
            .get(start..)
            .filter(|part| part.starts_with(b"\r\n"))
            .and_then(|part| finder.find(part))
            .ok_or_else(|| invalid(format!("file {number}: the form ends without its closing boundary")))?;
        let part = body.slice(start..start + length);
        let limit = part.len().min(LONGEST_HEAD);
        let head = memmem::find(part.part(..limit), b"\r\n\r\n")
            .ok_or_else(|| invalid(format!("file {number}: its headers do not end")))?;
        let name = file_name(part.part(..head));
        let name = name.map(|name| format!(" ({})", truncate(&name, 60))).unwrap_or_default();
        files.push(InputFile { name: format!("file {number}{name}"), bytes: part.slice(head + 4..) });
        at = start + length + delimiter.len();
    }
    if files.is_empty() {
        return Err(invalid("the form has no files"));
    }
    Ok(files)
}

/// Rejects a request of too many files.
pub(crate) fn check_count(files: usize) -> Result<(), InputError> {
    if files > MOST_FILES {
        return Err(InputError::TooLarge(format!("more than the {MOST_FILES} files allowed")));
    }
    Ok(())
}

fn invalid(message: impl Into<String>) -> InputError {
    InputError::Invalid(message.into())
}

/// The boundary in a content type.
fn boundary(content_type: &str) -> Option<&str> {
    let mut parameters = content_type.split(';').skip(1).filter_map(|parameter| parameter.split_once('='));
    let (_, value) = parameters.find(|(name, _)| name.trim().eq_ignore_ascii_case("boundary"))?;
    let boundary = value.trim().trim_matches('"');
    let valid =
        (1..=LONGEST_BOUNDARY).contains(&boundary.len()) && boundary.bytes().all(|b| (32..127).contains(&b));
    valid.then_some(boundary)
}

/// The name of the file, or of the field, in the head of a part.
fn file_name(head: &[u8]) -> Option<String> {
    let head = String::from_utf8_lossy(head);
    let is_disposition = |line: &&str| {
        line.split_once(':').is_some_and(|(name, _)| name.trim().eq_ignore_ascii_case("content-disposition"))
    };
    let line = head.lines().find(is_disposition)?;
    let parameter = |wanted: &str| {
        let mut parameters = line.split(';').skip(1).filter_map(|parameter| parameter.split_once('='));
        let (_, value) = parameters.find(|(name, _)| name.trim().eq_ignore_ascii_case(wanted))?;
        Some(value.trim().trim_matches('"').to_owned())
    };
    parameter("filename").or_else(|| parameter("name"))
}

/// The bytes of base64 text, which may be a data URL.
pub fn read_base64(text: &[u8]) -> Result<Bytes, InputError> {
    const BASE64: GeneralPurpose = GeneralPurpose::new(
        &alphabet::STANDARD,
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
    );
    let comma = if text.starts_with(b"data:") { memchr::memchr(b',', text) } else { None };
    let text = comma.and_then(|at| text.get(at + 1..)).unwrap_or(text);
    let bytes = BASE64.decode(text).map_err(|error| invalid(format!("invalid base64: {error}")))?;
    Ok(bytes.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPE: &str = "multipart/form-data; boundary=\"x y\"";

    fn read(body: &str) -> Result<Vec<(String, String)>, String> {
        let files =
            read_form(&Bytes::copy_from_slice(body.as_bytes()), TYPE).map_err(|error| error.to_string())?;
        let text = |file: InputFile| (file.name, String::from_utf8(file.bytes.to_vec()).unwrap());
        Ok(files.into_iter().map(text).collect())
    }

    #[test]
    fn files_are_read_in_order() {
        let body = "preamble\r\n--x y\r\nContent-Disposition: form-data; name=\"a\"; filename=\"b.png\"\r\n\r\none\r\n\r\n--x\
            \r\n--x y  \r\ncontent-disposition: form-data; name=c\r\ncontent-type: image/png\r\n\r\n\r\n--x y\r\n\r\nthree\
            \r\n--x y--\r\nepilogue";
        let files = [("file 1 (b.png)", "one\r\n\r\n--x"), ("file 2 (c)", ""), ("file 3", "three")];
        let files = files.map(|(name, text)| (name.to_owned(), text.to_owned()));
        assert_eq!(read(body), Ok(files.to_vec()));
    }

    #[test]
    fn broken_forms_are_rejected() {
        for (body, message) in [
            ("", "the form does not contain its boundary"),
            ("--x y--", "the form has no files"),
            ("--x y\r\n\r\none", "file 1: the form ends without its closing boundary"),
            ("--x y\r\n\r\none\r\n--x yz", "file 2: the form ends without its closing boundary"),
            ("--x y\r\nname: a\r\n--x y--", "file 1: its headers do not end"),
        ] {
            assert_eq!(read(body), Err(message.to_owned()), "{body:?}");
        }
        let many = read(&("--x y\r\n\r\n\r\n".repeat(1025) + "--x y--"));
        assert_eq!(many, Err("more than the 1024 files allowed".to_owned()));
        for content_type in
            ["multipart/form-data", "multipart/form-data; boundary=\"\"", "x; boundary=\u{e9}"]
        {
            let error = read_form(&Bytes::new(), content_type).unwrap_err();
            assert_eq!(
                error.to_string(),
                "the content-type of the form has no valid boundary",
                "{content_type}"
            );
        }
    }

    #[test]
    fn base64_may_be_a_data_url_and_lack_padding() {
        for text in ["aGk=", "aGk", "data:image/png;base64,aGk="] {
            assert_eq!(read_base64(text.as_bytes()).unwrap(), "hi", "{text}");
        }
        assert!(read_base64(b"a b").unwrap_err().to_string().starts_with("invalid base64: "));
    }
}
