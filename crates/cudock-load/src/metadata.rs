//! What a server says of its models, in the words of the Open Inference Protocol.

use cudock_tensor::{DType, TensorSpec};
use serde::Deserialize;

use crate::{Dialogue, LoadError, Request, Target};

/// What a model takes and gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelMetadata {
    /// Its name.
    pub name: String,
    /// Its inputs.
    pub inputs: Vec<TensorSpec>,
    /// Its outputs.
    pub outputs: Vec<TensorSpec>,
}

impl ModelMetadata {
    /// The type of the elements of its outputs, if they all have the same.
    pub fn output_elements(&self) -> Option<DType> {
        let (first, rest) = self.outputs.split_first()?;
        rest.iter().all(|spec| spec.dtype == first.dtype).then_some(first.dtype)
    }
}

#[derive(Deserialize)]
struct Described {
    name: String,
    #[serde(default)]
    inputs: Vec<DescribedTensor>,
    #[serde(default)]
    outputs: Vec<DescribedTensor>,
}

#[derive(Deserialize)]
struct DescribedTensor {
    name: String,
    datatype: String,
    shape: Vec<i64>,
}

impl TryFrom<DescribedTensor> for TensorSpec {
    type Error = LoadError;

    fn try_from(tensor: DescribedTensor) -> Result<Self, LoadError> {
        let dtype = DType::from_protocol_name(&tensor.datatype).ok_or_else(|| {
            LoadError::Metadata(format!("`{}` has the unknown type {}", tensor.name, tensor.datatype))
        })?;
        let shape = tensor.shape.into_iter().map(|size| usize::try_from(size).ok()).collect();
        Ok(Self { name: tensor.name, dtype, shape, any_rank: false })
    }
}

/// What the server says of a model; nothing if it knows no such model, or does not speak the protocol.
pub fn model_metadata(
    dialogue: &mut Dialogue,
    target: &Target,
    headers: &[(String, String)],
    model: &str,
) -> Result<Option<ModelMetadata>, LoadError> {
    let response = dialogue.ask(&Request::get(target, &format!("/v2/models/{model}"), headers))?;
    if !response.is_success() {
        return Ok(None);
    }
    read(&response.body).map(Some)
}

fn read(body: &[u8]) -> Result<ModelMetadata, LoadError> {
    let described: Described =
        serde_json::from_slice(body).map_err(|error| LoadError::Metadata(error.to_string()))?;
    let specs = |tensors: Vec<DescribedTensor>| {
        tensors.into_iter().map(TensorSpec::try_from).collect::<Result<_, _>>()
    };
    Ok(ModelMetadata {
        name: described.name,
        inputs: specs(described.inputs)?,
        outputs: specs(described.outputs)?,
    })
}

/// The models the server has, by its repository index; none if it does not say.
pub fn model_names(
    dialogue: &mut Dialogue,
    target: &Target,
    headers: &[(String, String)],
) -> Result<Vec<String>, LoadError> {
    #[derive(Deserialize)]
    struct Entry {
        name: String,
    }
    let mut headers = headers.to_vec();
    headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
    let response = dialogue.ask(&Request::post(target, "/v2/repository/index", &headers, b"{}", 0))?;
    if !response.is_success() {
        return Ok(Vec::new());
    }
    let entries: Vec<Entry> = serde_json::from_slice(&response.body).unwrap_or_default();
    let mut names: Vec<String> = entries.into_iter().map(|entry| entry.name).collect();
    names.dedup();
    Ok(names)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

    use super::*;

    #[test]
    fn a_description_becomes_a_signature() {
        let text = br#"{"name":"m","versions":["1"],"platform":"onnx",
            "inputs":[{"name":"x","datatype":"FP32","shape":[-1,512]}],
            "outputs":[{"name":"y","datatype":"INT64","shape":[-1]}]}"#;
        let metadata = read(text).unwrap();
        assert_eq!(metadata.name, "m");
        let x = TensorSpec {
            name: "x".to_owned(),
            dtype: DType::F32,
            shape: vec![None, Some(512)],
            any_rank: false,
        };
        assert_eq!(metadata.inputs, [x]);
        assert_eq!(metadata.output_elements(), Some(DType::I64));
    }

    #[test]
    fn descriptions_that_cannot_be_read_are_told() {
        let fault = |text: &str| read(text.as_bytes()).unwrap_err().to_string();
        let unknown = r#"{"name":"m","inputs":[{"name":"x","datatype":"COMPLEX","shape":[]}]}"#;
        assert!(fault(unknown).ends_with("`x` has the unknown type COMPLEX"), "{}", fault(unknown));
        assert!(fault("<html>").contains("line 1"));
    }
}
