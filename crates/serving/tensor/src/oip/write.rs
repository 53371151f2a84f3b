//! Writes responses of the Open Inference Protocol.

use crate::error::response::append;
use crate::json::write as text;
use crate::{InferenceResponse, RequestedOutput, ResponseError, Signature, Tensor, elements};

/// Usual upper bound of the size of a head.
const HEAD: usize = 256;

/// The part of a request on which its response depends.
#[derive(Clone, Copy, Debug)]
pub struct ResponseOptions<'a> {
    /// The client's id.
    pub id: Option<&'a str>,
    /// The requested outputs; all if empty.
    pub outputs: &'a [RequestedOutput],
    /// Whether outputs are binary by default.
    pub binary_outputs: bool,
}

/// Appends the response. If binary tensors follow the JSON head, returns the head's length, for the header
/// [`super::HEADER_LENGTH`]. NaN and infinities, which JSON lacks, become null. Nothing is appended on error.
pub fn write(
    response: &InferenceResponse,
    signature: &Signature,
    options: &ResponseOptions<'_>,
    model_name: &str,
    model_version: &str,
    out: &mut Vec<u8>,
) -> Result<Option<usize>, ResponseError> {
    append(out, |out| {
        let start = out.len();
        out.reserve(HEAD + response.outputs.iter().map(|tensor| tensor.data().len()).sum::<usize>());
        out.extend_from_slice(b"{\"model_name\":");
        text::string(model_name, out);
        out.extend_from_slice(b",\"model_version\":");
        text::string(model_version, out);
        if let Some(id) = options.id {
            out.extend_from_slice(b",\"id\":");
            text::string(id, out);
        }
        out.extend_from_slice(b",\"outputs\":[");
        let mut blobs: Vec<&Tensor> = Vec::new();
        let mut binary = options.outputs.iter().map(|requested| requested.binary);
        for (index, (name, tensor)) in response.requested(options.outputs, signature)?.into_iter().enumerate()
        {
            if index > 0 {
                out.push(b',');
            }
            write_head(name, tensor, out);
            if binary.next().unwrap_or(options.binary_outputs) {
                out.extend_from_slice(b",\"parameters\":{\"binary_data_size\":");
                text::integer(tensor.data().len(), out);
                out.extend_from_slice(b"}}");
                blobs.push(tensor);
            } else {
                out.extend_from_slice(b",\"data\":");
                let flat = [elements(tensor.shape()).unwrap_or(0)];
                text::nested(tensor, &flat, out).map_err(|message| ResponseError::not_text(name, message))?;
                out.push(b'}');
            }
        }
        out.extend_from_slice(b"]}");
        let length = out.len() - start;
        for tensor in &blobs {
            out.extend_from_slice(tensor.data());
        }
        Ok((!blobs.is_empty()).then_some(length))
    })
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
