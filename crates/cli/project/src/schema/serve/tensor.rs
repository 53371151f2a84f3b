//! `[[serve.inputs]]` and `[[serve.outputs]]`: tensors of models that do not describe themselves.

use schemars::JsonSchema;
use serde::Deserialize;

/// An input or output of a Python model.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TensorDeclaration {
    pub name: String,
    pub dtype: ElementType,
    /// Sizes of its dimensions, with -1 for any size. The first dimension is that of the batch.
    #[schemars(extend("items" = {"type": "integer", "minimum": -1}))]
    pub shape: Vec<i64>,
}

/// Element type, as numpy names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ElementType {
    Bool,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    Int8,
    Int16,
    Int32,
    Int64,
    Float16,
    Bfloat16,
    Float32,
    Float64,
    String,
}
