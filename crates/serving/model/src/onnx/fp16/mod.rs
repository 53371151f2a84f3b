//! Conversion of a model from fp32 to fp16.
//!
//! Weights take half the memory, and GPUs multiply them several times as fast. Inputs and outputs keep their types, so
//! that clients see no difference but rounding. Operators that need fp32, subgraphs (`If`, `Loop`, `Scan`) and functions
//! of the model stay as they are, with a `Cast` where a value passes from one precision to the other.
//!
//! Everything that does not change is copied byte for byte. The result has no external data of the original.

mod graph;
mod operators;
mod plan;
mod stats;
mod weights;
mod write;

use std::path::Path;

use cudock_base::protobuf::Fields;

pub use self::stats::Fp16Stats;
pub use self::weights::Weights;

use self::graph::{Graph, ModelContext};
use self::weights::WeightStore;
use self::write::GraphWriter;
use super::wire::WriteFields;

/// The oldest ONNX operator set that is converted; that of ONNX Runtime.
const MIN_VERSION: u64 = 7;
/// The first format in which an initializer need not be an input.
const MIN_IR_VERSION: u64 = 4;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fp16Model {
    pub bytes: Vec<u8>,
    pub stats: Fp16Stats,
}

/// Converts a model to fp16; the error describes why it cannot be converted. `directory` is that of the model, for its
/// external data.
pub fn to_fp16<'a>(
    model: &[u8],
    directory: Option<&'a Path>,
    weights: Weights<'a>,
) -> Result<Fp16Model, String> {
    let mut context = ModelContext::default();
    let mut graph_message = None;
    for field in Fields::new(model) {
        match field? {
            (7, graph) if graph_message.is_none() => graph_message = Some(graph.bytes()?),
            (7, _) => return Err("the model has several graphs".to_owned()),
            (8, operators) => context.add_operator_set(operators.bytes()?)?,
            (25, function) => context.add_function(function.bytes()?)?,
            _ => {}
        }
    }
    let graph_message = graph_message.ok_or("not an ONNX model: it has no graph")?;
    if context.version < MIN_VERSION {
        let version = context.version;
        return Err(format!("the model uses operator set {version}, and {MIN_VERSION} or newer is needed"));
    }
    let mut graph = Graph::read(graph_message, &context)?;
    plan::plan(&mut graph);
    let mut writer = GraphWriter::new(&graph, WeightStore::new(directory, weights))?;
    if writer.stats.half_nodes == 0 {
        let functions = if context.functions.is_empty() { "" } else { ", except perhaps in its functions" };
        return Err(format!("no operator of the model can compute in fp16{functions}"));
    }
    let mut bytes = Vec::new();
    for field in Fields::new(model).with_encoding() {
        let field = field?;
        match field.number {
            1 => bytes.put_number(1, field.value.number()?.max(MIN_IR_VERSION)),
            7 => bytes.put_large_message(7, |out| writer.write(out, graph_message))?,
            _ => bytes.extend_from_slice(field.encoded),
        }
    }
    Ok(Fp16Model { bytes, stats: writer.stats })
}
