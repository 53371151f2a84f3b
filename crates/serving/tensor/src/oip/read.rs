//! Parses requests of the Open Inference Protocol.

use std::borrow::Cow;
use std::fmt::Display;
use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;

use super::fields::{read_binary_data, read_binary_size, read_datatype, reshape};
use crate::check::{InputSlots, check_dtype, check_limits, check_one, output_index};
use crate::json::{Cursor, SeenKeys};
use crate::suggestion::truncated;
use crate::{
    DType, InferenceRequest, RequestError, RequestLimits, RequestedOutput, Signature, Tensor, TensorSpec,
    elements,
};

/// Parses a request. `header_length` is the length of the JSON head, if given; binary tensors are not copied. Unknown
/// keys and parameters are ignored, because clients of other servers send them; those that would change the response
/// are rejected.
pub fn read(
    body: &Bytes,
    header_length: Option<usize>,
    signature: &Signature,
    limits: &RequestLimits,
) -> Result<InferenceRequest, RequestError> {
    limits.check_body(body)?;
    let length = header_length.unwrap_or(body.len());
    let head = body.get(..length).ok_or_else(|| {
        RequestError::Mismatch(format!(
            "the header claims a JSON length of {length} bytes, but the body has {}",
            body.len()
        ))
    })?;
    let mut request = RequestParser {
        signature,
        limits,
        blobs: header_length.map(|_| body.slice(length..)),
        slots: InputSlots::new(signature),
        outputs: Vec::new(),
        binary_outputs: false,
        priority: 0,
        timeout: None,
    };
    let mut id = None;
    let mut keys = SeenKeys::default();
    let mut cursor = Cursor::new(head);
    cursor.object(&"", |cursor, key| {
        match keys.once(&["id", "inputs", "outputs", "parameters"], &key, cursor, &"")? {
            Some("inputs") => cursor
                .array(&"inputs", |cursor, index| request.input(cursor, &format_args!("inputs[{index}]"))),
            Some(_) if cursor.null() => Ok(()),
            Some("id") => {
                id = Some(cursor.string(&"id")?.into_owned());
                Ok(())
            }
            Some("outputs") => cursor
                .array(&"outputs", |cursor, index| request.output(cursor, &format_args!("outputs[{index}]"))),
            Some(_) => request.parameters(cursor),
            None => cursor.skip(&truncated(&key)),
        }
    })?;
    cursor.end()?;
    request.finish(id)
}

struct RequestParser<'a> {
    signature: &'a Signature,
    limits: &'a RequestLimits,
    /// The bytes after the head that no tensor has taken yet.
    blobs: Option<Bytes>,
    slots: InputSlots<'a>,
    /// Requested outputs, and whether they are binary, if given.
    outputs: Vec<(usize, Option<bool>)>,
    binary_outputs: bool,
    priority: u32,
    timeout: Option<Duration>,
}

/// The fields of one input, in any order.
#[derive(Default)]
struct InputFields<'a> {
    index: Option<usize>,
    spec: Option<&'a TensorSpec>,
    typed: bool,
    shape: Option<Vec<usize>>,
    data: Option<InputData>,
    binary: Option<usize>,
}

enum InputData {
    /// Parsed already.
    Tensor(Tensor),
    /// Skipped, because its type was not known yet.
    At(Range<usize>),
}

impl<'a> RequestParser<'a> {
    fn input<'text>(&mut self, cursor: &mut Cursor<'text>, path: &dyn Display) -> Result<(), RequestError> {
        let mut input = InputFields::default();
        let mut datatype: Option<DType> = None;
        let mut keys = SeenKeys::default();
        cursor.object(&path, |cursor, key: Cow<'text, str>| {
            match keys.once(&["name", "shape", "datatype", "data", "parameters"], &key, cursor, &path)? {
                Some("name") => {
                    let index = self.slots.index(&cursor.string(&format_args!("{path}.name"))?)?;
                    (input.index, input.spec) = (Some(index), self.signature.inputs.get(index));
                }
                Some("shape") => input.shape = Some(self.shape(cursor, path)?),
                Some("datatype") => datatype = Some(read_datatype(cursor, path)?),
                Some("data") => match input.spec.filter(|_| input.typed) {
                    Some(spec) => {
                        let likely = input.shape.as_deref().and_then(elements).unwrap_or(0);
                        input.data = Some(InputData::Tensor(self.data(cursor, spec, likely, path)?));
                    }
                    None => input.data = Some(InputData::At(cursor.span(&format_args!("{path}.data"))?)),
                },
                Some(_) if cursor.null() => {}
                Some(_) => input.binary = read_binary_size(cursor, path)?,
                None => cursor.skip(&path)?,
            }
            if let (Some(spec), Some(dtype), false) = (input.spec, datatype, input.typed) {
                check_dtype(dtype, spec, &format_args!("{path} (`{}`)", spec.name))?;
                input.typed = true;
            }
            Ok(())
        })?;
        self.finish_input(cursor, input, path)
    }

    fn finish_input(
        &mut self,
        cursor: &Cursor<'_>,
        input: InputFields<'a>,
        path: &dyn Display,
    ) -> Result<(), RequestError> {
        let missing = |key: &str| RequestError::Mismatch(format!("{path}: `{key}` is missing"));
        let (index, spec) = input.index.zip(input.spec).ok_or_else(|| missing("name"))?;
        if !input.typed {
            return Err(missing("datatype"));
        }
        let shape = input.shape.ok_or_else(|| missing("shape"))?;
        let tensor = match (input.data, input.binary) {
            (Some(_), Some(_)) => {
                return Err(RequestError::Mismatch(format!("{path}: both `data` and `binary_data_size`")));
            }
            (None, None) => return Err(missing("data")),
            (None, Some(size)) => Tensor::new(spec.dtype, shape, self.blob(size, path)?)
                .map_err(|error| RequestError::Mismatch(format!("{path}: {error}")))?,
            (Some(InputData::Tensor(tensor)), None) => reshape(tensor, shape, path)?,
            (Some(InputData::At(range)), None) => {
                let likely = elements(&shape).unwrap_or(0);
                reshape(self.data(&mut cursor.part(range), spec, likely, path)?, shape, path)?
            }
        };
        check_one(&tensor, spec, &format_args!("{path} (`{}`)", spec.name))?;
        self.slots.fill(index, tensor);
        Ok(())
    }

    fn data(
        &self,
        cursor: &mut Cursor<'_>,
        spec: &TensorSpec,
        likely: usize,
        path: &dyn Display,
    ) -> Result<Tensor, RequestError> {
        cursor.tensor(spec.dtype, likely, self.limits, &format_args!("{path}.data"))
    }

    fn shape(&self, cursor: &mut Cursor<'_>, path: &dyn Display) -> Result<Vec<usize>, RequestError> {
        let mut shape = Vec::new();
        let path = format_args!("{path}.shape");
        cursor.array(&path, |cursor, index| {
            let size = cursor.natural(&format_args!("{path}[{index}]"))?;
            shape.push(usize::try_from(size).unwrap_or(usize::MAX));
            if shape.len() > self.limits.rank {
                return check_limits(&shape, self.limits, &path);
            }
            Ok(())
        })?;
        check_limits(&shape, self.limits, &path)?;
        Ok(shape)
    }

    /// The next bytes after the head.
    fn blob(&mut self, size: usize, path: &dyn Display) -> Result<Bytes, RequestError> {
        let mismatch = |message: String| Err(RequestError::Mismatch(format!("{path}: {message}")));
        match &mut self.blobs {
            None => mismatch(format!("a binary tensor needs the header {}", super::HEADER_LENGTH)),
            Some(blobs) if size > blobs.len() => {
                mismatch(format!("{size} bytes of binary data, but the body has {} left", blobs.len()))
            }
            Some(blobs) => Ok(blobs.split_to(size)),
        }
    }

    fn output(&mut self, cursor: &mut Cursor<'_>, path: &dyn Display) -> Result<(), RequestError> {
        let (mut index, mut binary) = (None, None);
        let mut keys = SeenKeys::default();
        cursor.object(&path, |cursor, key| {
            match keys.once(&["name", "parameters"], &key, cursor, &path)? {
                Some("name") => {
                    let name = cursor.string(&format_args!("{path}.name"))?;
                    index = Some(output_index(&name, self.signature)?);
                }
                Some(_) if cursor.null() => {}
                Some(_) => binary = read_binary_data(cursor, path)?,
                None => cursor.skip(&path)?,
            }
            Ok(())
        })?;
        let index = index.ok_or_else(|| RequestError::Mismatch(format!("{path}: `name` is missing")))?;
        if self.outputs.iter().any(|(other, _)| *other == index) {
            return Err(RequestError::Mismatch(format!("{path}: the output is requested twice")));
        }
        self.outputs.push((index, binary));
        Ok(())
    }

    fn parameters(&mut self, cursor: &mut Cursor<'_>) -> Result<(), RequestError> {
        cursor.object(&"parameters", |cursor, key| {
            match key.as_ref() {
                "binary_data_output" => {
                    self.binary_outputs = cursor.boolean(&"parameters.binary_data_output")?;
                }
                "priority" => {
                    let priority = cursor.natural(&"parameters.priority")?;
                    self.priority = u32::try_from(priority).unwrap_or(u32::MAX);
                }
                // Zero is the server's default, which is none.
                "timeout" => {
                    let time = cursor.natural(&"parameters.timeout")?;
                    self.timeout = (time > 0).then(|| Duration::from_micros(time));
                }
                _ => cursor.skip(&format_args!("parameters.{}", truncated(&key)))?,
            }
            Ok(())
        })
    }

    fn finish(self, id: Option<String>) -> Result<InferenceRequest, RequestError> {
        if let Some(left) = self.blobs.map(|blobs| blobs.len()).filter(|left| *left > 0) {
            return Err(RequestError::Mismatch(format!(
                "{left} bytes are left after the last binary tensor"
            )));
        }
        let outputs = self.outputs.iter().map(|(index, binary)| RequestedOutput {
            index: *index,
            binary: binary.unwrap_or(self.binary_outputs),
        });
        Ok(InferenceRequest {
            id,
            outputs: outputs.collect(),
            binary_outputs: self.binary_outputs,
            priority: self.priority,
            timeout: self.timeout,
            ..InferenceRequest::new(self.slots.finish()?, self.signature)?
        })
    }
}
