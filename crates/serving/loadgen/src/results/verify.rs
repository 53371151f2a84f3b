//! Compares responses with the expected ones.
//!
//! A batched run may round differently than a single one, so numbers are compared with a tolerance; what is around them
//! (names, ids, times) may differ. A response that belongs to another request has other numbers.

use cudock_tensor::DType;
use serde_json::Value;

use crate::HttpResponse;

/// How responses are compared if their bytes differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    /// JSON: numbers, strings and booleans inside arrays.
    Json,
    /// Elements of that type behind the JSON or npy head.
    Binary(DType),
    /// Byte for byte.
    Exact,
}

/// The response to a request that was sent alone.
#[derive(Clone, Debug)]
pub struct Expected {
    response: HttpResponse,
    comparison: Comparison,
}

impl Expected {
    /// Creates an expected response. `elements` is the element type of binary responses, if known.
    pub fn new(response: HttpResponse, elements: Option<DType>) -> Self {
        let json = serde_json::from_slice::<serde::de::IgnoredAny>(&response.body).is_ok();
        let comparison = match elements {
            _ if json => Comparison::Json,
            Some(dtype) => Comparison::Binary(dtype),
            None => Comparison::Exact,
        };
        Self { response, comparison }
    }

    pub fn agrees(&self, body: &[u8], json_length: Option<usize>) -> bool {
        let expected = self.response.body.as_slice();
        if expected == body {
            return true;
        }
        match self.comparison {
            Comparison::Exact => false,
            Comparison::Json => json_agrees(expected, body),
            Comparison::Binary(dtype) => {
                // Heads hold shapes and names, but also ids.
                let one = elements_of(expected, self.response.json_length);
                let other = elements_of(body, json_length);
                one.len() == other.len() && elements_agree(dtype, one, other)
            }
        }
    }
}

/// Whether two numbers are equal except for rounding.
fn near(one: f64, other: f64, room: f64) -> bool {
    let distance = (one - other).abs();
    // Values that are not finite must be equal.
    one.total_cmp(&other).is_eq()
        || (one.is_nan() && other.is_nan())
        || (distance.is_finite() && distance <= room * one.abs().max(other.abs()).max(1e-2))
}

/// Tolerance for engines that sum in another order.
const ROOM: f64 = 1e-3;
/// Tolerance for elements of eight to eleven bits.
const COARSE_ROOM: f64 = 3e-2;

fn json_agrees(one: &[u8], other: &[u8]) -> bool {
    match (serde_json::from_slice(one), serde_json::from_slice(other)) {
        (Ok(one), Ok(other)) => same(&one, &other, false),
        _ => false,
    }
}

/// Compares what is inside arrays; fields of objects count only if they lead to arrays.
fn same(one: &Value, other: &Value, inside: bool) -> bool {
    match (one, other) {
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other, true))
        }
        // Objects inside an array (the outputs of the Open Inference Protocol) have fields of their own that may
        // differ.
        (Value::Object(one), Value::Object(other)) => one.iter().all(|(name, one)| match other.get(name) {
            Some(other) => same(one, other, false),
            None => !one.is_array(),
        }),
        (Value::Number(one), Value::Number(other)) if inside => match (one.as_f64(), other.as_f64()) {
            (Some(one), Some(other)) => near(one, other, ROOM),
            _ => one == other,
        },
        (one, other) if inside => one == other,
        _ => one.is_array() == other.is_array() && one.is_object() == other.is_object(),
    }
}

/// The elements of a binary response, behind its head: JSON of a stated length, or npy's.
fn elements_of(body: &[u8], json_length: Option<usize>) -> &[u8] {
    let npy = || {
        let rest = body.strip_prefix(b"\x93NUMPY")?;
        match rest {
            [1, _, low, high, ..] => Some(10 + usize::from(u16::from_le_bytes([*low, *high]))),
            [_, _, a, b, c, d, ..] => {
                Some(12_usize.saturating_add(u32::from_le_bytes([*a, *b, *c, *d]) as usize))
            }
            _ => None,
        }
    };
    body.get(json_length.or_else(npy).unwrap_or(0)..).unwrap_or_default()
}

fn elements_agree(dtype: DType, one: &[u8], other: &[u8]) -> bool {
    fn all<const N: usize>(one: &[u8], other: &[u8], number: impl Fn([u8; N]) -> f64, room: f64) -> bool {
        let (one, one_rest) = one.as_chunks::<N>();
        let (other, other_rest) = other.as_chunks::<N>();
        // Sums in another order differ by a share of what was summed, which a small result does not show.
        let largest =
            one.iter().map(|bytes| number(*bytes).abs()).filter(|size| size.is_finite()).fold(0.0, f64::max);
        one_rest == other_rest
            && one.iter().zip(other).all(|(one, other)| {
                let (one, other) = (number(*one), number(*other));
                near(one, other, room) || (one - other).abs() <= room * largest
            })
    }
    match dtype {
        DType::F32 => all(one, other, |bytes| f64::from(f32::from_le_bytes(bytes)), ROOM),
        DType::F64 => all(one, other, f64::from_le_bytes, ROOM),
        DType::F16 => all(one, other, |bytes| half::f16::from_le_bytes(bytes).to_f64(), COARSE_ROOM),
        DType::BF16 => all(one, other, |bytes| half::bf16::from_le_bytes(bytes).to_f64(), COARSE_ROOM),
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agrees(elements: Option<DType>, one: &[u8], other: &[u8]) -> bool {
        let response = HttpResponse { status: 200, body: one.to_vec(), json_length: None };
        Expected::new(response, elements).agrees(other, None)
    }

    fn json(one: &str, other: &str) -> bool {
        agrees(None, one.as_bytes(), other.as_bytes())
    }

    #[test]
    fn rounding_and_what_is_around_the_numbers_may_differ() {
        let one = r#"{"prediction": [[0.1, 2.0]], "device": "cpu", "ms": 1.5}"#;
        assert!(json(one, r#"{"prediction": [[0.10000001, 2.0]], "device": "cpu", "ms": 9.5}"#));
        let one = r#"{"id": "1", "outputs": [{"name": "y", "shape": [1, 2], "data": [1.0, 2.0]}]}"#;
        let other = r#"{"id": "2", "outputs": [{"name": "y", "shape": [1, 2], "data": [1.0, 2.00001]}]}"#;
        assert!(json(one, other));
    }

    #[test]
    fn other_numbers_are_noticed() {
        let one = r#"{"prediction": [[0.1, 2.0]]}"#;
        for other in [
            r#"{"prediction": [[0.2, 2.0]]}"#,
            r#"{"prediction": [[0.1]]}"#,
            r#"{"prediction": [[0.1, 2.0], [0.1, 2.0]]}"#,
            r#"{"prediction": null}"#,
            r#"{"outputs": [[0.1, 2.0]]}"#,
            "[]",
            "no JSON",
        ] {
            assert!(!json(one, other), "{other}");
        }
        assert!(!json(r#"{"outputs": [{"data": [1.0, 2.0]}]}"#, r#"{"outputs": [{"data": [1.0, 2.5]}]}"#));
    }

    #[test]
    fn what_is_not_finite_equals_only_itself() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        assert!(near(inf, inf, ROOM) && near(nan, nan, ROOM) && near(0.0, -0.0, ROOM));
        assert!(!near(inf, -inf, ROOM) && !near(inf, 1.0, ROOM) && !near(nan, 1.0, ROOM));
    }

    #[test]
    fn elements_are_compared_behind_an_npy_head() {
        let file = |value: f32, pad: &str| {
            let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
            bytes.extend(u16::try_from(pad.len()).unwrap_or(0).to_le_bytes());
            bytes.extend(pad.bytes());
            bytes.extend(value.to_le_bytes());
            bytes
        };
        let compare = |one: &[u8], other: &[u8]| agrees(Some(DType::F32), one, other);
        assert!(compare(&file(1.0, "{}"), &file(1.000_001, "{  }")));
        assert!(!compare(&file(1.0, "{}"), &file(1.1, "{}")));
        assert!(!compare(&file(1.0, "{}"), b"\x93NUMPY\x01"));
        assert!(!agrees(Some(DType::I32), &file(1.0, "{}"), &file(1.000_001, "{}")));
    }
}
