//! Safetensors: eight bytes that say how long the header is, the header in JSON, the data.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

use crate::error::ModelError;
use crate::format::NumberFormat;
use crate::tally::Tally;
use crate::{FileKind, Model};

/// The longest header, as the format's own reader has it.
pub const LONGEST_HEADER: u64 = 100_000_000;

/// The longest index of a model in several files.
const LONGEST_INDEX: u64 = 100_000_000;

/// Whether bytes begin as such a file does.
pub(crate) fn looks_like_one(bytes: &[u8]) -> bool {
    header_of(bytes).is_ok_and(|(header, _)| header.first() == Some(&b'{'))
}

/// The header, and how many bytes are behind it.
fn header_of(bytes: &[u8]) -> Result<(&[u8], u64), String> {
    let (length, rest) =
        bytes.split_first_chunk::<8>().ok_or("it is shorter than the length of its header")?;
    let length = u64::from_le_bytes(*length);
    if length > LONGEST_HEADER {
        return Err(format!("its header claims {length} bytes; {LONGEST_HEADER} are the most"));
    }
    let cut = || format!("its header claims {length} bytes and the file ends before");
    let length = usize::try_from(length).map_err(|_| cut())?;
    let (header, data) = rest.split_at_checked(length).ok_or_else(cut)?;
    Ok((header, data.len() as u64))
}

/// Counts the tensors of a file; the error says what is wrong with it.
pub fn read(bytes: &[u8]) -> Result<Tally, String> {
    let (header, data) = header_of(bytes)?;
    let mut counted = Counted { tally: Tally::default(), held: 0 };
    let mut reader = serde_json::Deserializer::from_slice(header);
    reader
        .deserialize_map(HeaderVisitor { counted: &mut counted, data })
        .and_then(|()| reader.end())
        .map_err(|error| format!("its header is broken: {error}"))?;
    // Tensors that overlap would count twice what is there once.
    if counted.held > data {
        return Err(format!("its tensors claim {} bytes and the file holds {data}", counted.held));
    }
    Ok(counted.tally)
}

struct Counted {
    tally: Tally,
    held: u64,
}

struct HeaderVisitor<'c> {
    counted: &'c mut Counted,
    data: u64,
}

#[derive(Deserialize)]
struct Entry<'a> {
    #[serde(borrow)]
    dtype: Cow<'a, str>,
    shape: Vec<u64>,
    data_offsets: (u64, u64),
}

impl<'de> Visitor<'de> for HeaderVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("tensors by their names")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<Cow<'de, str>>()? {
            if name == "__metadata__" {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let entry: Entry<'de> = map.next_value()?;
            self.counted.count(&name, &entry, self.data).map_err(serde::de::Error::custom)?;
        }
        Ok(())
    }
}

impl Counted {
    fn count(&mut self, name: &str, entry: &Entry<'_>, data: u64) -> Result<(), String> {
        let wrong = |what: &str| format!("tensor `{}` {what}", name.chars().take(80).collect::<String>());
        let (from, to) = entry.data_offsets;
        if to > data {
            return Err(wrong("lies beyond the end of the file"));
        }
        let bytes = to.checked_sub(from).ok_or_else(|| wrong("ends before it begins"))?;
        let elements = elements(&entry.shape).ok_or_else(|| wrong("has more numbers than can be counted"))?;
        let format = format_named(&entry.dtype);
        if format.bits().is_some() && format.bytes(elements) != Some(bytes) {
            return Err(wrong("takes another number of bytes than its shape says"));
        }
        self.held = self.held.saturating_add(bytes);
        self.tally.add(name, format, elements, bytes);
        Ok(())
    }
}

/// The product of all dimensions; a tensor without any is one number.
pub(crate) fn elements(shape: &[u64]) -> Option<u64> {
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(1_u64, |product, size| product.checked_mul(*size))
}

fn format_named(dtype: &str) -> NumberFormat {
    match dtype {
        "F64" => NumberFormat::F64,
        "F32" => NumberFormat::F32,
        "BF16" => NumberFormat::BF16,
        "F16" => NumberFormat::F16,
        "I64" | "U64" => NumberFormat::I64,
        "I32" | "U32" => NumberFormat::I32,
        "I16" | "U16" => NumberFormat::I16,
        "I8" | "U8" => NumberFormat::I8,
        "C64" => NumberFormat::C64,
        "BOOL" => NumberFormat::Bool,
        "F4" => NumberFormat::F4,
        other if other.starts_with("F8_") => NumberFormat::F8,
        other if other.starts_with("F6_") => NumberFormat::F6,
        _ => NumberFormat::Other,
    }
}

/// One file.
pub(crate) fn read_file(path: &Path, bytes: &[u8]) -> Result<Model, ModelError> {
    let tensors = read(bytes).map_err(|problem| ModelError::broken(path, problem))?;
    Ok(Model {
        kind: FileKind::Safetensors,
        files: vec![path.to_owned()],
        on_disk: bytes.len() as u64,
        tensors,
        activations: None,
    })
}

#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

/// All files that an index names.
pub(crate) fn read_index(path: &Path) -> Result<Model, ModelError> {
    let mut text = Vec::new();
    let file = File::open(path).map_err(|source| ModelError::read(path, source))?;
    file.take(LONGEST_INDEX + 1).read_to_end(&mut text).map_err(|source| ModelError::read(path, source))?;
    if text.len() as u64 > LONGEST_INDEX {
        return Err(ModelError::broken(path, format!("it is longer than {LONGEST_INDEX} bytes")));
    }
    let index: Index = serde_json::from_slice(&text)
        .map_err(|error| ModelError::broken(path, format!("it is no index of a model: {error}")))?;
    let names: BTreeSet<String> = index.weight_map.into_values().collect();
    if names.is_empty() {
        return Err(ModelError::broken(path, "it names no files"));
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut files: Vec<PathBuf> = Vec::with_capacity(names.len());
    for name in &names {
        if name.contains(['/', '\\']) || name == ".." || name.is_empty() {
            return Err(ModelError::broken(path, format!("it names `{name}`, which is not beside it")));
        }
        let file = folder.join(name);
        if !file.is_file() {
            let problem = format!("it names {} files, and {name} is not there", names.len());
            return Err(ModelError::broken(path, problem));
        }
        files.push(file);
    }
    read_files(&files)
}

/// Several files that are one model.
pub(crate) fn read_files(files: &[PathBuf]) -> Result<Model, ModelError> {
    let mut model = Model {
        kind: FileKind::Safetensors,
        files: Vec::with_capacity(files.len()),
        on_disk: 0,
        tensors: Tally::default(),
        activations: None,
    };
    for file in files {
        let part = read_file(file, &cudock_map::map(file)?)?;
        model.files.extend(part.files);
        model.on_disk = model.on_disk.saturating_add(part.on_disk);
        model.tensors.merge(part.tensors);
    }
    Ok(model)
}
