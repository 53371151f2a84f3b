//! Model metadata of the Open Inference Protocol.

use cudock_tensor::{DType, TensorSpec};
use serde::Deserialize;

use crate::{HttpClient, LoadError, LoadRequest, ServerUrl};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelMetadata {
    pub name: String,
    pub inputs: Vec<TensorSpec>,
    pub outputs: Vec<TensorSpec>,
}

impl ModelMetadata {
    /// The common element type of its outputs, if there is one.
    pub fn output_elements(&self) -> Option<DType> {
        let (first, rest) = self.outputs.split_first()?;
        rest.iter().all(|spec| spec.dtype == first.dtype).then_some(first.dtype)
    }
}

#[derive(Deserialize)]
struct MetadataResponse {
    name: String,
    #[serde(default)]
    inputs: Vec<TensorMetadata>,
    #[serde(default)]
    outputs: Vec<TensorMetadata>,
}

#[derive(Deserialize)]
struct TensorMetadata {
    name: String,
    datatype: String,
    shape: Vec<i64>,
}

impl TryFrom<TensorMetadata> for TensorSpec {
    type Error = LoadError;

    fn try_from(tensor: TensorMetadata) -> Result<Self, LoadError> {
        let dtype = DType::from_protocol_name(&tensor.datatype).ok_or_else(|| {
            LoadError::Metadata(format!("`{}` has the unknown type {}", tensor.name, tensor.datatype))
        })?;
        let shape: Vec<_> = tensor.shape.into_iter().map(|size| usize::try_from(size).ok()).collect();
        Ok(Self::new(tensor.name, dtype, shape))
    }
}

/// Requests the metadata of a model; `None` if the server does not know it, or does not support the protocol.
pub fn model_metadata(
    client: &mut HttpClient,
    target: &ServerUrl,
    headers: &[(String, String)],
    model: &str,
) -> Result<Option<ModelMetadata>, LoadError> {
    let response = client.send(&LoadRequest::get(target, &format!("/v2/models/{model}"), headers))?;
    if !response.is_success() {
        return Ok(None);
    }
    read(&response.body).map(Some)
}

fn read(body: &[u8]) -> Result<ModelMetadata, LoadError> {
    let described: MetadataResponse =
        serde_json::from_slice(body).map_err(|error| LoadError::Metadata(error.to_string()))?;
    let specs = |tensors: Vec<TensorMetadata>| {
        tensors.into_iter().map(TensorSpec::try_from).collect::<Result<_, _>>()
    };
    Ok(ModelMetadata {
        name: described.name,
        inputs: specs(described.inputs)?,
        outputs: specs(described.outputs)?,
    })
}

/// The models of the server's repository index; empty if it has none.
pub fn model_names(
    client: &mut HttpClient,
    target: &ServerUrl,
    headers: &[(String, String)],
) -> Result<Vec<String>, LoadError> {
    #[derive(Deserialize)]
    struct IndexEntry {
        name: String,
    }
    let mut headers = headers.to_vec();
    headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
    let response = client.send(&LoadRequest::post(target, "/v2/repository/index", &headers, b"{}", 0))?;
    if !response.is_success() {
        return Ok(Vec::new());
    }
    let entries: Vec<IndexEntry> = serde_json::from_slice(&response.body).unwrap_or_default();
    let mut names: Vec<String> = entries.into_iter().map(|entry| entry.name).collect();
    names.dedup();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_parsed() {
        let text = br#"{"name":"m","versions":["1"],"platform":"onnx",
            "inputs":[{"name":"x","datatype":"FP32","shape":[-1,512]}],
            "outputs":[{"name":"y","datatype":"INT64","shape":[-1]}]}"#;
        let metadata = read(text).unwrap();
        assert_eq!(metadata.name, "m");
        assert_eq!(metadata.inputs, [TensorSpec::new("x", DType::F32, [None, Some(512)])]);
        assert_eq!(metadata.output_elements(), Some(DType::I64));
    }

    #[test]
    fn invalid_metadata_is_an_error() {
        let fault = |text: &str| read(text.as_bytes()).unwrap_err().to_string();
        let unknown = r#"{"name":"m","inputs":[{"name":"x","datatype":"COMPLEX","shape":[]}]}"#;
        assert!(fault(unknown).ends_with("`x` has the unknown type COMPLEX"), "{}", fault(unknown));
        assert!(fault("<html>").contains("line 1"));
    }
}
