//! Lines of values separated by commas: `text/csv`.

use crate::check::{as_rows, check_limits, row_elements};
use crate::json::{Cursor, write as text};
use crate::{
    DType, InferenceRequest, InferenceResponse, RequestError, RequestLimits, RequestedOutput, ResponseError,
    Signature, Tensor, elements,
};

/// Parses a request for a model with one input: each line is a row, whose values fill the row's shape. There is no line
/// of names, and values are not quoted.
pub fn read(
    body: &[u8],
    signature: &Signature,
    limits: &RequestLimits,
) -> Result<InferenceRequest, RequestError> {
    limits.check_body(body)?;
    let [spec] = signature.inputs.as_slice() else {
        let count = signature.inputs.len();
        return Err(RequestError::Mismatch(format!(
            "CSV holds one input, and the model has {count}; send JSON"
        )));
    };
    let mut data = Vec::new();
    let (mut rows, mut columns) = (0, 0);
    for (index, line) in body.split(|byte| *byte == b'\n').enumerate() {
        let line = line.trim_ascii();
        if line.is_empty() {
            continue;
        }
        let path = format!("line {}", index + 1);
        let row = read_line(line, spec.dtype, row_elements(spec), limits, &path)?;
        let size = row.rows();
        if rows > 0 && size != columns {
            let message = format!("{path}: {size} values where the lines before have {columns}");
            return Err(RequestError::Mismatch(message));
        }
        (rows, columns) = (rows + 1, size);
        check_limits(&[rows, columns], limits, &path)?;
        data.extend_from_slice(row.data());
    }
    if rows == 0 {
        return Err(RequestError::Mismatch("no rows".to_owned()));
    }
    let fixed: Option<Vec<usize>> = spec.shape.iter().skip(1).copied().collect();
    // A row of a model that takes a list has one value and no dimension.
    let row = fixed.filter(|row| elements(row) == Some(columns) && signature.counts_rows());
    let shape = std::iter::once(rows).chain(row.unwrap_or_else(|| vec![columns])).collect();
    let tensor = Tensor::new(spec.dtype, shape, data.into())
        .map_err(|error| RequestError::Mismatch(error.to_string()))?;
    let (tensor, _) = as_rows(tensor, spec, signature, &spec.name)?;
    InferenceRequest::new(vec![tensor], signature)
}

/// The values of one line. They are written as in JSON, but for strings.
fn read_line(
    line: &[u8],
    dtype: DType,
    likely: usize,
    limits: &RequestLimits,
    path: &str,
) -> Result<Tensor, RequestError> {
    let values = if dtype == DType::String {
        let mut quoted = Vec::new();
        for value in String::from_utf8_lossy(line).split(',') {
            quoted.push(if quoted.is_empty() { b'[' } else { b',' });
            text::string(value.trim(), &mut quoted);
        }
        quoted.push(b']');
        quoted
    } else {
        [b"[", line, b"]"].concat()
    };
    let mut cursor = Cursor::new(&values);
    let tensor = cursor.tensor(dtype, likely, limits, &path)?;
    cursor.end()?;
    if tensor.shape().len() != 1 {
        return Err(RequestError::Mismatch(format!("{path}: not values separated by commas")));
    }
    Ok(tensor)
}

/// Appends the requested or only output, one line per row.
pub fn write(
    response: &InferenceResponse,
    signature: &Signature,
    requested: &[RequestedOutput],
    out: &mut Vec<u8>,
) -> Result<(), ResponseError> {
    let (name, tensor) = response.only(requested, signature, "CSV")?;
    if tensor.dtype() == DType::String {
        return Err(ResponseError::Strings { output: name.to_owned(), form: "CSV" });
    }
    for row in tensor.split_rows() {
        let mut line = Vec::new();
        let count = elements(row.shape()).unwrap_or(0);
        text::nested(&row, &[count], &mut line).map_err(|error| ResponseError::not_text(name, error))?;
        // The brackets of the array.
        out.extend_from_slice(line.get(1..line.len().saturating_sub(1)).unwrap_or_default());
        out.push(b'\n');
    }
    Ok(())
}
