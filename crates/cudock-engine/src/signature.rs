//! What a model takes and gives, as its session tells.

use cudock_tensor::{DType, Signature, TensorSpec};
use ort::value::{Outlet, TensorElementType, ValueType};

/// The signature of a model with those inputs and outputs, or which of them cannot be served and why.
pub(crate) fn signature(inputs: &[Outlet], outputs: &[Outlet]) -> Result<Signature, String> {
    let inputs: Vec<_> = inputs.iter().map(|outlet| spec("input", outlet)).collect::<Result<_, _>>()?;
    let outputs: Vec<_> = outputs.iter().map(|outlet| spec("output", outlet)).collect::<Result<_, _>>()?;
    let counts_rows = |spec: &TensorSpec| spec.shape.first() == Some(&None);
    let batched = !inputs.is_empty() && inputs.iter().chain(&outputs).all(counts_rows);
    Ok(Signature { inputs, outputs, batched })
}

fn spec(what: &str, outlet: &Outlet) -> Result<TensorSpec, String> {
    let name = outlet.name();
    let ValueType::Tensor { ty, shape, .. } = outlet.dtype() else {
        return Err(format!("{what} {name:?} is no tensor but {}", outlet.dtype()));
    };
    let dtype = dtype(*ty)
        .ok_or_else(|| format!("{what} {name:?} has elements of type {ty}, which cannot be served"))?;
    let shape = shape.iter().map(|&size| usize::try_from(size).ok()).collect();
    Ok(TensorSpec { name: name.to_owned(), dtype, shape })
}

fn dtype(element: TensorElementType) -> Option<DType> {
    Some(match element {
        TensorElementType::Bool => DType::Bool,
        TensorElementType::Uint8 => DType::U8,
        TensorElementType::Uint16 => DType::U16,
        TensorElementType::Uint32 => DType::U32,
        TensorElementType::Uint64 => DType::U64,
        TensorElementType::Int8 => DType::I8,
        TensorElementType::Int16 => DType::I16,
        TensorElementType::Int32 => DType::I32,
        TensorElementType::Int64 => DType::I64,
        TensorElementType::Float16 => DType::F16,
        TensorElementType::Bfloat16 => DType::BF16,
        TensorElementType::Float32 => DType::F32,
        TensorElementType::Float64 => DType::F64,
        TensorElementType::String => DType::String,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

    use ort::value::{Outlet, Shape, SymbolicDimensions, TensorElementType, ValueType};

    use super::signature;

    fn tensor(name: &str, ty: TensorElementType, shape: &[i64]) -> Outlet {
        let dimension_symbols = SymbolicDimensions::empty(shape.len());
        Outlet::new(
            name,
            ValueType::Tensor { ty, shape: Shape::new(shape.iter().copied()), dimension_symbols },
        )
    }

    #[test]
    fn a_model_is_batched_if_every_first_dimension_is_open() {
        let open = [
            tensor("a", TensorElementType::Float32, &[-1, 3]),
            tensor("b", TensorElementType::String, &[-1]),
        ];
        assert!(signature(&open, &open).unwrap().batched);
        for fixed in [&[1, 3][..], &[4], &[]] {
            let fixed = [tensor("y", TensorElementType::Float32, fixed)];
            assert!(!signature(&open, &fixed).unwrap().batched);
            assert!(!signature(&fixed, &open).unwrap().batched);
        }
    }

    #[test]
    fn a_type_that_cannot_be_served_is_named_with_its_tensor() {
        let odd = [tensor("z", TensorElementType::Complex64, &[-1])];
        let text = signature(&odd, &[]).unwrap_err();
        assert!(text.starts_with("input \"z\""), "{text}");
        let list = [Outlet::new("s", ValueType::Sequence(Box::new(odd.first().unwrap().dtype().clone())))];
        assert!(signature(&[], &list).unwrap_err().starts_with("output \"s\" is no tensor"));
    }
}
