//! `ModelInferResponse`. Tensors go into it as they are: the head is written, and their bytes are put beside it.

use bytes::{BufMut, Bytes, BytesMut};
use cudock_tensor::{Answer, Signature, Tensor, TensorSpec, WantedOutput};
use prost::Message;

use crate::grpc::messages::{InferParameter, InferResponseHead, OutputTensor, ParameterEntry};
use crate::grpc::status::{Code, Status};
use crate::grpc::wire::put_block_head;

const RAW_OUTPUT_CONTENTS: u32 = 6;
/// Fields of `ModelStreamInferResponse`.
const ERROR_MESSAGE: u32 = 1;
const INFER_RESPONSE: u32 = 2;
/// Most bytes before a block: its field and its length.
const BLOCK_HEAD: usize = 11;

/// An answer that is to be written.
pub(crate) struct InferResponse<'answer> {
    pub(crate) model: &'answer str,
    pub(crate) version: &'answer str,
    pub(crate) id: &'answer str,
    pub(crate) signature: &'answer Signature,
    /// Outputs that are wanted; all if empty.
    pub(crate) wanted: &'answer [WantedOutput],
    pub(crate) answer: &'answer Answer,
}

impl InferResponse<'_> {
    /// The parts of a `ModelInferResponse`.
    pub(crate) fn message(&self) -> Result<Vec<Bytes>, Status> {
        self.parts(Vec::new())
    }

    /// The parts of a `ModelStreamInferResponse`.
    pub(crate) fn stream_message(&self) -> Result<Vec<Bytes>, Status> {
        // One request has one answer here, so each is the last to its request.
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

    fn parts(&self, parameters: Vec<ParameterEntry>) -> Result<Vec<Bytes>, Status> {
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
            .map_err(|error| Status::new(Code::Internal, format!("the answer cannot be written: {error}")))?;
        let mut parts = Vec::with_capacity(2 * chosen.len() + 2);
        for (_, tensor) in chosen {
            put_block_head(RAW_OUTPUT_CONTENTS, tensor.data().len(), &mut written);
            parts.push(written.split().freeze());
            parts.push(tensor.data().clone());
        }
        Ok(parts)
    }

    fn chosen(&self) -> Result<Vec<(&TensorSpec, &Tensor)>, Status> {
        let (specs, tensors) = (&self.signature.outputs, &self.answer.outputs);
        if specs.len() != tensors.len() {
            return Err(Status::new(
                Code::Internal,
                "the engine gave more or fewer outputs than the model has",
            ));
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

/// A `ModelStreamInferResponse` about a request that failed; the stream goes on. The id tells which request.
pub(crate) fn error_in_stream(model: &str, version: &str, id: &str, error: &str) -> Bytes {
    let about = InferResponseHead {
        model_name: model.to_owned(),
        model_version: version.to_owned(),
        id: id.to_owned(),
        ..InferResponseHead::default()
    };
    // An empty text would read as success.
    let error = if error.is_empty() { "the request failed" } else { error };
    let mut message = BytesMut::with_capacity(2 * BLOCK_HEAD + error.len() + about.encoded_len());
    put_block_head(ERROR_MESSAGE, error.len(), &mut message);
    message.put_slice(error.as_bytes());
    put_block_head(INFER_RESPONSE, about.encoded_len(), &mut message);
    message.put_slice(&about.encode_to_vec());
    message.freeze()
}
