//! The bytes of the elements: `application/octet-stream`.

use bytes::Bytes;

use crate::check::{check_limits, show_spec};
use crate::{
    InferenceRequest, InferenceResponse, RequestError, RequestLimits, RequestedOutput, ResponseError,
    Signature, Tensor, elements,
};

/// Parses a request for a model with one input whose rows have a static size: the number of rows follows from the
/// number of bytes. The tensor is not copied.
pub fn read(
    body: &Bytes,
    signature: &Signature,
    limits: &RequestLimits,
) -> Result<InferenceRequest, RequestError> {
    limits.check_body(body)?;
    let [spec] = signature.inputs.as_slice() else {
        let count = signature.inputs.len();
        let message = format!(
            "raw bytes are one input, and the model has {count}; send JSON or the Open Inference Protocol"
        );
        return Err(RequestError::Mismatch(message));
    };
    let unsized_input = || {
        let (name, shape) = (&spec.name, show_spec(spec));
        RequestError::Mismatch(format!(
            "{name}: raw bytes have no shape, and the model expects {} {shape}; send .npy or the Open Inference \
             Protocol",
            spec.dtype,
        ))
    };
    let counts_rows = signature.counts_rows();
    let counted = usize::from(counts_rows);
    let row: Option<Vec<usize>> = spec.shape.iter().skip(counted).copied().collect();
    let row = row.filter(|_| !spec.any_rank).ok_or_else(unsized_input)?;
    let size = spec.dtype.size().zip(elements(&row)).and_then(|(size, count)| size.checked_mul(count));
    let size = size.filter(|size| *size > 0).ok_or_else(unsized_input)?;
    let shape = if counts_rows {
        if body.is_empty() || !body.len().is_multiple_of(size) {
            let message =
                format!("{}: {} bytes are not a multiple of the row size {size}", spec.name, body.len());
            return Err(RequestError::Mismatch(message));
        }
        std::iter::once(body.len() / size).chain(row).collect()
    } else {
        row
    };
    check_limits(&shape, limits, &spec.name)?;
    let tensor = Tensor::new(spec.dtype, shape, body.clone())
        .map_err(|error| RequestError::Mismatch(format!("{}: {error}", spec.name)))?;
    InferenceRequest::new(vec![tensor], signature)
}

/// The bytes of the requested or only output.
pub fn write(
    response: &InferenceResponse,
    signature: &Signature,
    requested: &[RequestedOutput],
) -> Result<Bytes, ResponseError> {
    Ok(response.only(requested, signature, "application/octet-stream")?.1.data().clone())
}
