//! Nothing but the bytes of the elements: `application/octet-stream`.

use bytes::Bytes;

use crate::check::{check_limits, show_spec};
use crate::{Answer, Inference, Limits, Malformed, Signature, Tensor, Unwritable, WantedOutput, elements};

/// Reads a request for a model of one input whose rows all have the same size: as many rows as the bytes make. The
/// tensor shares the body's memory.
pub fn read(body: &Bytes, signature: &Signature, limits: &Limits) -> Result<Inference, Malformed> {
    if body.len() > limits.body {
        return Err(Malformed::body_too_large(limits));
    }
    let [spec] = signature.inputs.as_slice() else {
        let count = signature.inputs.len();
        let problem = format!(
            "raw bytes are one input, and the model has {count}; send JSON or the Open Inference Protocol"
        );
        return Err(Malformed::Unfit(problem));
    };
    let unsized_input = || {
        let (name, shape) = (&spec.name, show_spec(spec));
        Malformed::Unfit(format!(
            "{name}: raw bytes do not tell the shape, and the model takes {} {shape}; send .npy or the Open Inference \
             Protocol",
            spec.dtype,
        ))
    };
    let counted = usize::from(signature.batched);
    let row: Option<Vec<usize>> = spec.shape.iter().skip(counted).copied().collect();
    let row = row.filter(|_| !spec.any_rank).ok_or_else(unsized_input)?;
    let size = spec.dtype.size().zip(elements(&row)).and_then(|(size, count)| size.checked_mul(count));
    let size = size.filter(|size| *size > 0).ok_or_else(unsized_input)?;
    let shape = if signature.batched {
        if body.is_empty() || !body.len().is_multiple_of(size) {
            let problem =
                format!("{}: {} bytes are no whole number of rows of {size}", spec.name, body.len());
            return Err(Malformed::Unfit(problem));
        }
        std::iter::once(body.len() / size).chain(row).collect()
    } else {
        row
    };
    check_limits(&shape, limits, &spec.name)?;
    let tensor = Tensor::new(spec.dtype, shape, body.clone())
        .map_err(|error| Malformed::Unfit(format!("{}: {error}", spec.name)))?;
    Inference::new(vec![tensor], signature)
}

/// The bytes of the one output asked for, or of the model's one output.
pub fn write(answer: &Answer, signature: &Signature, wanted: &[WantedOutput]) -> Result<Bytes, Unwritable> {
    Ok(answer.only(wanted, signature, "application/octet-stream")?.1.data().clone())
}
