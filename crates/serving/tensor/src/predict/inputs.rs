//! Parses the inputs of a request in JSON: one row, rows, or an object with each input by name.

use std::fmt::Display;

use cudock_base::bug::Parts;

use crate::check::{InputSlots, as_rows, check_limits, input_index, row_elements};
use crate::json::Cursor;
use crate::{DType, RequestError, RequestLimits, Signature, Tensor, TensorSpec};

/// The tensors, and whether they are one row without the row dimension.
pub(crate) fn read_inputs(
    cursor: &mut Cursor<'_>,
    key: &'static str,
    signature: &Signature,
    limits: &RequestLimits,
) -> Result<(Vec<Tensor>, bool), RequestError> {
    if let [TensorSpec { json: true, .. }] = signature.inputs.as_slice() {
        return read_rows(cursor, key, limits);
    }
    if cursor.begins_rows() {
        return Ok((read_row_objects(cursor, key, signature, limits)?, false));
    }
    if cursor.peek() != Some(b'{') || cursor.begins_base64() {
        let [spec] = signature.inputs.as_slice() else {
            let names: Vec<String> = signature.inputs.iter().map(|spec| format!("`{}`", spec.name)).collect();
            let message =
                format!("the model has the inputs {}: give an object with each by name", names.join(", "));
            return Err(cursor.error(&key, message));
        };
        let tensor = cursor.tensor(spec.dtype, row_elements(spec), limits, &key)?;
        let (tensor, single) = as_rows(tensor, spec, signature, &key)?;
        return Ok((vec![tensor], single));
    }
    let mut slots = InputSlots::new(signature);
    let mut first: Option<(String, bool)> = None;
    cursor.object(&key, |cursor, name| {
        let index = slots.index(&name)?;
        let Some(spec) = signature.inputs.get(index) else { return Ok(()) };
        let path = format!("{key}.{name}");
        let tensor = cursor.tensor(spec.dtype, row_elements(spec), limits, &path)?;
        let (tensor, single) = as_rows(tensor, spec, signature, &path)?;
        slots.fill(index, tensor);
        match &first {
            None => first = Some((path, single)),
            Some((before, other)) if *other != single => {
                let (one, many) = if single { (&path, before) } else { (before, &path) };
                let message = format!("{one} is one row and {many} an array of rows; give both alike");
                return Err(RequestError::Mismatch(message));
            }
            Some(_) => {}
        }
        Ok(())
    })?;
    Ok((slots.finish()?, first.is_some_and(|(_, single)| single)))
}

/// Rows of any JSON, as a tensor of their texts, and whether there is one without an array around it.
fn read_rows(
    cursor: &mut Cursor<'_>,
    key: &'static str,
    limits: &RequestLimits,
) -> Result<(Vec<Tensor>, bool), RequestError> {
    let single = cursor.peek() != Some(b'[');
    let (mut rows, mut data) = (0, Vec::new());
    let mut row = |cursor: &mut Cursor<'_>, path: &dyn Display| {
        let span = cursor.span(path)?;
        let text = cursor.text.part(span);
        let length = u32::try_from(text.len()).map_err(|_| cursor.error(path, "a row of 4 GiB or more"))?;
        data.extend_from_slice(&length.to_le_bytes());
        data.extend_from_slice(text);
        rows += 1;
        check_limits(&[rows], limits, &key)
    };
    if single {
        row(cursor, &key)?;
    } else {
        cursor.array(&key, |cursor, index| row(cursor, &format_args!("{key}[{index}]")))?;
    }
    let tensor = Tensor::new(DType::String, vec![rows], data.into());
    Ok((vec![tensor.map_err(|error| RequestError::Mismatch(error.to_string()))?], single))
}

/// Rows that are objects with each input by name.
fn read_row_objects(
    cursor: &mut Cursor<'_>,
    key: &'static str,
    signature: &Signature,
    limits: &RequestLimits,
) -> Result<Vec<Tensor>, RequestError> {
    let mut columns: Vec<Column> = signature.inputs.iter().map(|_| Column::default()).collect();
    let mut rows = 0;
    cursor.array(&key, |cursor, row| {
        cursor.object(&format_args!("{key}[{row}]"), |cursor, name| {
            let index = input_index(&name, signature)?;
            let path = format!("{key}[{row}].{name}");
            let Some((spec, column)) = signature.inputs.get(index).zip(columns.get_mut(index)) else {
                return Ok(());
            };
            let tensor = cursor.tensor(spec.dtype, row_elements(spec), limits, &path)?;
            column.push(&tensor, row, limits, &path)
        })?;
        rows = row + 1;
        let missing = signature.inputs.iter().zip(&columns).find(|(_, column)| column.rows != rows);
        match missing {
            Some((spec, _)) => {
                Err(RequestError::Mismatch(format!("{key}[{row}]: input `{}` is missing", spec.name)))
            }
            None => Ok(()),
        }
    })?;
    let tensors = signature.inputs.iter().zip(columns).map(|(spec, column)| {
        let shape = std::iter::once(rows).chain(column.shape).collect();
        let tensor = Tensor::new(spec.dtype, shape, column.data.into());
        tensor.map_err(|error| RequestError::Mismatch(error.to_string()))
    });
    tensors.collect()
}

/// One input of rows that are objects.
#[derive(Default)]
struct Column {
    /// The shape of a row.
    shape: Vec<usize>,
    rows: usize,
    data: Vec<u8>,
}

impl Column {
    fn push(
        &mut self,
        tensor: &Tensor,
        row: usize,
        limits: &RequestLimits,
        path: &str,
    ) -> Result<(), RequestError> {
        if self.rows > row {
            return Err(RequestError::Mismatch(format!("{path}: it is given twice")));
        }
        if row == 0 {
            self.shape = tensor.shape().to_vec();
        } else if self.shape != tensor.shape() {
            let (shape, before) = (tensor.shape(), &self.shape);
            let message = format!("{path}: shape {shape:?}, but the rows before have {before:?}");
            return Err(RequestError::Mismatch(message));
        }
        self.rows += 1;
        let shape: Vec<usize> = std::iter::once(self.rows).chain(self.shape.iter().copied()).collect();
        check_limits(&shape, limits, &path)?;
        self.data.extend_from_slice(tensor.data());
        Ok(())
    }
}
