//! Requests of the Open Inference Protocol.

use std::borrow::Cow;
use std::fmt::Display;
use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;

use super::parts::{read_binary_data, read_binary_size, read_datatype, reshape};
use crate::check::{Slots, check, check_dtype, check_limits, check_one, output_index};
use crate::json::{Cursor, Keys};
use crate::unknown::shown;
use crate::{DType, Inference, Limits, Malformed, Signature, Tensor, TensorSpec, WantedOutput, elements};

/// Reads a request. `header_length` is the length of the JSON head, if the client told one; binary tensors share the
/// body's memory. Keys and parameters that mean nothing here are passed over, as clients of other servers send them;
/// those that would change the answer are refused.
pub fn read(
    body: &Bytes,
    header_length: Option<usize>,
    signature: &Signature,
    limits: &Limits,
) -> Result<Inference, Malformed> {
    if body.len() > limits.body {
        return Err(Malformed::body_too_large(limits));
    }
    let length = header_length.unwrap_or(body.len());
    let head = body.get(..length).ok_or_else(|| {
        Malformed::Unfit(format!("the head is said to have {length} bytes, but the body has {}", body.len()))
    })?;
    let mut request = Request {
        signature,
        limits,
        blobs: header_length.map(|_| body.slice(length..)),
        slots: Slots::new(signature),
        outputs: Vec::new(),
        binary_outputs: false,
        priority: 0,
        timeout: None,
    };
    let mut id = None;
    let mut keys = Keys::default();
    let mut cursor = Cursor::new(head);
    cursor.object(&"", |cursor, key| {
        match once(&mut keys, &["id", "inputs", "outputs", "parameters"], &key, cursor, &"")? {
            Some("inputs") => {
                cursor.array(&"inputs", |cursor, index| request.input(cursor, &format!("inputs[{index}]")))
            }
            Some(_) if cursor.null() => Ok(()),
            Some("id") => {
                id = Some(cursor.string(&"id")?.into_owned());
                Ok(())
            }
            Some("outputs") => {
                cursor.array(&"outputs", |cursor, index| request.output(cursor, &format!("outputs[{index}]")))
            }
            Some(_) => request.parameters(cursor),
            None => cursor.skip(&shown(&key)),
        }
    })?;
    cursor.end()?;
    request.finish(id)
}

/// The key among those known, which must not come twice.
fn once(
    keys: &mut Keys,
    known: &[&'static str],
    key: &str,
    cursor: &Cursor<'_>,
    place: &dyn Display,
) -> Result<Option<&'static str>, Malformed> {
    let known = known.iter().copied().find(|known| *known == key);
    if let Some(key) = known {
        keys.once(key, cursor, place)?;
    }
    Ok(known)
}

struct Request<'a> {
    signature: &'a Signature,
    limits: &'a Limits,
    /// The bytes after the head that no tensor has taken yet.
    blobs: Option<Bytes>,
    slots: Slots<'a>,
    /// Outputs asked for, and whether as binary, if that was said.
    outputs: Vec<(usize, Option<bool>)>,
    binary_outputs: bool,
    priority: u32,
    timeout: Option<Duration>,
}

/// The parts of one input, which may come in any order.
#[derive(Default)]
struct Input<'a> {
    index: Option<usize>,
    spec: Option<&'a TensorSpec>,
    typed: bool,
    shape: Option<Vec<usize>>,
    data: Option<Data>,
    binary: Option<usize>,
}

enum Data {
    /// Read already.
    Tensor(Tensor),
    /// Passed over, because what it is was not known yet.
    At(Range<usize>),
}

impl<'a> Request<'a> {
    fn input<'text>(&mut self, cursor: &mut Cursor<'text>, place: &str) -> Result<(), Malformed> {
        let mut input = Input::default();
        let mut datatype: Option<DType> = None;
        let mut keys = Keys::default();
        cursor.object(&place, |cursor, key: Cow<'text, str>| {
            match once(&mut keys, &["name", "shape", "datatype", "data", "parameters"], &key, cursor, &place)?
            {
                Some("name") => {
                    let index = self.slots.place(&cursor.string(&format_args!("{place}.name"))?)?;
                    (input.index, input.spec) = (Some(index), self.signature.inputs.get(index));
                }
                Some("shape") => input.shape = Some(self.shape(cursor, place)?),
                Some("datatype") => datatype = Some(read_datatype(cursor, place)?),
                Some("data") => match input.spec.filter(|_| input.typed) {
                    Some(spec) => {
                        let likely = input.shape.as_deref().and_then(elements).unwrap_or(0);
                        input.data = Some(Data::Tensor(self.data(cursor, spec, likely, place)?));
                    }
                    None => input.data = Some(Data::At(cursor.span(&format_args!("{place}.data"))?)),
                },
                Some(_) if cursor.null() => {}
                Some(_) => input.binary = read_binary_size(cursor, place)?,
                None => cursor.skip(&place)?,
            }
            if let (Some(spec), Some(dtype), false) = (input.spec, datatype, input.typed) {
                check_dtype(dtype, spec, &format!("{place} (`{}`)", spec.name))?;
                input.typed = true;
            }
            Ok(())
        })?;
        self.finish_input(cursor, input, place)
    }

    fn finish_input(&mut self, cursor: &Cursor<'_>, input: Input<'a>, place: &str) -> Result<(), Malformed> {
        let lacks = |key: &str| Malformed::Unfit(format!("{place}: `{key}` is missing"));
        let (index, spec) = input.index.zip(input.spec).ok_or_else(|| lacks("name"))?;
        if !input.typed {
            return Err(lacks("datatype"));
        }
        let shape = input.shape.ok_or_else(|| lacks("shape"))?;
        let tensor = match (input.data, input.binary) {
            (Some(_), Some(_)) => {
                return Err(Malformed::Unfit(format!("{place}: both `data` and `binary_data_size`")));
            }
            (None, None) => return Err(lacks("data")),
            (None, Some(size)) => {
                let blob = self.blob(size, place)?;
                Tensor::new(spec.dtype, shape, blob)
                    .map_err(|error| Malformed::Unfit(format!("{place}: {error}")))?
            }
            (Some(Data::Tensor(tensor)), None) => reshape(tensor, shape, place)?,
            (Some(Data::At(range)), None) => {
                let likely = elements(&shape).unwrap_or(0);
                reshape(self.data(&mut cursor.part(range), spec, likely, place)?, shape, place)?
            }
        };
        check_one(&tensor, spec, &format!("{place} (`{}`)", spec.name))?;
        self.slots.fill(index, tensor);
        Ok(())
    }

    fn data(
        &self,
        cursor: &mut Cursor<'_>,
        spec: &TensorSpec,
        likely: usize,
        place: &str,
    ) -> Result<Tensor, Malformed> {
        cursor.tensor(spec.dtype, likely, self.limits, &format_args!("{place}.data"))
    }

    fn shape(&self, cursor: &mut Cursor<'_>, place: &str) -> Result<Vec<usize>, Malformed> {
        let mut shape = Vec::new();
        let place = format!("{place}.shape");
        cursor.array(&place, |cursor, index| {
            let size = cursor.natural(&format_args!("{place}[{index}]"))?;
            shape.push(usize::try_from(size).unwrap_or(usize::MAX));
            if shape.len() > self.limits.rank {
                return check_limits(&shape, self.limits, &place);
            }
            Ok(())
        })?;
        check_limits(&shape, self.limits, &place)?;
        Ok(shape)
    }

    /// The next bytes after the head.
    fn blob(&mut self, size: usize, place: &str) -> Result<Bytes, Malformed> {
        let Some(blobs) = &mut self.blobs else {
            let problem = format!("{place}: a binary tensor needs the header {}", super::HEADER_LENGTH);
            return Err(Malformed::Unfit(problem));
        };
        if size > blobs.len() {
            let problem =
                format!("{place}: {size} bytes of binary data, but the body has {} left", blobs.len());
            return Err(Malformed::Unfit(problem));
        }
        Ok(blobs.split_to(size))
    }

    fn output(&mut self, cursor: &mut Cursor<'_>, place: &str) -> Result<(), Malformed> {
        let (mut index, mut binary) = (None, None);
        let mut keys = Keys::default();
        cursor.object(&place, |cursor, key| {
            match once(&mut keys, &["name", "parameters"], &key, cursor, &place)? {
                Some("name") => {
                    let name = cursor.string(&format_args!("{place}.name"))?;
                    index = Some(output_index(&name, self.signature)?);
                }
                Some(_) if cursor.null() => {}
                Some(_) => binary = read_binary_data(cursor, place)?,
                None => cursor.skip(&place)?,
            }
            Ok(())
        })?;
        let index = index.ok_or_else(|| Malformed::Unfit(format!("{place}: `name` is missing")))?;
        if self.outputs.iter().any(|(other, _)| *other == index) {
            return Err(Malformed::Unfit(format!("{place}: the output is asked for twice")));
        }
        self.outputs.push((index, binary));
        Ok(())
    }

    fn parameters(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Malformed> {
        cursor.object(&"parameters", |cursor, key| {
            let place = format!("parameters.{}", shown(&key));
            match key.as_ref() {
                "binary_data_output" => self.binary_outputs = cursor.boolean(&place)?,
                "priority" => self.priority = u32::try_from(cursor.natural(&place)?).unwrap_or(u32::MAX),
                // Zero is the server's own, which is none.
                "timeout" => {
                    self.timeout =
                        Some(cursor.natural(&place)?).filter(|time| *time > 0).map(Duration::from_micros);
                }
                _ => cursor.skip(&place)?,
            }
            Ok(())
        })
    }

    fn finish(self, id: Option<String>) -> Result<Inference, Malformed> {
        if let Some(left) = self.blobs.map(|blobs| blobs.len()).filter(|left| *left > 0) {
            return Err(Malformed::Unfit(format!("{left} bytes are left after the last binary tensor")));
        }
        let inputs = self.slots.finish()?;
        let rows = check(&inputs, self.signature)?;
        let outputs = self.outputs.iter().map(|(index, binary)| WantedOutput {
            index: *index,
            binary: binary.unwrap_or(self.binary_outputs),
        });
        Ok(Inference {
            id,
            inputs,
            rows,
            single: false,
            outputs: outputs.collect(),
            binary_outputs: self.binary_outputs,
            priority: self.priority,
            timeout: self.timeout,
        })
    }
}
