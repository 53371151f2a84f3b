//! Files of `numpy.save`.

mod header;

use bytes::Bytes;

use crate::check::{as_rows, check_dtype, check_limits};
use crate::{
    DType, InferenceRequest, InferenceResponse, RequestError, RequestLimits, RequestedOutput, ResponseError,
    Signature, Tensor, elements,
};
use header::{NpyHeader, NpyKind};

/// Parses a request for a model with one input: an array of rows, or one row without the row dimension. Numbers are not
/// copied.
pub fn read(
    body: &Bytes,
    signature: &Signature,
    limits: &RequestLimits,
) -> Result<InferenceRequest, RequestError> {
    let [spec] = signature.inputs.as_slice() else {
        return Err(RequestError::Mismatch(format!(
            ".npy holds one input, and the model has {}; send JSON or the Open Inference Protocol",
            signature.inputs.len(),
        )));
    };
    let tensor = tensor(body, limits)?;
    check_dtype(tensor.dtype(), spec, &spec.name).map_err(|error| match header::numpy_name(spec.dtype) {
        Some(name) => RequestError::Mismatch(format!("{error}; convert it with .astype(numpy.{name})")),
        None => error,
    })?;
    let (tensor, single) = as_rows(tensor, spec, signature, &spec.name)?;
    Ok(InferenceRequest { single, ..InferenceRequest::new(vec![tensor], signature)? })
}

/// Parses a file of versions 1 to 3. Arrays of two-byte voids are bfloat16, as saved by `ml_dtypes`.
pub fn tensor(body: &Bytes, limits: &RequestLimits) -> Result<Tensor, RequestError> {
    limits.check_body(body)?;
    let NpyHeader { kind, shape, length } = header::read(body)?;
    check_limits(&shape, limits, &".npy")?;
    let data = body.slice(length.min(body.len())..);
    let mismatch = |error| RequestError::Mismatch(format!(".npy: {error}"));
    match kind {
        NpyKind::Plain(dtype) => Tensor::new(dtype, shape, data).map_err(mismatch),
        NpyKind::Bytes(width) => {
            let strings = strings(&data, width, &shape, |string, out| {
                let length = string.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
                out.extend_from_slice(string.get(..length).unwrap_or_default());
                Some(())
            })?;
            Tensor::new(DType::String, shape, strings).map_err(mismatch)
        }
        NpyKind::Text(width) => {
            let strings = strings(&data, width.saturating_mul(4), &shape, utf8)?;
            Tensor::new(DType::String, shape, strings).map_err(mismatch)
        }
    }
}

/// Strings of one width, in the layout of a tensor.
fn strings(
    data: &[u8],
    width: usize,
    shape: &[usize],
    append: impl Fn(&[u8], &mut Vec<u8>) -> Option<()>,
) -> Result<Bytes, RequestError> {
    let expected = elements(shape).and_then(|count| count.checked_mul(width));
    if expected != Some(data.len()) {
        let message = format!(".npy: {} bytes are not {shape:?} strings of {width}", data.len());
        return Err(RequestError::Mismatch(message));
    }
    let mut out = Vec::new();
    for (index, string) in data.chunks(width.max(1)).enumerate() {
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        append(string, &mut out)
            .ok_or_else(|| RequestError::Mismatch(format!(".npy: string {index} is not Unicode")))?;
        let length = u32::try_from(out.len() - start - 4)
            .map_err(|_| RequestError::Mismatch(format!(".npy: string {index} has 4 GiB or more")))?;
        if let Some(prefix) = out.get_mut(start..).and_then(<[u8]>::first_chunk_mut) {
            *prefix = length.to_le_bytes();
        }
    }
    Ok(Bytes::from(out))
}

/// Appends a UTF-32 string as UTF-8, without trailing zeros.
fn utf8(string: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let (characters, rest) = string.as_chunks::<4>();
    let length = characters.iter().rposition(|character| *character != [0; 4]).map_or(0, |last| last + 1);
    for character in characters.iter().take(length) {
        let character = char::from_u32(u32::from_le_bytes(*character))?;
        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    }
    rest.is_empty().then_some(())
}

/// Appends the requested or only output as a file of version 1. numpy has no bfloat16: such an output is widened to
/// float32.
pub fn write(
    response: &InferenceResponse,
    signature: &Signature,
    requested: &[RequestedOutput],
    out: &mut Vec<u8>,
) -> Result<(), ResponseError> {
    let (name, tensor) = response.only(requested, signature, ".npy")?;
    write_tensor(tensor, out).ok_or_else(|| ResponseError::Strings { output: name.to_owned(), form: ".npy" })
}

/// Appends a file of version 1, as [`write()`] does; `None` for strings.
pub fn write_tensor(tensor: &Tensor, out: &mut Vec<u8>) -> Option<()> {
    header::write(tensor.dtype(), tensor.shape(), out)?;
    if tensor.dtype() == DType::BF16 {
        let (elements, _) = tensor.data().as_chunks::<2>();
        out.extend(elements.iter().flat_map(|[low, high]| [0, 0, *low, *high]));
    } else {
        out.extend_from_slice(tensor.data());
    }
    Some(())
}
