//! Small parts of requests of the Open Inference Protocol.

use crate::check::show_shape;
use crate::json::Cursor;
use crate::unknown::shown;
use crate::{DType, Malformed, Tensor, elements};

/// Elements under the shape the request gives: they come flat, or nested just so.
pub(super) fn reshape(tensor: Tensor, shape: Vec<usize>, place: &str) -> Result<Tensor, Malformed> {
    let found = elements(tensor.shape()).unwrap_or(0);
    let flat = tensor.shape().len() <= 1;
    if flat && elements(&shape) != Some(found) {
        let (shown, expected) = (show_shape(&shape), elements(&shape).unwrap_or(usize::MAX));
        let problem = format!("{place}.data: {found} elements where shape {shown} has {expected}");
        return Err(Malformed::Unfit(problem));
    }
    if !flat && tensor.shape() != shape {
        let (given, claimed) = (show_shape(tensor.shape()), show_shape(&shape));
        return Err(Malformed::Unfit(format!(
            "{place}.data: nested as {given} where the shape is {claimed}"
        )));
    }
    tensor.reshaped(shape).ok_or_else(|| Malformed::Unfit(format!("{place}.data: not of that shape")))
}

/// The type an input says it has.
pub(super) fn read_datatype(cursor: &mut Cursor<'_>, place: &str) -> Result<DType, Malformed> {
    let place = format!("{place}.datatype");
    let name = cursor.string(&place)?;
    DType::from_protocol_name(&name).ok_or_else(|| {
        let known: Vec<&str> = DType::ALL.into_iter().map(DType::protocol_name).collect();
        Malformed::Unfit(format!("{place}: no datatype `{}`; there is {}", shown(&name), known.join(", ")))
    })
}

/// How many bytes after the head an input takes, from its parameters.
pub(super) fn read_binary_size(cursor: &mut Cursor<'_>, place: &str) -> Result<Option<usize>, Malformed> {
    let mut size = None;
    let place = format!("{place}.parameters");
    cursor.object(&place, |cursor, key| {
        match key.as_ref() {
            "binary_data_size" => {
                let value = cursor.natural(&format_args!("{place}.binary_data_size"))?;
                size = Some(usize::try_from(value).unwrap_or(usize::MAX));
            }
            "shared_memory_region" => return Err(cursor.wrong(&place, "shared memory is not offered")),
            _ => cursor.skip(&place)?,
        }
        Ok(())
    })?;
    Ok(size)
}

/// Whether an output is wanted as binary, from its parameters.
pub(super) fn read_binary_data(cursor: &mut Cursor<'_>, place: &str) -> Result<Option<bool>, Malformed> {
    let mut binary = None;
    let place = format!("{place}.parameters");
    cursor.object(&place, |cursor, key| {
        match key.as_ref() {
            "binary_data" => binary = Some(cursor.boolean(&format_args!("{place}.binary_data"))?),
            "shared_memory_region" => return Err(cursor.wrong(&place, "shared memory is not offered")),
            "classification" => return Err(cursor.wrong(&place, "classification is not offered")),
            _ => cursor.skip(&place)?,
        }
        Ok(())
    })?;
    Ok(binary)
}
