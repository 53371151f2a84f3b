//! The ONNX format: a protobuf message whose tensors are skipped, not read.
//!
//! The file is memory-mapped, so that gigabytes of weights cost nothing: the data of a tensor is one field, which is skipped
//! by its length.

pub mod fp16;
mod liveness;
mod reduction;
mod tensor;
mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use cudock_base::protobuf::Fields;
pub use liveness::Activations;

use self::liveness::GraphParts;
use crate::error::ModelError;
use crate::tensor_stats::TensorStats;
use crate::{Model, ModelFormat};

/// The limit of nested graphs, which are the bodies of conditions and loops.
const MAX_DEPTH: u32 = 32;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OnnxGraph {
    /// Statistics of its tensors: weights, and constants of nodes.
    pub tensors: TensorStats,
    pub activations: Activations,
    /// Files with external weights, and the end offset of the data used in each.
    pub external: BTreeMap<String, u64>,
    /// Inputs and outputs without a shape: not scalars, but tensors of any rank.
    pub unranked: BTreeSet<String>,
    /// The operators of all nodes, those of subgraphs and functions included: `Conv`, `com.microsoft.Attention`. A reduction
    /// is there again as `ReduceMean(inner)` if it may be over other axes than the first or the last ones.
    pub operators: BTreeSet<String>,
}

/// Whether the bytes are the fields of a model with a graph.
pub(crate) fn is_onnx(bytes: &[u8]) -> bool {
    let mut has_graph = false;
    for field in Fields::new(bytes) {
        match field {
            Ok((number, value)) => has_graph |= number == 7 && value.bytes().is_ok(),
            Err(_) => return false,
        }
    }
    has_graph
}

/// Reads a model; the error describes the problem.
pub fn read(bytes: &[u8]) -> Result<OnnxGraph, String> {
    let mut walk = GraphWalker::default();
    let mut has_graph = false;
    for field in Fields::new(bytes) {
        match field? {
            (7, graph) => {
                has_graph = true;
                walk.graph(graph.bytes()?, 0)?;
            }
            // Model-local functions have nodes, and nodes have constants.
            (25, function) => {
                for field in Fields::new(function.bytes()?) {
                    if let (7, node) = field? {
                        walk.node(node.bytes()?, 1)?;
                    }
                }
            }
            _ => {}
        }
    }
    if !has_graph {
        return Err("not an ONNX model: it has no graph".to_owned());
    }
    let activations = liveness::activations(&walk.parts)?;
    let mut unranked = BTreeSet::new();
    for value in walk.parts.inputs.iter().chain(&walk.parts.outputs) {
        unranked.extend(liveness::unranked(value)?.map(|name| String::from_utf8_lossy(name).into_owned()));
    }
    let GraphWalker { tensors, external, operators, .. } = walk;
    Ok(OnnxGraph { tensors, activations, external, unranked, operators })
}

/// Reads a model file; `None` if it is not a readable ONNX file.
pub fn open(path: &Path) -> Option<OnnxGraph> {
    read(&cudock_mmap::map(path).ok()?).ok()
}

pub fn external_files(path: &Path) -> Vec<PathBuf> {
    let directory = path.parent().unwrap_or(Path::new(""));
    let files = open(path).map(|graph| graph.external).unwrap_or_default();
    files.into_keys().map(|location| directory.join(location)).collect()
}

#[derive(Default)]
struct GraphWalker<'a> {
    tensors: TensorStats,
    external: BTreeMap<String, u64>,
    operators: BTreeSet<String>,
    /// The parts of the outermost graph.
    parts: GraphParts<'a>,
}

impl<'a> GraphWalker<'a> {
    fn graph(&mut self, message: &'a [u8], depth: u32) -> Result<(), String> {
        if depth > MAX_DEPTH {
            return Err(format!("graphs are nested more than {MAX_DEPTH} levels deep"));
        }
        for field in Fields::new(message) {
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
                11..=13 => {
                    let value_info = value.bytes()?;
                    self.note(depth, |parts| match number {
                        11 => parts.inputs.push(value_info),
                        12 => parts.outputs.push(value_info),
                        _ => parts.values.push(value_info),
                    })?;
                }
                15 => self.sparse(value.bytes()?)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn note(&mut self, depth: u32, add: impl FnOnce(&mut GraphParts<'a>)) -> Result<(), String> {
        if depth > 0 {
            return Ok(());
        }
        add(&mut self.parts);
        if self.parts.is_too_large() {
            return Err("too many nodes or values".to_owned());
        }
        Ok(())
    }

    fn node(&mut self, message: &'a [u8], depth: u32) -> Result<(), String> {
        let (mut name, mut domain): (&[u8], &[u8]) = (&[], &[]);
        for field in Fields::new(message) {
            match field? {
                (4, operator) => name = operator.bytes()?,
                (5, attribute) => self.attribute(attribute.bytes()?, depth)?,
                (7, value) => domain = value.bytes()?,
                _ => {}
            }
        }
        let is_inner = matches!(domain, b"" | b"ai.onnx") && reduction::is_inner(name, message)?;
        let [name, domain] = [name, domain].map(String::from_utf8_lossy);
        // The standard operators have either of two names for their domain.
        let operator = match &*domain {
            "" | "ai.onnx" => name.into_owned(),
            domain => format!("{domain}.{name}"),
        };
        if is_inner {
            self.operators.insert(format!("{operator}(inner)"));
        }
        self.operators.insert(operator);
        Ok(())
    }

    fn attribute(&mut self, message: &'a [u8], depth: u32) -> Result<(), String> {
        for field in Fields::new(message) {
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

    /// The values and indices of a sparse tensor.
    fn sparse(&mut self, message: &'a [u8]) -> Result<(), String> {
        for field in Fields::new(message) {
            if let (1 | 2, tensor) = field? {
                self.tensor(tensor.bytes()?)?;
            }
        }
        Ok(())
    }

    fn tensor(&mut self, message: &'a [u8]) -> Result<&'a [u8], String> {
        let tensor = tensor::read(message)?;
        if let Some(external) = &tensor.external {
            let location = std::str::from_utf8(external.location).map_err(|_| {
                format!("tensor `{}` has a file name that is not UTF-8", tensor::shorten(tensor.name))
            })?;
            let end = self.external.entry(location.to_owned()).or_default();
            *end = (*end).max(external.end);
        }
        let name = String::from_utf8_lossy(tensor.name);
        self.tensors.add(&name, tensor.format, tensor.elements, tensor.bytes);
        Ok(tensor.name)
    }
}

/// Reads one file, and checks those with its external weights.
pub(crate) fn read_file(path: &Path, bytes: &[u8]) -> Result<Model, ModelError> {
    let invalid = |problem: String| ModelError::invalid(path, problem);
    let graph = read(bytes).map_err(invalid)?;
    let directory = path.parent().unwrap_or(Path::new(""));
    let mut files = vec![path.to_owned()];
    let mut on_disk = bytes.len() as u64;
    for (location, end) in &graph.external {
        let relative = Path::new(location);
        let inside =
            relative.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if !inside || location.is_empty() {
            let problem = format!("weights are in `{location}`, which is outside the model's directory");
            return Err(invalid(problem));
        }
        let file = directory.join(relative);
        let about = file.metadata().ok().filter(std::fs::Metadata::is_file);
        let about = about.ok_or_else(|| invalid(format!("file {location} with its weights not found")))?;
        let length = about.len();
        if length < *end {
            return Err(invalid(format!("{location} has {length} bytes, but weights end at {end}")));
        }
        on_disk = on_disk.saturating_add(length);
        files.push(file);
    }
    Ok(Model {
        kind: ModelFormat::Onnx,
        files,
        on_disk,
        tensors: graph.tensors,
        activations: Some(graph.activations),
    })
}
