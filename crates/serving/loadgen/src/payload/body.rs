//! Encodes a body for each protocol.

use cudock_base::Rng;
use cudock_tensor::{DType, Tensor, npy};
use serde_json::json;

use super::element::Element;
use super::input::ModelInput;
use super::protocol::BenchProtocol;
use crate::LoadError;

const MAX_ELEMENTS: usize = 256 << 20;
/// Maximum number of dimensions of a numpy array.
const MAX_NPY_RANK: usize = 64;

/// A body, and where its JSON ends if binary tensors follow.
pub(super) struct Body {
    pub(super) bytes: Vec<u8>,
    pub(super) json_length: Option<usize>,
}

struct Drawn<'a> {
    input: &'a ModelInput,
    shape: Vec<usize>,
    elements: Vec<Element>,
}

/// Generates a body with `rows` rows.
pub(super) fn make(
    protocol: BenchProtocol,
    inputs: &[ModelInput],
    rows: usize,
    rng: &mut Rng,
) -> Result<Body, LoadError> {
    let drawn = inputs.iter().map(|input| draw(input, rows, rng)).collect::<Result<Vec<_>, _>>()?;
    let single = || match drawn.as_slice() {
        [one] => Ok(one),
        _ => Err(LoadError::Payload(format!(
            "the model has {} inputs, but bodies of this kind have one",
            drawn.len()
        ))),
    };
    let plain = |bytes| Body { bytes, json_length: None };
    Ok(match protocol {
        BenchProtocol::Predict => plain(predict(&drawn).into_bytes()),
        BenchProtocol::Oip => plain(oip(&drawn).into_bytes()),
        BenchProtocol::OipBinary => oip_binary(&drawn),
        BenchProtocol::Raw => plain(binary(single()?)),
        BenchProtocol::Npy => plain(npy(single()?)?),
    })
}

fn draw<'a>(input: &'a ModelInput, rows: usize, rng: &mut Rng) -> Result<Drawn<'a>, LoadError> {
    let shape = input.with_rows(rows);
    let count = cudock_tensor::elements(&shape).filter(|count| *count <= MAX_ELEMENTS).ok_or_else(|| {
        LoadError::Payload(format!("a body of shape {shape:?} for `{}` is too large", input.name))
    })?;
    let elements = (0..count).map(|_| Element::draw(input.dtype, rng)).collect();
    Ok(Drawn { input, shape, elements })
}

fn predict(drawn: &[Drawn<'_>]) -> String {
    let mut out = String::from("{\"input\": ");
    if let [one] = drawn {
        nested(&one.shape, &mut one.elements.iter(), &mut out);
    } else {
        for (number, one) in drawn.iter().enumerate() {
            out.push_str(if number == 0 { "{" } else { ", " });
            out.push_str(&json!(one.input.name).to_string());
            out.push_str(": ");
            nested(&one.shape, &mut one.elements.iter(), &mut out);
        }
        out.push('}');
    }
    out.push('}');
    out
}

fn nested<'e>(shape: &[usize], elements: &mut impl Iterator<Item = &'e Element>, out: &mut String) {
    let Some((size, inner)) = shape.split_first() else {
        if let Some(element) = elements.next() {
            element.write_json(out);
        }
        return;
    };
    out.push('[');
    for number in 0..*size {
        if number > 0 {
            out.push_str(", ");
        }
        nested(inner, elements, out);
    }
    out.push(']');
}

fn oip(drawn: &[Drawn<'_>]) -> String {
    let mut out = String::from("{\"inputs\": [");
    for (number, one) in drawn.iter().enumerate() {
        if number > 0 {
            out.push_str(", ");
        }
        let head = json!({
            "name": one.input.name,
            "shape": one.shape,
            "datatype": one.input.dtype.protocol_name(),
        })
        .to_string();
        out.push_str(head.trim_end_matches('}'));
        out.push_str(", \"data\": ");
        nested(&[one.elements.len()], &mut one.elements.iter(), &mut out);
        out.push('}');
    }
    out.push_str("]}");
    out
}

fn oip_binary(drawn: &[Drawn<'_>]) -> Body {
    let parts: Vec<Vec<u8>> = drawn.iter().map(binary).collect();
    let inputs: Vec<_> = drawn
        .iter()
        .zip(&parts)
        .map(|(one, part)| {
            json!({
                "name": one.input.name,
                "shape": one.shape,
                "datatype": one.input.dtype.protocol_name(),
                "parameters": {"binary_data_size": part.len()},
            })
        })
        .collect();
    let mut bytes =
        json!({"inputs": inputs, "parameters": {"binary_data_output": true}}).to_string().into_bytes();
    let json_length = Some(bytes.len());
    bytes.extend(parts.concat());
    Body { bytes, json_length }
}

fn binary(drawn: &Drawn<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(drawn.elements.len() * drawn.input.dtype.size().unwrap_or(12));
    for element in &drawn.elements {
        element.write_binary(drawn.input.dtype, &mut out);
    }
    out
}

fn npy(drawn: &Drawn<'_>) -> Result<Vec<u8>, LoadError> {
    let dtype = drawn.input.dtype;
    // A file of bfloat16 would hold float32.
    if matches!(dtype, DType::BF16 | DType::String) {
        return Err(LoadError::Payload(format!("npy bodies do not support {dtype}")));
    }
    if drawn.shape.len() > MAX_NPY_RANK {
        return Err(LoadError::Payload("the shape has too many dimensions for npy".to_owned()));
    }
    let tensor = Tensor::new(dtype, drawn.shape.clone(), binary(drawn).into())
        .map_err(|error| LoadError::Payload(error.to_string()))?;
    let mut bytes = Vec::new();
    npy::write_tensor(&tensor, &mut bytes);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::InputShape;
    use super::*;

    fn input(name: &str, dtype: DType, row: &[usize]) -> ModelInput {
        ModelInput { name: name.to_owned(), dtype, shape: InputShape::Rows(row.to_vec()) }
    }

    fn body(protocol: BenchProtocol, inputs: &[ModelInput], rows: usize) -> Body {
        make(protocol, inputs, rows, &mut Rng::new(1)).unwrap()
    }

    #[test]
    fn predict_has_nested_rows_and_names_only_where_there_are_several() {
        let inputs = [input("a", DType::F32, &[2, 3]), input("b", DType::String, &[])];
        let one: Value =
            serde_json::from_slice(&body(BenchProtocol::Predict, &inputs[..1], 4).bytes).unwrap();
        assert_eq!(one["input"].as_array().unwrap().len(), 4);
        assert_eq!(one["input"][3][1].as_array().unwrap().len(), 3);
        let two: Value = serde_json::from_slice(&body(BenchProtocol::Predict, &inputs, 2).bytes).unwrap();
        assert!(two["input"]["a"][1][1][2].is_f64());
        assert!(two["input"]["b"][1].is_string());
    }

    #[test]
    fn the_protocols_hold_the_same_numbers() {
        let inputs = [input("x", DType::F32, &[5])];
        let json: Value = serde_json::from_slice(&body(BenchProtocol::Oip, &inputs, 3).bytes).unwrap();
        assert_eq!(json["inputs"][0]["shape"], json!([3, 5]));
        assert_eq!(json["inputs"][0]["datatype"], "FP32");
        #[allow(clippy::cast_possible_truncation, reason = "they are of that type")]
        let numbers: Vec<f32> = json["inputs"][0]["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|n| n.as_f64().unwrap() as f32)
            .collect();
        let raw = body(BenchProtocol::Raw, &inputs, 3).bytes;
        let floats: Vec<f32> = raw.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        assert_eq!(numbers, floats);
        let npy = body(BenchProtocol::Npy, &inputs, 3).bytes;
        assert_eq!(npy[npy.len() - raw.len()..], raw);
        assert_eq!((npy.len() - raw.len()) % 64, 0);
        assert!(npy.windows(10).any(|part| part == b"'shape': ("), "a shape");
        let binary = body(BenchProtocol::OipBinary, &inputs, 3);
        let split = binary.json_length.unwrap();
        let head: Value = serde_json::from_slice(&binary.bytes[..split]).unwrap();
        assert_eq!(head["inputs"][0]["parameters"]["binary_data_size"], raw.len());
        assert_eq!(binary.bytes[split..], raw);
    }

    #[test]
    fn unsupported_bodies_are_errors() {
        let two = [input("a", DType::F32, &[1]), input("b", DType::F32, &[1])];
        let fault = |protocol, inputs: &[ModelInput]| {
            make(protocol, inputs, 1, &mut Rng::new(1)).err().map(|error| error.to_string()).unwrap()
        };
        let (bfloat, large) = (input("a", DType::BF16, &[1]), input("a", DType::F32, &[1 << 40, 1 << 40]));
        let several = "the model has 2 inputs, but bodies of this kind have one";
        assert_eq!(fault(BenchProtocol::Raw, &two), several);
        assert_eq!(fault(BenchProtocol::Npy, &[bfloat]), "npy bodies do not support BF16");
        assert!(fault(BenchProtocol::Predict, &[large]).contains("too large"));
    }
}
