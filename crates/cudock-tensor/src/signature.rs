//! What a model takes and gives.

use crate::DType;

/// One input or output of a model.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct TensorSpec {
    /// Its name in the model.
    pub name: String,
    /// The type of its elements.
    pub dtype: DType,
    /// Its dimensions; none where the model takes any size.
    pub shape: Vec<Option<usize>>,
    /// Whether the model gives no shape at all: any rank is taken, and `shape` is empty.
    #[serde(default)]
    pub any_rank: bool,
}

impl TensorSpec {
    /// The shape as the Open Inference Protocol writes it, with -1 for any size.
    pub fn protocol_shape(&self) -> Vec<i64> {
        if self.any_rank {
            return vec![-1];
        }
        self.shape
            .iter()
            .map(|dimension| dimension.map_or(-1, |size| i64::try_from(size).unwrap_or(i64::MAX)))
            .collect()
    }
}

/// What a model takes and gives.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Signature {
    /// Its inputs, in the model's order.
    pub inputs: Vec<TensorSpec>,
    /// Its outputs, in the model's order.
    pub outputs: Vec<TensorSpec>,
    /// Whether the first dimension of every input and output counts independent rows, so that requests may be
    /// joined and answers split. Requests to other models run alone.
    pub batched: bool,
}

impl Signature {
    /// The place of an input with that name.
    pub fn input(&self, name: &str) -> Option<usize> {
        self.inputs.iter().position(|spec| spec.name == name)
    }

    /// The place of an output with that name.
    pub fn output(&self, name: &str) -> Option<usize> {
        self.outputs.iter().position(|spec| spec.name == name)
    }
}
