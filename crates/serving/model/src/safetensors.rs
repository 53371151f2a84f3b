//! The safetensors format: eight bytes with the length of the header, the header as JSON, the data.

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
use crate::tensor_stats::TensorStats;
use crate::{Model, ModelFormat};

/// The longest header, as in the reference implementation.
const MAX_HEADER: u64 = 100_000_000;

/// The longest index of a sharded model.
const MAX_INDEX: u64 = 100_000_000;

pub(crate) fn is_safetensors(bytes: &[u8]) -> bool {
    header_of(bytes).is_ok_and(|(header, _)| header.first() == Some(&b'{'))
}

/// The header, and the size of the data after it.
fn header_of(bytes: &[u8]) -> Result<(&[u8], u64), String> {
    let (length, rest) = bytes.split_first_chunk::<8>().ok_or("file is too short for a header")?;
    let length = u64::from_le_bytes(*length);
    if length > MAX_HEADER {
        return Err(format!("header claims {length} bytes, the limit is {MAX_HEADER}"));
    }
    let cut = || format!("header claims {length} bytes, but the file is shorter");
    let length = usize::try_from(length).map_err(|_| cut())?;
    let (header, data) = rest.split_at_checked(length).ok_or_else(cut)?;
    Ok((header, data.len() as u64))
}

/// Collects statistics of the tensors; the error describes the problem.
pub fn read(bytes: &[u8]) -> Result<TensorStats, String> {
    let (header, data) = header_of(bytes)?;
    let mut stats = HeaderStats { tensors: TensorStats::default(), held: 0 };
    let mut reader = serde_json::Deserializer::from_slice(header);
    reader
        .deserialize_map(HeaderVisitor { stats: &mut stats, data })
        .and_then(|()| reader.end())
        .map_err(|error| format!("invalid header: {error}"))?;
    // Overlapping tensors would be counted twice.
    if stats.held > data {
        return Err(format!("tensors claim {} bytes, but the file has {data}", stats.held));
    }
    Ok(stats.tensors)
}

struct HeaderStats {
    tensors: TensorStats,
    held: u64,
}

struct HeaderVisitor<'c> {
    stats: &'c mut HeaderStats,
    data: u64,
}

#[derive(Deserialize)]
struct TensorEntry<'a> {
    #[serde(borrow)]
    dtype: Cow<'a, str>,
    shape: Vec<u64>,
    data_offsets: (u64, u64),
}

impl<'de> Visitor<'de> for HeaderVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of tensors")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<Cow<'de, str>>()? {
            if name == "__metadata__" {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let entry: TensorEntry<'de> = map.next_value()?;
            self.stats.count(&name, &entry, self.data).map_err(serde::de::Error::custom)?;
        }
        Ok(())
    }
}

impl HeaderStats {
    fn count(&mut self, name: &str, entry: &TensorEntry<'_>, data: u64) -> Result<(), String> {
        let invalid = |what: &str| format!("tensor `{}` {what}", name.chars().take(80).collect::<String>());
        let (from, to) = entry.data_offsets;
        if to > data {
            return Err(invalid("extends beyond the end of the file"));
        }
        let bytes = to.checked_sub(from).ok_or_else(|| invalid("ends before it starts"))?;
        let elements = elements(&entry.shape).ok_or_else(|| invalid("has too many elements"))?;
        let format = format_from_dtype(&entry.dtype);
        if format.bits().is_some() && format.bytes(elements) != Some(bytes) {
            return Err(invalid("has a size that does not match its shape"));
        }
        self.held = self.held.saturating_add(bytes);
        self.tensors.add(name, format, elements, bytes);
        Ok(())
    }
}

/// The product of all dimensions; 1 for a scalar.
pub(crate) fn elements(shape: &[u64]) -> Option<u64> {
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(1_u64, |product, size| product.checked_mul(*size))
}

fn format_from_dtype(dtype: &str) -> NumberFormat {
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

pub(crate) fn read_file(path: &Path, bytes: &[u8]) -> Result<Model, ModelError> {
    let tensors = read(bytes).map_err(|problem| ModelError::invalid(path, problem))?;
    Ok(Model {
        kind: ModelFormat::Safetensors,
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

pub(crate) fn read_index(path: &Path) -> Result<Model, ModelError> {
    let invalid = |problem: String| ModelError::invalid(path, problem);
    let mut text = Vec::new();
    let file = File::open(path).map_err(|source| ModelError::read(path, source))?;
    file.take(MAX_INDEX + 1).read_to_end(&mut text).map_err(|source| ModelError::read(path, source))?;
    if text.len() as u64 > MAX_INDEX {
        return Err(invalid(format!("index is longer than {MAX_INDEX} bytes")));
    }
    let index: Index =
        serde_json::from_slice(&text).map_err(|error| invalid(format!("not a model index: {error}")))?;
    let names: BTreeSet<String> = index.weight_map.into_values().collect();
    if names.is_empty() {
        return Err(invalid("index lists no files".to_owned()));
    }
    let directory = path.parent().unwrap_or(Path::new(""));
    let mut files: Vec<PathBuf> = Vec::with_capacity(names.len());
    for name in &names {
        if name.contains(['/', '\\']) || name == ".." || name.is_empty() {
            return Err(invalid(format!("index lists `{name}`, which is outside its directory")));
        }
        let file = directory.join(name);
        if !file.is_file() {
            return Err(invalid(format!("{name} not found, one of {} files in the index", names.len())));
        }
        files.push(file);
    }
    read_files(&files)
}

pub(crate) fn read_files(files: &[PathBuf]) -> Result<Model, ModelError> {
    let mut model = Model {
        kind: ModelFormat::Safetensors,
        files: Vec::with_capacity(files.len()),
        on_disk: 0,
        tensors: TensorStats::default(),
        activations: None,
    };
    for file in files {
        model = model.combine(read_file(file, &cudock_mmap::map(file)?)?);
    }
    Ok(model)
}
