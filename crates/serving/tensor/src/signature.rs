//! The signature of a model.

use crate::DType;

/// One input or output of a model.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct TensorSpec {
    pub name: String,
    pub dtype: DType,
    /// Its dimensions; `None` if dynamic.
    pub shape: Vec<Option<usize>>,
    /// Whether the model declares no shape at all: any rank is accepted, and `shape` is empty.
    #[serde(default)]
    pub any_rank: bool,
    /// Whether its strings are JSON texts, each a row: [`crate::predict`] has the values instead of strings.
    #[serde(default)]
    pub json: bool,
}

impl TensorSpec {
    /// A tensor of a declared shape.
    pub fn new(name: impl Into<String>, dtype: DType, shape: impl Into<Vec<Option<usize>>>) -> Self {
        Self { name: name.into(), dtype, shape: shape.into(), any_rank: false, json: false }
    }

    /// The shape in the Open Inference Protocol, with -1 for dynamic dimensions.
    pub fn protocol_shape(&self) -> Vec<i64> {
        if self.any_rank {
            return vec![-1];
        }
        let size = |size| i64::try_from(size).unwrap_or(i64::MAX);
        self.shape.iter().map(|dimension| dimension.map_or(-1, size)).collect()
    }
}

/// Inputs and outputs of a model.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Signature {
    /// Its inputs, in the model's order.
    pub inputs: Vec<TensorSpec>,
    /// Its outputs, in the model's order.
    pub outputs: Vec<TensorSpec>,
    /// Whether the first dimension of every input and output is that of independent rows, so that requests can be
    /// batched. Requests to other models run alone.
    pub batched: bool,
}

impl Signature {
    /// Whether the first dimension of every input counts rows, which may depend on each other.
    pub fn counts_rows(&self) -> bool {
        self.batched || self.inputs.iter().all(|spec| !spec.any_rank && spec.shape.first() == Some(&None))
    }

    pub fn input(&self, name: &str) -> Option<usize> {
        self.inputs.iter().position(|spec| spec.name == name)
    }

    pub fn output(&self, name: &str) -> Option<usize> {
        self.outputs.iter().position(|spec| spec.name == name)
    }
}
