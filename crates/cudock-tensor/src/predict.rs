//! `{"input": …}` and its response `{"prediction": …, "device": …}`: the format for requests written by hand.
//!
//! The rows of a model that takes JSON are any values: `{"input": [{"age": 3}, …]}` has the response
//! `{"prediction": [{"risk": 0.1}, …], …}`.
//!
//! Other keys are `"id"`, `"outputs": ["name", …]` and `"parameters": {"priority": 1, "timeout_ms": 250}`. An unknown
//! key is rejected instead of ignored: it is a typo, and its author would wonder why it has no effect.

use std::fmt::Display;
use std::time::Duration;

use crate::check::{InputSlots, as_rows, check_limits, output_index, row_elements};
use crate::json::{Cursor, SeenKeys, write as text};
use crate::response_error::append;
use crate::suggestion::{alternatives, truncated};
use crate::{
    DType, InferenceRequest, InferenceResponse, RequestError, RequestLimits, RequestedOutput, ResponseError,
    Signature, Tensor, TensorSpec,
};

const KEYS: [&str; 6] = ["input", "inputs", "instances", "outputs", "parameters", "id"];
const INPUT_KEYS: [&str; 3] = ["input", "inputs", "instances"];
const PARAMETERS: [&str; 2] = ["priority", "timeout_ms"];

/// Parses a request. The input is one row or an array of rows; several inputs are an object by name.
pub fn read(
    body: &[u8],
    signature: &Signature,
    limits: &RequestLimits,
) -> Result<InferenceRequest, RequestError> {
    limits.check_body(body)?;
    let mut given: Option<(Vec<Tensor>, bool)> = None;
    let (mut id, mut outputs, mut parameters) = (None, Vec::new(), Parameters::default());
    let mut keys = SeenKeys::default();
    let mut cursor = Cursor::new(body);
    cursor.object(&"", |cursor, key| {
        let known = known_key(&mut keys, &KEYS, &key, cursor, "")?;
        match known {
            "id" => id = Some(cursor.string(&known)?.into_owned()),
            "outputs" => outputs = read_outputs(cursor, signature)?,
            "parameters" => parameters = Parameters::read(cursor)?,
            _ if given.is_some() => return Err(cursor.error(&known, "the input is given twice")),
            _ => given = Some(read_inputs(cursor, known, signature, limits)?),
        }
        Ok(())
    })?;
    cursor.end()?;
    let (inputs, single) = given.ok_or_else(|| RequestError::Mismatch("`input` is missing".to_owned()))?;
    let Parameters { priority, timeout } = parameters;
    let request = InferenceRequest::new(inputs, signature)?;
    Ok(InferenceRequest { id, single, outputs, priority, timeout, ..request })
}

/// The key, which must be known and not a duplicate.
fn known_key(
    keys: &mut SeenKeys,
    known: &[&'static str],
    key: &str,
    cursor: &Cursor<'_>,
    path: &'static str,
) -> Result<&'static str, RequestError> {
    keys.once(known, key, cursor, &path)?.ok_or_else(|| {
        let others = alternatives(key, known.iter().copied());
        cursor.error(&path, format!("unknown key `{}`{others}", truncated(key)))
    })
}

/// The tensors, and whether they are one row without the row dimension.
fn read_inputs(
    cursor: &mut Cursor<'_>,
    key: &'static str,
    signature: &Signature,
    limits: &RequestLimits,
) -> Result<(Vec<Tensor>, bool), RequestError> {
    if let [TensorSpec { json: true, .. }] = signature.inputs.as_slice() {
        return read_rows(cursor, key, limits);
    }
    if cursor.peek() != Some(b'{') {
        let [spec] = signature.inputs.as_slice() else {
            let names: Vec<String> = signature.inputs.iter().map(|spec| format!("`{}`", spec.name)).collect();
            let message =
                format!("the model has the inputs {}: give an object with each by name", names.join(", "));
            return Err(cursor.error(&key, message));
        };
        let tensor = cursor.tensor(spec.dtype, row_elements(spec), limits, &key)?;
        let (tensor, single) = as_rows(tensor, spec, signature, key)?;
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
        let text = cursor.text.get(span).unwrap_or_default();
        let length = u32::try_from(text.len()).map_err(|_| cursor.error(path, "a row of 4 GiB or more"))?;
        data.extend_from_slice(&length.to_le_bytes());
        data.extend_from_slice(text);
        rows += 1;
        check_limits(&[rows], limits, key)
    };
    if single {
        row(cursor, &key)?;
    } else {
        cursor.array(&key, |cursor, index| row(cursor, &format_args!("{key}[{index}]")))?;
    }
    let tensor = Tensor::new(DType::String, vec![rows], data.into());
    Ok((vec![tensor.map_err(|error| RequestError::Mismatch(error.to_string()))?], single))
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

#[derive(Default)]
struct Parameters {
    priority: u32,
    timeout: Option<Duration>,
}

impl Parameters {
    fn read(cursor: &mut Cursor<'_>) -> Result<Self, RequestError> {
        let mut parameters = Self::default();
        let mut keys = SeenKeys::default();
        cursor.object(&"parameters", |cursor, key| {
            let known = known_key(&mut keys, &PARAMETERS, &key, cursor, "parameters")?;
            let path = format_args!("parameters.{known}");
            if known == "priority" {
                let priority = cursor.natural(&path)?;
                parameters.priority = u32::try_from(priority).unwrap_or(u32::MAX);
                return Ok(());
            }
            let milliseconds = cursor.number(&path)?;
            let timeout = Duration::try_from_secs_f64(milliseconds / 1e3).ok().filter(|time| !time.is_zero());
            parameters.timeout =
                Some(timeout.ok_or_else(|| cursor.error(&path, "expected a time in milliseconds above 0"))?);
            Ok(())
        })?;
        Ok(parameters)
    }
}

/// Appends the response: the outputs in `requested`, or all if it is empty. One output is an array, several are an
/// object by name. `single` omits the row dimension. NaN and infinities, which JSON lacks, become null. Nothing is
/// appended on error.
pub fn write(
    response: &InferenceResponse,
    signature: &Signature,
    single: bool,
    requested: &[RequestedOutput],
    device: &str,
    out: &mut Vec<u8>,
) -> Result<(), ResponseError> {
    append(out, |out| {
        out.extend_from_slice(b"{\"prediction\":");
        let outputs = response.requested(requested, signature)?;
        let named = outputs.len() != 1;
        for (index, (name, tensor)) in outputs.into_iter().enumerate() {
            if named {
                out.push(if index == 0 { b'{' } else { b',' });
                text::string(name, out);
                out.push(b':');
            }
            let shape = tensor.shape();
            let shape = if single { shape.strip_prefix(&[1]).unwrap_or(shape) } else { shape };
            let is_json = signature.outputs.iter().any(|spec| spec.json && spec.name == name);
            let written =
                if is_json { text::json_rows(tensor, shape, out) } else { text::nested(tensor, shape, out) };
            written.map_err(|message| ResponseError::not_text(name, message))?;
        }
        if named {
            out.push(b'}');
        }
        out.extend_from_slice(b",\"device\":");
        text::string(device, out);
        out.push(b'}');
        Ok(())
    })
}

/// Adds the client's id to a response of [`write()`].
pub fn add_id(id: &str, out: &mut Vec<u8>) {
    add_key("id", out, |out| text::string(id, out));
}

/// Adds a key, whose value `write` appends, to a response of [`write()`].
pub fn add_key(key: &str, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    if out.pop_if(|last| *last == b'}').is_some() {
        out.push(b',');
        text::string(key, out);
        out.push(b':');
        write(out);
        out.push(b'}');
    }
}

/// Whether the values for `input` are strings, as far as the text is valid: the value of `"input"` itself, or that of its
/// name in an object.
pub fn is_text(body: &[u8], input: &str) -> bool {
    let mut found = false;
    let mut cursor = Cursor::new(body);
    // An error ends the search as soon as it is decided; whoever reads the body reports those of the text.
    let _ = cursor.object(&"", |cursor, key| {
        if !INPUT_KEYS.contains(&&*key) {
            return cursor.skip(&"");
        }
        if cursor.peek() != Some(b'{') {
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

fn begins_with_string(cursor: &mut Cursor<'_>) -> bool {
    while cursor.eat(b'[') {}
    cursor.peek() == Some(b'"')
}
