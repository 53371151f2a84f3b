//! `{"input": …}` and its answer `{"prediction": …, "device": …}`: what people write by hand.
//!
//! Beside the input there may be `"id"`, `"outputs": ["name", …]` and
//! `"parameters": {"priority": 1, "timeout_ms": 250}`. A key that is none of these is refused rather than ignored: it
//! is a slip, and its author would wonder why it does nothing.

use std::time::Duration;

use crate::check::{Slots, as_rows, check, output_index, row_elements};
use crate::json::{Cursor, Keys, write as text};
use crate::unknown::{alternatives, shown};
use crate::{Answer, Inference, Limits, Malformed, Signature, Tensor, Unwritable, WantedOutput};

const KEYS: [&str; 6] = ["input", "inputs", "instances", "outputs", "parameters", "id"];
const PARAMETERS: [&str; 2] = ["priority", "timeout_ms"];

/// Reads a request. The input is one row or an array of rows; several inputs are an object by name.
pub fn read(body: &[u8], signature: &Signature, limits: &Limits) -> Result<Inference, Malformed> {
    if body.len() > limits.body {
        return Err(Malformed::body_too_large(limits));
    }
    let mut given: Option<(Vec<Tensor>, bool)> = None;
    let (mut id, mut outputs, mut parameters) = (None, Vec::new(), Parameters::default());
    let mut keys = Keys::default();
    let mut cursor = Cursor::new(body);
    cursor.object(&"", |cursor, key| {
        let Some(known) = KEYS.into_iter().find(|known| *known == key) else {
            return Err(
                cursor.wrong(&"", format!("unknown key `{}`{}", shown(&key), alternatives(&key, KEYS)))
            );
        };
        keys.once(known, cursor, &"")?;
        match known {
            "id" => id = Some(cursor.string(&known)?.into_owned()),
            "outputs" => outputs = read_outputs(cursor, signature)?,
            "parameters" => parameters = Parameters::read(cursor)?,
            _ if given.is_some() => return Err(cursor.wrong(&known, "the input is given twice")),
            _ => given = Some(read_inputs(cursor, known, signature, limits)?),
        }
        Ok(())
    })?;
    cursor.end()?;
    let (inputs, single) = given.ok_or_else(|| Malformed::Unfit("`input` is missing".to_owned()))?;
    let rows = check(&inputs, signature)?;
    let Parameters { priority, timeout } = parameters;
    Ok(Inference { id, inputs, rows, single, outputs, binary_outputs: false, priority, timeout })
}

/// The tensors, and whether they are one row without the dimension that counts rows.
fn read_inputs(
    cursor: &mut Cursor<'_>,
    key: &'static str,
    signature: &Signature,
    limits: &Limits,
) -> Result<(Vec<Tensor>, bool), Malformed> {
    if cursor.peek() != Some(b'{') {
        let [spec] = signature.inputs.as_slice() else {
            let names: Vec<String> = signature.inputs.iter().map(|spec| format!("`{}`", spec.name)).collect();
            let problem =
                format!("the model has the inputs {}: give an object with each by name", names.join(", "));
            return Err(cursor.wrong(&key, problem));
        };
        let tensor = cursor.tensor(spec.dtype, row_elements(spec), limits, &key)?;
        let (tensor, single) = as_rows(tensor, spec, signature, key)?;
        return Ok((vec![tensor], single));
    }
    let mut slots = Slots::new(signature);
    let mut first: Option<(String, bool)> = None;
    cursor.object(&key, |cursor, name| {
        let index = slots.place(&name)?;
        let Some(spec) = signature.inputs.get(index) else { return Ok(()) };
        let place = format!("{key}.{name}");
        let tensor = cursor.tensor(spec.dtype, row_elements(spec), limits, &place)?;
        let (tensor, single) = as_rows(tensor, spec, signature, &place)?;
        slots.fill(index, tensor);
        match &first {
            None => first = Some((place, single)),
            Some((before, other)) if *other != single => {
                let (one, many) = if single { (&place, before) } else { (before, &place) };
                let problem = format!("{one} is one row and {many} an array of rows; give both alike");
                return Err(Malformed::Unfit(problem));
            }
            Some(_) => {}
        }
        Ok(())
    })?;
    Ok((slots.finish()?, first.is_some_and(|(_, single)| single)))
}

fn read_outputs(cursor: &mut Cursor<'_>, signature: &Signature) -> Result<Vec<WantedOutput>, Malformed> {
    let mut outputs: Vec<WantedOutput> = Vec::new();
    cursor.array(&"outputs", |cursor, index| {
        let name = cursor.string(&format_args!("outputs[{index}]"))?;
        let index = output_index(&name, signature)?;
        if outputs.iter().any(|wanted| wanted.index == index) {
            return Err(Malformed::Unfit(format!("output `{name}` is asked for twice")));
        }
        outputs.push(WantedOutput { index, binary: false });
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
    fn read(cursor: &mut Cursor<'_>) -> Result<Self, Malformed> {
        let mut parameters = Self::default();
        let mut keys = Keys::default();
        cursor.object(&"parameters", |cursor, key| {
            let Some(known) = PARAMETERS.into_iter().find(|known| *known == key) else {
                let others = alternatives(&key, PARAMETERS);
                return Err(cursor.wrong(&"parameters", format!("unknown key `{}`{others}", shown(&key))));
            };
            keys.once(known, cursor, &"parameters")?;
            let place = format_args!("parameters.{known}");
            if known == "priority" {
                let priority = cursor.natural(&place)?;
                parameters.priority = u32::try_from(priority).unwrap_or(u32::MAX);
                return Ok(());
            }
            let milliseconds = cursor.number(&place)?;
            let timeout = Duration::try_from_secs_f64(milliseconds / 1e3).ok().filter(|time| !time.is_zero());
            parameters.timeout =
                Some(timeout.ok_or_else(|| cursor.wrong(&place, "expected a time in milliseconds above 0"))?);
            Ok(())
        })?;
        Ok(parameters)
    }
}

/// Appends the answer: the outputs in `wanted`, or all if it is empty. One output is an array, several are an object
/// by name. `single` leaves out the dimension that counts rows. NaN and infinities, which JSON lacks, become null.
/// Nothing is appended if it fails.
pub fn write(
    answer: &Answer,
    signature: &Signature,
    single: bool,
    wanted: &[WantedOutput],
    device: &str,
    out: &mut Vec<u8>,
) -> Result<(), Unwritable> {
    let start = out.len();
    let outcome = write_prediction(answer, signature, single, wanted, out);
    if outcome.is_err() {
        out.truncate(start);
        return outcome;
    }
    out.extend_from_slice(b",\"device\":");
    text::string(device, out);
    out.push(b'}');
    Ok(())
}

/// Adds the client's name for the request to an answer that [`write()`] made.
pub fn add_id(id: &str, out: &mut Vec<u8>) {
    if out.pop_if(|last| *last == b'}').is_some() {
        out.extend_from_slice(b",\"id\":");
        text::string(id, out);
        out.push(b'}');
    }
}

fn write_prediction(
    answer: &Answer,
    signature: &Signature,
    single: bool,
    wanted: &[WantedOutput],
    out: &mut Vec<u8>,
) -> Result<(), Unwritable> {
    out.extend_from_slice(b"{\"prediction\":");
    let outputs: Vec<(&str, &Tensor)> = answer.wanted(wanted, signature)?;
    let named = outputs.len() != 1;
    for (index, (name, tensor)) in outputs.into_iter().enumerate() {
        if named {
            out.push(if index == 0 { b'{' } else { b',' });
            text::string(name, out);
            out.push(b':');
        }
        let shape = tensor.shape();
        let shape = if single { shape.strip_prefix(&[1]).unwrap_or(shape) } else { shape };
        text::nested(tensor, shape, out).map_err(|problem| Unwritable::not_text(name, problem))?;
    }
    if named {
        out.push(b'}');
    }
    Ok(())
}
