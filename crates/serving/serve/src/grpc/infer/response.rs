//! `ModelInferResponse`. Tensors are not copied: the head is written, and their bytes are appended.

use bytes::{BufMut, Bytes, BytesMut};
use cudock_tensor::{InferenceResponse, RequestedOutput, Signature, Tensor, TensorSpec};
use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint};

use crate::grpc::messages::{InferParameter, InferResponseHead, OutputTensor, ParameterEntry};
use crate::grpc::status::GrpcStatus;

const RAW_OUTPUT_CONTENTS: u32 = 6;
/// Fields of `ModelStreamInferResponse`.
const ERROR_MESSAGE: u32 = 1;
const INFER_RESPONSE: u32 = 2;
/// Largest block header: field tag and length.
const BLOCK_HEAD: usize = 11;

pub(crate) struct InferResponse<'response> {
    pub(crate) model: &'response str,
    pub(crate) version: &'response str,
    pub(crate) id: &'response str,
    pub(crate) signature: &'response Signature,
    /// The requested outputs; all if empty.
    pub(crate) wanted: &'response [RequestedOutput],
    pub(crate) response: &'response InferenceResponse,
}

impl InferResponse<'_> {
    /// The parts of a `ModelInferResponse`.
    pub(crate) fn message(&self) -> Result<Vec<Bytes>, GrpcStatus> {
        self.parts(Vec::new())
    }

    /// The parts of a `ModelStreamInferResponse`.
    pub(crate) fn stream_message(&self) -> Result<Vec<Bytes>, GrpcStatus> {
        // Every request has a single response, so each one is final.
        let last = ParameterEntry {
            key: "triton_final_response".to_owned(),
            value: Some(InferParameter { bool_param: Some(true) }),
        };
        let mut parts = self.parts(vec![last])?;
        let mut envelope = BytesMut::with_capacity(BLOCK_HEAD);
        put_block_head(INFER_RESPONSE, parts.iter().map(Bytes::len).sum(), &mut envelope);
        parts.insert(0, envelope.freeze());
        Ok(parts)
    }

    fn parts(&self, parameters: Vec<ParameterEntry>) -> Result<Vec<Bytes>, GrpcStatus> {
        let chosen = self.chosen()?;
        let head = InferResponseHead {
            model_name: self.model.to_owned(),
            model_version: self.version.to_owned(),
            id: self.id.to_owned(),
            parameters,
            outputs: chosen.iter().map(|(spec, tensor)| describe(spec, tensor)).collect(),
        };
        let mut written = BytesMut::with_capacity(head.encoded_len() + BLOCK_HEAD * chosen.len());
        head.encode(&mut written)
            .map_err(|error| GrpcStatus::internal(format!("cannot encode the response: {error}")))?;
        let mut parts = Vec::with_capacity(2 * chosen.len() + 2);
        for (_, tensor) in chosen {
            put_block_head(RAW_OUTPUT_CONTENTS, tensor.data().len(), &mut written);
            parts.push(written.split().freeze());
            parts.push(tensor.data().clone());
        }
        Ok(parts)
    }

    fn chosen(&self) -> Result<Vec<(&TensorSpec, &Tensor)>, GrpcStatus> {
        let (specs, tensors) = (&self.signature.outputs, &self.response.outputs);
        if specs.len() != tensors.len() {
            let message = "the engine returned another number of outputs than the model has";
            return Err(GrpcStatus::internal(message));
        }
        let all = specs.iter().zip(tensors);
        if self.wanted.is_empty() {
            return Ok(all.collect());
        }
        Ok(self.wanted.iter().filter_map(|wanted| all.clone().nth(wanted.index)).collect())
    }
}

fn describe(spec: &TensorSpec, tensor: &Tensor) -> OutputTensor {
    OutputTensor {
        name: spec.name.clone(),
        datatype: tensor.dtype().protocol_name().to_owned(),
        shape: tensor.shape().iter().map(|&size| i64::try_from(size).unwrap_or(i64::MAX)).collect(),
    }
}

/// A `ModelStreamInferResponse` for a failed request; the stream continues. The id identifies the request.
pub(crate) fn error_in_stream(model: &str, version: &str, id: &str, error: &str) -> Bytes {
    let info = InferResponseHead {
        model_name: model.to_owned(),
        model_version: version.to_owned(),
        id: id.to_owned(),
        ..InferResponseHead::default()
    };
    // An empty message would mean success.
    let error = if error.is_empty() { "the request failed" } else { error };
    let mut message = BytesMut::with_capacity(2 * BLOCK_HEAD + error.len() + info.encoded_len());
    put_block_head(ERROR_MESSAGE, error.len(), &mut message);
    message.put_slice(error.as_bytes());
    put_block_head(INFER_RESPONSE, info.encoded_len(), &mut message);
    message.put_slice(&info.encode_to_vec());
    message.freeze()
}

/// Writes the tag and length of a length-delimited field.
fn put_block_head(number: u32, length: usize, out: &mut impl BufMut) {
    encode_key(number, WireType::LengthDelimited, out);
    encode_varint(length as u64, out);
}

#[cfg(test)]
mod tests {
    use cudock_base::protobuf::{Fields, WireValue};

    use super::*;

    #[test]
    fn block_headers_round_trip() {
        for length in [0, 1, 127, 128, 300, 70_000] {
            let mut message = Vec::new();
            put_block_head(6, length, &mut message);
            message.resize(message.len() + length, 7);
            let fields: Vec<_> = Fields::new(&message)
                .map(|field| field.map(|(number, value)| (number, value.wire)).unwrap())
                .collect();
            assert_eq!(fields, [(6, WireValue::Bytes(&vec![7; length]))]);
        }
    }
}
