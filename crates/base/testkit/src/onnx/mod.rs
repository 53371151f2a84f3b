//! Writes ONNX files, so that tests and benchmarks need no Python and no third-party files.
//!
//! ```
//! use cudock_testkit::onnx::OnnxModel;
//! use cudock_tensor::DType;
//!
//! let doubled = OnnxModel::new("doubled")
//!     .input("x", DType::F32, &[None, Some(3)])
//!     .node("Add", &["x", "x"], &["y"], &[])
//!     .output("y", DType::F32, &[None, Some(3)])
//!     .bytes();
//! assert!(doubled.len() > 50);
//! ```

mod models;
mod proto;

use cudock_tensor::DType;
use prost::Message;

pub use models::{conv, gather, identity, mlp, nonzero, spin, sums, tiny};

/// The format's version, of which the operator set below is part.
const IR_VERSION: i64 = 8;
const OPERATORS: i64 = 17;

/// A model or subgraph under construction. It is not validated: an engine does that when it loads the file.
#[derive(Clone, Debug)]
pub struct OnnxModel {
    graph: proto::Graph,
}

#[derive(Clone, Debug)]
pub enum Attribute<'name> {
    Int(&'name str, i64),
    Ints(&'name str, Vec<i64>),
    Float(&'name str, f32),
    /// The body of a loop or condition.
    Graph(&'name str, OnnxModel),
}

impl OnnxModel {
    pub fn new(name: &str) -> Self {
        Self { graph: proto::Graph { name: name.to_owned(), ..proto::Graph::default() } }
    }

    /// Adds an input. A dimension without a size is dynamic; the first such is called `rows`.
    #[must_use]
    pub fn input(mut self, name: &str, dtype: DType, shape: &[Option<usize>]) -> Self {
        self.graph.input.push(value_info(name, dtype, Some(shape)));
        self
    }

    /// Adds an input without a shape: it accepts tensors of any rank.
    #[must_use]
    pub fn unranked_input(mut self, name: &str, dtype: DType) -> Self {
        self.graph.input.push(value_info(name, dtype, None));
        self
    }

    #[must_use]
    pub fn output(mut self, name: &str, dtype: DType, shape: &[Option<usize>]) -> Self {
        self.graph.output.push(value_info(name, dtype, Some(shape)));
        self
    }

    /// Adds a constant: `data` is little endian.
    #[must_use]
    pub fn constant(mut self, name: &str, dtype: DType, shape: &[usize], data: Vec<u8>) -> Self {
        self.graph.initializer.push(proto::Tensor { raw_data: data, ..tensor(name, dtype, shape) });
        self
    }

    /// Adds a constant whose data is in an external file.
    #[must_use]
    pub fn external(mut self, name: &str, dtype: DType, shape: &[usize], file: &str) -> Self {
        let location = proto::StringEntry { key: "location".to_owned(), value: file.to_owned() };
        let (external_data, tensor) = (vec![location], tensor(name, dtype, shape));
        self.graph.initializer.push(proto::Tensor { external_data, data_location: 1, ..tensor });
        self
    }

    #[must_use]
    pub fn floats(self, name: &str, shape: &[usize], data: &[f32]) -> Self {
        self.constant(name, DType::F32, shape, data.iter().flat_map(|value| value.to_le_bytes()).collect())
    }

    #[must_use]
    pub fn integers(self, name: &str, shape: &[usize], data: &[i64]) -> Self {
        self.constant(name, DType::I64, shape, data.iter().flat_map(|value| value.to_le_bytes()).collect())
    }

    /// Adds a node: operator, names of inputs, names of outputs.
    #[must_use]
    pub fn node(
        mut self,
        operator: &str,
        takes: &[&str],
        gives: &[&str],
        attributes: &[Attribute<'_>],
    ) -> Self {
        self.graph.node.push(proto::Node {
            input: takes.iter().map(ToString::to_string).collect(),
            output: gives.iter().map(ToString::to_string).collect(),
            name: format!("{operator}_{}", self.graph.node.len()),
            op_type: operator.to_owned(),
            attribute: attributes.iter().map(attribute).collect(),
        });
        self
    }

    pub fn bytes(&self) -> Vec<u8> {
        proto::Model {
            ir_version: IR_VERSION,
            producer_name: "cudock".to_owned(),
            graph: Some(self.graph.clone()),
            opset_import: vec![proto::OperatorSet { domain: String::new(), version: OPERATORS }],
        }
        .encode_to_vec()
    }
}

fn attribute(attribute: &Attribute<'_>) -> proto::Attribute {
    use proto::Attribute as Proto;
    let empty = Proto::default();
    let (name, value) = match attribute {
        Attribute::Float(name, value) => (name, Proto { f: Some(*value), r#type: 1, ..empty }),
        Attribute::Int(name, value) => (name, Proto { i: Some(*value), r#type: 2, ..empty }),
        Attribute::Graph(name, body) => (name, Proto { g: Some(body.graph.clone()), r#type: 5, ..empty }),
        Attribute::Ints(name, values) => (name, Proto { ints: values.clone(), r#type: 7, ..empty }),
    };
    Proto { name: (*name).to_owned(), ..value }
}

fn tensor(name: &str, dtype: DType, shape: &[usize]) -> proto::Tensor {
    let dims = shape.iter().map(|&size| as_i64(size)).collect();
    proto::Tensor { dims, data_type: onnx_type(dtype), name: name.to_owned(), ..proto::Tensor::default() }
}

fn value_info(name: &str, dtype: DType, shape: Option<&[Option<usize>]>) -> proto::ValueInfo {
    let dimension = |(index, size): (usize, &Option<usize>)| match size {
        Some(size) => proto::Dimension { dim_value: Some(as_i64(*size)), dim_param: None },
        None if index == 0 => proto::Dimension { dim_value: None, dim_param: Some("rows".to_owned()) },
        None => proto::Dimension { dim_value: None, dim_param: Some(format!("{name}_{index}")) },
    };
    let shape = shape.map(|shape| proto::Shape { dim: shape.iter().enumerate().map(dimension).collect() });
    let tensor_type = Some(proto::TensorType { elem_type: onnx_type(dtype), shape });
    proto::ValueInfo { name: name.to_owned(), r#type: Some(proto::Type { tensor_type }) }
}

/// The ONNX number of an element type.
fn onnx_type(dtype: DType) -> i32 {
    match dtype {
        DType::F32 => 1,
        DType::U8 => 2,
        DType::I8 => 3,
        DType::U16 => 4,
        DType::I16 => 5,
        DType::I32 => 6,
        DType::I64 => 7,
        DType::String => 8,
        DType::Bool => 9,
        DType::F16 => 10,
        DType::F64 => 11,
        DType::U32 => 12,
        DType::U64 => 13,
        DType::BF16 => 16,
    }
}

fn as_i64(size: usize) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}
