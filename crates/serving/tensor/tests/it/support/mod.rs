//! Signatures and tensors for tests.

use bytes::Bytes;
use cudock_tensor::json::Cursor;
use cudock_tensor::{DType, RequestError, RequestLimits, Signature, Tensor, TensorSpec};
use proptest::prelude::*;

pub(crate) fn spec(name: &str, dtype: DType, shape: &[Option<usize>]) -> TensorSpec {
    TensorSpec::new(name, dtype, shape)
}

/// A batched model of one input `x` and one output `y`.
pub(crate) fn one(dtype: DType, shape: &[Option<usize>]) -> Signature {
    Signature { inputs: vec![spec("x", dtype, shape)], outputs: vec![spec("y", dtype, shape)], batched: true }
}

/// A batched model of two inputs and two outputs: floats by two, and strings.
pub(crate) fn two() -> Signature {
    let specs = |first: &str, second: &str| {
        vec![spec(first, DType::F32, &[None, Some(2)]), spec(second, DType::String, &[None])]
    };
    Signature { inputs: specs("a", "words"), outputs: specs("score", "label"), batched: true }
}

pub(crate) fn f32s(shape: &[usize], values: &[f32]) -> Tensor {
    let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    Tensor::new(DType::F32, shape.to_vec(), Bytes::from(data)).unwrap()
}

pub(crate) fn strings(shape: &[usize], values: &[&[u8]]) -> Tensor {
    let mut data = Vec::new();
    for value in values {
        data.extend_from_slice(&u32::try_from(value.len()).unwrap().to_le_bytes());
        data.extend_from_slice(value);
    }
    Tensor::new(DType::String, shape.to_vec(), Bytes::from(data)).unwrap()
}

/// Reads one value of JSON text and makes sure nothing follows.
pub(crate) fn read(text: &str, dtype: DType) -> Result<Tensor, RequestError> {
    let mut cursor = Cursor::new(text.as_bytes());
    let tensor = cursor.tensor(dtype, 4, &RequestLimits::default(), &"input")?;
    cursor.end()?;
    Ok(tensor)
}

pub(crate) fn dtypes() -> impl Strategy<Value = DType> {
    proptest::sample::select(DType::ALL.to_vec())
}

/// Tensors of a type and number of dimensions, with nothing in them that JSON cannot hold.
pub(crate) fn tensors(dtype: DType, shape: Vec<usize>) -> BoxedStrategy<Tensor> {
    let elements: usize = shape.iter().product();
    if dtype == DType::String {
        return proptest::collection::vec(any::<String>(), elements)
            .prop_map(move |values| {
                let values: Vec<&[u8]> = values.iter().map(String::as_bytes).collect();
                strings(&shape, &values)
            })
            .boxed();
    }
    let size = dtype.size().unwrap();
    proptest::collection::vec(any::<u8>(), elements * size)
        .prop_map(move |mut data| {
            for element in data.chunks_mut(size) {
                make_finite(element, dtype);
            }
            Tensor::new(dtype, shape.clone(), Bytes::from(data)).unwrap()
        })
        .boxed()
}

/// Clears a bit of the exponent if all are set.
fn make_finite(element: &mut [u8], dtype: DType) {
    let last = element.len() - 1;
    match dtype {
        DType::Bool => element[0] &= 1,
        DType::F16 => element[last] &= 0xbf,
        DType::BF16 | DType::F32 | DType::F64 if element[last] & 0x7f == 0x7f => element[last] ^= 1,
        _ => {}
    }
}
