//! Answers of the Open Inference Protocol.

use crate::json::write as text;
use crate::{Answer, Inference, Signature, Tensor, Unwritable, WantedOutput, elements};

/// What of a request its answer depends on.
#[derive(Clone, Copy, Debug)]
pub struct Reply<'a> {
    /// What the client called the request.
    pub id: Option<&'a str>,
    /// The outputs it wants; all if empty.
    pub outputs: &'a [WantedOutput],
    /// Whether outputs not named are wanted as binary.
    pub binary_outputs: bool,
}

impl<'a> From<&'a Inference> for Reply<'a> {
    fn from(inference: &'a Inference) -> Self {
        Self {
            id: inference.id.as_deref(),
            outputs: &inference.outputs,
            binary_outputs: inference.binary_outputs,
        }
    }
}

/// Appends the answer. If binary tensors follow the JSON head, the result is the head's length, for the header
/// [`super::HEADER_LENGTH`]. NaN and infinities, which JSON lacks, become null there. Nothing is appended if it fails.
pub fn write(
    answer: &Answer,
    signature: &Signature,
    reply: &Reply<'_>,
    model_name: &str,
    model_version: &str,
    out: &mut Vec<u8>,
) -> Result<Option<usize>, Unwritable> {
    let start = out.len();
    let outcome = write_all(answer, signature, reply, model_name, model_version, out);
    if outcome.is_err() {
        out.truncate(start);
    }
    outcome
}

fn write_all(
    answer: &Answer,
    signature: &Signature,
    reply: &Reply<'_>,
    model_name: &str,
    model_version: &str,
    out: &mut Vec<u8>,
) -> Result<Option<usize>, Unwritable> {
    let start = out.len();
    out.extend_from_slice(b"{\"model_name\":");
    text::string(model_name, out);
    out.extend_from_slice(b",\"model_version\":");
    text::string(model_version, out);
    if let Some(id) = reply.id {
        out.extend_from_slice(b",\"id\":");
        text::string(id, out);
    }
    out.extend_from_slice(b",\"outputs\":[");
    let mut blobs: Vec<&Tensor> = Vec::new();
    let mut binary = reply.outputs.iter().map(|wanted| wanted.binary);
    for (index, (name, tensor)) in answer.wanted(reply.outputs, signature)?.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_head(name, tensor, out);
        if binary.next().unwrap_or(reply.binary_outputs) {
            out.extend_from_slice(b",\"parameters\":{\"binary_data_size\":");
            text::integer(tensor.data().len(), out);
            out.extend_from_slice(b"}}");
            blobs.push(tensor);
        } else {
            out.extend_from_slice(b",\"data\":");
            let flat = [elements(tensor.shape()).unwrap_or(0)];
            text::nested(tensor, &flat, out).map_err(|problem| Unwritable::not_text(name, problem))?;
            out.push(b'}');
        }
    }
    out.extend_from_slice(b"]}");
    let length = out.len() - start;
    for tensor in &blobs {
        out.extend_from_slice(tensor.data());
    }
    Ok((!blobs.is_empty()).then_some(length))
}

fn write_head(name: &str, tensor: &Tensor, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"name\":");
    text::string(name, out);
    out.extend_from_slice(b",\"datatype\":");
    text::string(tensor.dtype().protocol_name(), out);
    out.extend_from_slice(b",\"shape\":[");
    for (index, size) in tensor.shape().iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        text::integer(*size, out);
    }
    out.push(b']');
}
