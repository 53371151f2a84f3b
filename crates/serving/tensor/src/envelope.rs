//! The JSON around inputs and outputs: that of `/predict`, and that of other model servers.

use crate::check::output_index;
use crate::error::response::append;
use crate::json::{Cursor, SeenKeys, write as text};
use crate::predict::inputs::read_inputs;
use crate::predict::parameters::Parameters;
use crate::suggestion::{alternatives, truncated};
use crate::{
    InferenceRequest, InferenceResponse, RequestError, RequestLimits, RequestedOutput, ResponseError,
    ResponseForm, Signature, Tensor,
};

/// Where the requests of an API have the input, and what their responses look like.
#[derive(Debug)]
pub struct Envelope {
    /// The keys that may hold the input, and the form of the response to each.
    pub inputs: &'static [(&'static str, ResponseForm)],
    /// Whether a body that is not an object is the input itself.
    pub bare: bool,
    /// Whether `outputs`, `parameters` and `id` have their meaning and any other key is an error. Otherwise, all of them
    /// are ignored.
    pub strict: bool,
}

/// The envelope of [`crate::predict`].
pub static PREDICT: Envelope = Envelope {
    inputs: &[
        ("input", ResponseForm::Prediction),
        ("inputs", ResponseForm::Prediction),
        ("instances", ResponseForm::Prediction),
    ],
    bare: false,
    strict: true,
};

const CONTROL_KEYS: [&str; 3] = ["outputs", "parameters", "id"];

/// The name of a body without an envelope in messages.
const BODY: &str = "body";

/// Parses a request. The input is one row or an array of rows; several inputs are an object by name, or an array of such
/// objects, each a row.
pub fn read(
    body: &[u8],
    envelope: &Envelope,
    signature: &Signature,
    limits: &RequestLimits,
) -> Result<InferenceRequest, RequestError> {
    limits.check_body(body)?;
    let mut cursor = Cursor::new(body);
    if envelope.bare && cursor.peek() != Some(b'{') {
        let (inputs, single) = read_inputs(&mut cursor, BODY, signature, limits)?;
        cursor.end()?;
        let request = InferenceRequest::new(inputs, signature)?;
        return Ok(InferenceRequest { single, form: ResponseForm::Bare, ..request });
    }
    let mut given: Option<(&str, Vec<Tensor>, bool, ResponseForm)> = None;
    let (mut id, mut outputs, mut parameters) = (None, Vec::new(), Parameters::default());
    let mut keys = SeenKeys::default();
    cursor.object(&"", |cursor, key| {
        if let Some((name, form)) = envelope.inputs.iter().find(|(name, _)| *name == key) {
            match &given {
                None => {}
                Some((before, ..)) if before == name => {
                    return Err(cursor.error(&"", format!("`{name}` is given twice")));
                }
                Some(_) => return Err(cursor.error(name, "the input is given twice")),
            }
            let (inputs, single) = read_inputs(cursor, name, signature, limits)?;
            given = Some((*name, inputs, single, *form));
            return Ok(());
        }
        if !envelope.strict {
            return cursor.skip(&truncated(&key));
        }
        let known = keys.once(&CONTROL_KEYS, &key, cursor, &"")?.ok_or_else(|| {
            let names = envelope.inputs.iter().map(|(name, _)| *name).chain(CONTROL_KEYS);
            let others = alternatives(&key, names);
            cursor.error(&"", format!("unknown key `{}`{others}", truncated(&key)))
        })?;
        match known {
            "id" => id = Some(cursor.string(&known)?.into_owned()),
            "outputs" => outputs = read_outputs(cursor, signature)?,
            _ => parameters = Parameters::read(cursor)?,
        }
        Ok(())
    })?;
    cursor.end()?;
    let (_, inputs, single, form) = given.ok_or_else(|| {
        let name = envelope.inputs.first().map_or(BODY, |(name, _)| *name);
        RequestError::Mismatch(format!("`{name}` is missing"))
    })?;
    let Parameters { priority, timeout } = parameters;
    let request = InferenceRequest::new(inputs, signature)?;
    Ok(InferenceRequest { id, single, form, outputs, priority, timeout, ..request })
}

fn read_outputs(
    cursor: &mut Cursor<'_>,
    signature: &Signature,
) -> Result<Vec<RequestedOutput>, RequestError> {
    let mut outputs: Vec<RequestedOutput> = Vec::new();
    cursor.array(&"outputs", |cursor, index| {
        let name = cursor.string(&format_args!("outputs[{index}]"))?;
        let index = output_index(&name, signature)?;
        if outputs.iter().any(|requested| requested.index == index) {
            return Err(RequestError::Mismatch(format!("output `{name}` is requested twice")));
        }
        outputs.push(RequestedOutput { index, binary: false });
        Ok(())
    })?;
    Ok(outputs)
}

/// Appends the response: the outputs in `requested`, or all if it is empty. One output is an array. `single` omits the
/// row dimension. NaN and infinities, which JSON lacks, become null. Nothing is appended on error.
pub fn write(
    response: &InferenceResponse,
    signature: &Signature,
    single: bool,
    requested: &[RequestedOutput],
    form: ResponseForm,
    device: &str,
    out: &mut Vec<u8>,
) -> Result<(), ResponseError> {
    append(out, |out| {
        let outputs = response.requested(requested, signature)?;
        match form {
            ResponseForm::Prediction => {
                out.extend_from_slice(b"{\"prediction\":");
                columns(&outputs, signature, single, out)?;
                out.extend_from_slice(b",\"device\":");
                text::string(device, out);
                out.push(b'}');
            }
            ResponseForm::Rows => {
                out.extend_from_slice(b"{\"predictions\":");
                if single {
                    columns(&outputs, signature, true, out)
                } else {
                    rows(&outputs, signature, out)
                }?;
                out.push(b'}');
            }
            ResponseForm::Columns => {
                out.extend_from_slice(b"{\"outputs\":");
                columns(&outputs, signature, single, out)?;
                out.push(b'}');
            }
            ResponseForm::Bare => columns(&outputs, signature, single, out)?,
        }
        Ok(())
    })
}

/// One output as its value, several as an object by name.
fn columns(
    outputs: &[(&str, &Tensor)],
    signature: &Signature,
    single: bool,
    out: &mut Vec<u8>,
) -> Result<(), ResponseError> {
    let value = |name: &str, tensor: &Tensor, out: &mut Vec<u8>| {
        let shape = tensor.shape();
        let shape = if single { shape.strip_prefix(&[1]).unwrap_or(shape) } else { shape };
        write_tensor(name, tensor, shape, signature, out)
    };
    match outputs {
        [(name, tensor)] => value(name, tensor, out),
        several => write_object(several.iter().map(|(name, tensor)| (*name, *tensor)), out, value),
    }
}

/// One output as its value, several as an object for each row if they have as many rows.
fn rows(outputs: &[(&str, &Tensor)], signature: &Signature, out: &mut Vec<u8>) -> Result<(), ResponseError> {
    let count = outputs.first().map_or(0, |(_, tensor)| tensor.rows());
    let is_by_row = |(_, tensor): &(&str, &Tensor)| tensor.shape().first() == Some(&count);
    if outputs.len() == 1 || !outputs.iter().all(is_by_row) {
        return columns(outputs, signature, false, out);
    }
    let mut split: Vec<_> = outputs.iter().map(|(name, tensor)| (*name, tensor.split_rows())).collect();
    out.push(b'[');
    for row in 0..count {
        if row > 0 {
            out.push(b',');
        }
        let values = split.iter_mut().filter_map(|(name, rows)| Some((*name, rows.next()?)));
        write_object(values, out, |name, tensor, out| {
            write_tensor(name, &tensor, tensor.shape(), signature, out)
        })?;
    }
    out.push(b']');
    Ok(())
}

fn write_object<'a, T>(
    values: impl Iterator<Item = (&'a str, T)>,
    out: &mut Vec<u8>,
    mut write: impl FnMut(&str, T, &mut Vec<u8>) -> Result<(), ResponseError>,
) -> Result<(), ResponseError> {
    out.push(b'{');
    for (index, (name, value)) in values.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        text::string(name, out);
        out.push(b':');
        write(name, value, out)?;
    }
    out.push(b'}');
    Ok(())
}

fn write_tensor(
    name: &str,
    tensor: &Tensor,
    shape: &[usize],
    signature: &Signature,
    out: &mut Vec<u8>,
) -> Result<(), ResponseError> {
    let is_json = signature.outputs.iter().any(|spec| spec.json && spec.name == name);
    let written =
        if is_json { text::json_rows(tensor, shape, out) } else { text::nested(tensor, shape, out) };
    written.map_err(|error| ResponseError::not_text(name, error))
}

/// Whether the values for `input` are strings, as far as the text is valid: the value of an input key itself, or that of
/// the input's name in an object.
pub fn is_text(body: &[u8], envelope: &Envelope, input: &str) -> bool {
    let mut cursor = Cursor::new(body);
    if cursor.peek() != Some(b'{') {
        return envelope.bare && begins_with_string(&mut cursor);
    }
    let mut found = false;
    // An error ends the search as soon as it is decided; the reader of the body reports errors of the text.
    let _ = cursor.object(&"", |cursor, key| {
        if !envelope.inputs.iter().any(|(name, _)| *name == key) {
            return cursor.skip(&"");
        }
        // A row may be an object, too.
        while cursor.eat(b'[') {}
        if cursor.peek() != Some(b'{') || begins_with_string(cursor) {
            found = begins_with_string(cursor);
            return Err(cursor.error(&"", ""));
        }
        cursor.object(&"", |cursor, name| {
            if name != input {
                return cursor.skip(&"");
            }
            found = begins_with_string(cursor);
            Err(cursor.error(&"", ""))
        })
    });
    found
}

/// Whether the first value, in any number of arrays, is a string or an object for bytes.
fn begins_with_string(cursor: &mut Cursor<'_>) -> bool {
    while cursor.eat(b'[') {}
    cursor.peek() == Some(b'"') || cursor.begins_base64()
}
