//! Fields of requests of the Open Inference Protocol.

use std::fmt::Display;

use crate::json::Cursor;
use crate::suggestion::truncated;
use crate::{DType, RequestError, Tensor, elements};

/// Gives the elements their declared shape: they are flat, or nested accordingly.
pub(super) fn reshape(tensor: Tensor, shape: Vec<usize>, path: &dyn Display) -> Result<Tensor, RequestError> {
    let found = elements(tensor.shape()).unwrap_or(0);
    let flat = tensor.shape().len() <= 1;
    if flat && elements(&shape) != Some(found) {
        let expected = elements(&shape).unwrap_or(usize::MAX);
        let message = format!("{path}.data: {found} elements where shape {shape:?} has {expected}");
        return Err(RequestError::Mismatch(message));
    }
    if !flat && tensor.shape() != shape {
        let message = format!("{path}.data: nested as {:?} where the shape is {shape:?}", tensor.shape());
        return Err(RequestError::Mismatch(message));
    }
    tensor.reshaped(shape).ok_or_else(|| RequestError::Mismatch(format!("{path}.data: not of that shape")))
}

pub(super) fn read_datatype(cursor: &mut Cursor<'_>, path: &dyn Display) -> Result<DType, RequestError> {
    let path = format_args!("{path}.datatype");
    let name = cursor.string(&path)?;
    DType::from_protocol_name(&name).ok_or_else(|| {
        let known: Vec<&str> = DType::ALL.into_iter().map(DType::protocol_name).collect();
        RequestError::Mismatch(format!(
            "{path}: no datatype `{}`; expected one of {}",
            truncated(&name),
            known.join(", ")
        ))
    })
}

/// Parses the binary size from the parameters of an input.
pub(super) fn read_binary_size(
    cursor: &mut Cursor<'_>,
    path: &dyn Display,
) -> Result<Option<usize>, RequestError> {
    let mut size = None;
    let path = format_args!("{path}.parameters");
    cursor.object(&path, |cursor, key| {
        match key.as_ref() {
            "binary_data_size" => {
                let value = cursor.natural(&format_args!("{path}.binary_data_size"))?;
                size = Some(usize::try_from(value).unwrap_or(usize::MAX));
            }
            "shared_memory_region" => return Err(cursor.error(&path, "shared memory is not supported")),
            _ => cursor.skip(&path)?,
        }
        Ok(())
    })?;
    Ok(size)
}

/// Parses from the parameters of an output whether it is binary.
pub(super) fn read_binary_data(
    cursor: &mut Cursor<'_>,
    path: &dyn Display,
) -> Result<Option<bool>, RequestError> {
    let mut binary = None;
    let path = format_args!("{path}.parameters");
    cursor.object(&path, |cursor, key| {
        match key.as_ref() {
            "binary_data" => binary = Some(cursor.boolean(&format_args!("{path}.binary_data"))?),
            "shared_memory_region" => return Err(cursor.error(&path, "shared memory is not supported")),
            "classification" => return Err(cursor.error(&path, "classification is not supported")),
            _ => cursor.skip(&path)?,
        }
        Ok(())
    })?;
    Ok(binary)
}
