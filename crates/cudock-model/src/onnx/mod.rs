//! ONNX: a protobuf message whose tensors are walked over, not read.
//!
//! The file is mapped, so that weights of gigabytes cost nothing: a tensor's numbers are one field, and a field is
//! stepped over by its length.

mod live;
mod tensor;
mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

pub use live::{Activations, Live};

use self::live::Parts;
use self::wire::Fields;
use crate::error::ModelError;
use crate::tally::Tally;
use crate::{FileKind, Model};

/// Graphs within graphs: conditions and loops have bodies. Deeper ones are no model.
const DEEPEST: u32 = 32;

/// What a file says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Graph {
    /// Its tensors: weights, and constants of nodes.
    pub tensors: Tally,
    /// What lies between input and output.
    pub activations: Activations,
    /// Files beside it that hold weights, and the place behind the last byte that is used of each.
    pub external: BTreeMap<String, u64>,
    /// Inputs and outputs without a shape: not scalars, but tensors of any rank.
    pub unranked: BTreeSet<String>,
}

/// Whether bytes are fields of a model, one of them its graph.
pub(crate) fn looks_like_one(bytes: &[u8]) -> bool {
    let mut has_graph = false;
    for field in Fields::of(bytes) {
        match field {
            Ok((number, value)) => has_graph |= number == 7 && value.bytes().is_ok(),
            Err(_) => return false,
        }
    }
    has_graph
}

/// Walks over a file; the error says what is wrong with it.
pub fn read(bytes: &[u8]) -> Result<Graph, String> {
    let mut walk = Walk::default();
    let mut has_graph = false;
    for field in Fields::of(bytes) {
        match field? {
            (7, graph) => {
                has_graph = true;
                walk.graph(graph.bytes()?, 0)?;
            }
            // Functions of the model's own have nodes, and nodes have constants.
            (25, function) => {
                for field in Fields::of(function.bytes()?) {
                    if let (7, node) = field? {
                        walk.node(node.bytes()?, 1)?;
                    }
                }
            }
            _ => {}
        }
    }
    if !has_graph {
        return Err("it has no graph, so it is no ONNX model".to_owned());
    }
    let activations = live::activations(&walk.parts)?;
    let mut unranked = BTreeSet::new();
    for value in walk.parts.inputs.iter().chain(&walk.parts.outputs) {
        unranked.extend(live::unranked(value)?.map(|name| String::from_utf8_lossy(name).into_owned()));
    }
    Ok(Graph { tensors: walk.tensors, activations, external: walk.external, unranked })
}

/// What a model file says; `None` if it is not a readable ONNX file.
pub fn open(path: &Path) -> Option<Graph> {
    read(&cudock_map::map(path).ok()?).ok()
}

/// Files beside a model file that hold its weights.
pub fn external_files(path: &Path) -> Vec<PathBuf> {
    let directory = path.parent().unwrap_or(Path::new(""));
    let files = open(path).map(|graph| graph.external).unwrap_or_default();
    files.into_keys().map(|location| directory.join(location)).collect()
}

#[derive(Default)]
struct Walk<'a> {
    tensors: Tally,
    external: BTreeMap<String, u64>,
    /// Of the outermost graph.
    parts: Parts<'a>,
}

impl<'a> Walk<'a> {
    fn graph(&mut self, message: &'a [u8], depth: u32) -> Result<(), String> {
        if depth > DEEPEST {
            return Err(format!("its graphs lie more than {DEEPEST} deep in each other"));
        }
        for field in Fields::of(message) {
            let (number, value) = field?;
            match number {
                1 => {
                    let node = value.bytes()?;
                    self.node(node, depth)?;
                    self.note(depth, |parts| parts.nodes.push(node))?;
                }
                5 => {
                    let name = self.tensor(value.bytes()?)?;
                    self.note(depth, |parts| {
                        parts.weights.insert(name);
                    })?;
                }
                11 => {
                    let input = value.bytes()?;
                    self.note(depth, |parts| parts.inputs.push(input))?;
                }
                12 => {
                    let output = value.bytes()?;
                    self.note(depth, |parts| parts.outputs.push(output))?;
                }
                13 => {
                    let described = value.bytes()?;
                    self.note(depth, |parts| parts.values.push(described))?;
                }
                15 => self.sparse(value.bytes()?)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn note(&mut self, depth: u32, add: impl FnOnce(&mut Parts<'a>)) -> Result<(), String> {
        if depth > 0 {
            return Ok(());
        }
        add(&mut self.parts);
        if self.parts.is_too_large() {
            return Err("it has more nodes or values than any model".to_owned());
        }
        Ok(())
    }

    fn node(&mut self, message: &'a [u8], depth: u32) -> Result<(), String> {
        for field in Fields::of(message) {
            if let (5, attribute) = field? {
                self.attribute(attribute.bytes()?, depth)?;
            }
        }
        Ok(())
    }

    fn attribute(&mut self, message: &'a [u8], depth: u32) -> Result<(), String> {
        for field in Fields::of(message) {
            match field? {
                (5 | 10, tensor) => {
                    self.tensor(tensor.bytes()?)?;
                }
                (6 | 11, graph) => self.graph(graph.bytes()?, depth + 1)?,
                (22 | 23, sparse) => self.sparse(sparse.bytes()?)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Values and places of a tensor that is mostly zero.
    fn sparse(&mut self, message: &'a [u8]) -> Result<(), String> {
        for field in Fields::of(message) {
            if let (1 | 2, tensor) = field? {
                self.tensor(tensor.bytes()?)?;
            }
        }
        Ok(())
    }

    fn tensor(&mut self, message: &'a [u8]) -> Result<&'a [u8], String> {
        let found = tensor::read(message)?;
        if let Some(external) = &found.external {
            let location = std::str::from_utf8(external.location).map_err(|_| {
                format!("tensor `{}` names a file in no known letters", tensor::short(found.name))
            })?;
            let end = self.external.entry(location.to_owned()).or_default();
            *end = (*end).max(external.end);
        }
        let name = String::from_utf8_lossy(found.name);
        self.tensors.add(&name, found.format, found.elements, found.bytes);
        Ok(found.name)
    }
}

/// One file, and those beside it that hold its weights.
pub(crate) fn read_file(path: &Path, bytes: &[u8]) -> Result<Model, ModelError> {
    let graph = read(bytes).map_err(|problem| ModelError::broken(path, problem))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut files = vec![path.to_owned()];
    let mut on_disk = bytes.len() as u64;
    for (location, end) in &graph.external {
        let relative = Path::new(location);
        let inside =
            relative.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if !inside || location.is_empty() {
            let problem = format!("its weights are in `{location}`, which is not beside it");
            return Err(ModelError::broken(path, problem));
        }
        let file = folder.join(relative);
        let length = match file.metadata() {
            Ok(about) if about.is_file() => about.len(),
            _ => {
                let problem = format!("its weights are in {location}, which is not there");
                return Err(ModelError::broken(path, problem));
            }
        };
        if length < *end {
            let problem = format!("{location} has {length} bytes and its weights reach to {end}");
            return Err(ModelError::broken(path, problem));
        }
        on_disk = on_disk.saturating_add(length);
        files.push(file);
    }
    Ok(Model {
        kind: FileKind::Onnx,
        files,
        on_disk,
        tensors: graph.tensors,
        activations: Some(graph.activations),
    })
}
