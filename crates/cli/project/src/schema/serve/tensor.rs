//! `[[serve.inputs]]` and `[[serve.outputs]]`: tensors of models that do not describe themselves.

use std::str::FromStr;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::value::{Error, StrDeserializer};

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

/// The form of flags, and of annotations in Python: `x:float32[-1,3,224,224]`.
impl FromStr for TensorDeclaration {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let invalid = || "write it as NAME:TYPE[SIZES], such as x:float32[-1,3,224,224]".to_owned();
        let (name, tensor) = text.rsplit_once(':').ok_or_else(invalid)?;
        let (dtype, sizes) =
            tensor.strip_suffix(']').and_then(|rest| rest.split_once('[')).ok_or_else(invalid)?;
        if name.is_empty() {
            return Err(invalid());
        }
        let dtype = ElementType::deserialize(StrDeserializer::<Error>::new(dtype.trim()));
        let size = |size: &str| match size.trim().parse() {
            Ok(size) if size >= -1 => Ok(size),
            _ => Err(format!("`{}` is not a size: -1 for any, or 0 and more", size.trim())),
        };
        let sizes = if sizes.trim().is_empty() { Vec::new() } else { sizes.split(',').collect() };
        Ok(Self {
            name: name.trim().to_owned(),
            dtype: dtype.map_err(|error| error.to_string())?,
            shape: sizes.into_iter().map(size).collect::<Result<_, _>>()?,
        })
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tensor_is_declared_in_one_word() {
        let declared = |text: &str| text.parse::<TensorDeclaration>();
        let tensor = |name: &str, dtype, shape: &[i64]| {
            Ok(TensorDeclaration { name: name.to_owned(), dtype, shape: shape.to_vec() })
        };
        assert_eq!(
            declared("x:float32[-1,3,224,224]"),
            tensor("x", ElementType::Float32, &[-1, 3, 224, 224])
        );
        assert_eq!(declared("a:b:int64[-1, -1]"), tensor("a:b", ElementType::Int64, &[-1, -1]));
        assert_eq!(declared("scale:float64[]"), tensor("scale", ElementType::Float64, &[]));
        for text in ["", "x", "x:float32", "float32[1]", ":float32[1]", "x:float32[1", "x:float32]1["] {
            assert!(declared(text).unwrap_err().starts_with("write it as NAME:TYPE[SIZES]"), "{text}");
        }
        assert!(
            declared("x:double[1]").unwrap_err().starts_with("unknown variant `double`, expected one of")
        );
        for text in ["x:float32[-2]", "x:float32[1,]", "x:float32[a]", "x:float32[99999999999999999999]"] {
            assert!(declared(text).unwrap_err().contains("is not a size"), "{text}");
        }
    }
}
