//! The signature of a model, read from its session.

use std::collections::BTreeSet;

use cudock_tensor::{DType, Signature, TensorSpec};
use ort::value::{Outlet, TensorElementType, ValueType};

/// The signature of a model with those inputs and outputs, or an error for the first one that is not supported.
/// `unranked` are the names of those without a declared shape, which the engine does not distinguish from scalars.
///
/// Rows can share a batch if every first dimension is dynamic, and if the inputs do not give it different names:
/// `[batch, 3]` and `[boxes, 4]` are not rows of the same thing.
pub(crate) fn signature(
    inputs: &[Outlet],
    outputs: &[Outlet],
    unranked: &BTreeSet<String>,
) -> Result<Signature, String> {
    let mut row_names: Vec<&str> = inputs.iter().filter_map(first_symbol).collect();
    row_names.sort_unstable();
    row_names.dedup();
    let specs = |what: &str, outlets: &[Outlet]| -> Result<Vec<TensorSpec>, String> {
        outlets.iter().map(|outlet| spec(what, outlet, unranked)).collect()
    };
    let (inputs, outputs) = (specs("input", inputs)?, specs("output", outputs)?);
    let counts_rows = |spec: &TensorSpec| spec.shape.first() == Some(&None);
    let batched =
        !inputs.is_empty() && row_names.len() <= 1 && inputs.iter().chain(&outputs).all(counts_rows);
    Ok(Signature { inputs, outputs, batched })
}

/// The name of a dynamic first dimension.
fn first_symbol(outlet: &Outlet) -> Option<&str> {
    let ValueType::Tensor { shape, dimension_symbols, .. } = outlet.dtype() else { return None };
    let name = dimension_symbols.first().filter(|_| shape.first().is_some_and(|size| *size < 0))?;
    (!name.is_empty()).then_some(name.as_str())
}

fn spec(what: &str, outlet: &Outlet, unranked: &BTreeSet<String>) -> Result<TensorSpec, String> {
    let name = outlet.name();
    let ValueType::Tensor { ty, shape, .. } = outlet.dtype() else {
        let mut text = format!("{what} {name:?} is not a tensor but {}", outlet.dtype());
        if matches!(outlet.dtype(), ValueType::Sequence(inner) if matches!(**inner, ValueType::Map { .. })) {
            text += "; convert the scikit-learn model again with options={id(model): {\"zipmap\": False}}";
        }
        return Err(text);
    };
    let dtype = dtype(*ty).ok_or_else(|| format!("{what} {name:?} has the unsupported element type {ty}"))?;
    let shape: Vec<_> = shape.iter().map(|&size| usize::try_from(size).ok()).collect();
    Ok(TensorSpec { any_rank: unranked.contains(name), ..TensorSpec::new(name, dtype, shape) })
}

fn dtype(element: TensorElementType) -> Option<DType> {
    DType::ALL.into_iter().find(|dtype| element_type(*dtype) == element)
}

/// The engine's name of a type.
pub(crate) fn element_type(dtype: DType) -> TensorElementType {
    match dtype {
        DType::Bool => TensorElementType::Bool,
        DType::U8 => TensorElementType::Uint8,
        DType::U16 => TensorElementType::Uint16,
        DType::U32 => TensorElementType::Uint32,
        DType::U64 => TensorElementType::Uint64,
        DType::I8 => TensorElementType::Int8,
        DType::I16 => TensorElementType::Int16,
        DType::I32 => TensorElementType::Int32,
        DType::I64 => TensorElementType::Int64,
        DType::F16 => TensorElementType::Float16,
        DType::BF16 => TensorElementType::Bfloat16,
        DType::F32 => TensorElementType::Float32,
        DType::F64 => TensorElementType::Float64,
        DType::String => TensorElementType::String,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use ort::value::{Outlet, Shape, SymbolicDimensions, TensorElementType, ValueType};

    use super::signature;

    fn tensor(name: &str, ty: TensorElementType, shape: &[i64]) -> Outlet {
        let dimension_symbols = SymbolicDimensions::empty(shape.len());
        let shape = Shape::new(shape.iter().copied());
        Outlet::new(name, ValueType::Tensor { ty, shape, dimension_symbols })
    }

    fn floats(name: &str, shape: &[i64]) -> Outlet {
        tensor(name, TensorElementType::Float32, shape)
    }

    #[test]
    fn a_model_is_batched_if_every_first_dimension_is_dynamic() {
        let open = [floats("a", &[-1, 3]), tensor("b", TensorElementType::String, &[-1])];
        assert!(signature(&open, &open, &BTreeSet::new()).unwrap().batched);
        for fixed in [&[1, 3][..], &[4], &[]] {
            let fixed = [floats("y", fixed)];
            assert!(!signature(&open, &fixed, &BTreeSet::new()).unwrap().batched);
            assert!(!signature(&fixed, &open, &BTreeSet::new()).unwrap().batched);
        }
    }

    #[test]
    fn an_unsupported_type_is_reported_with_its_tensor() {
        let odd = [tensor("z", TensorElementType::Complex64, &[-1])];
        let text = signature(&odd, &[], &BTreeSet::new()).unwrap_err();
        assert!(text.starts_with("input \"z\""), "{text}");
        let list = [Outlet::new("s", ValueType::Sequence(Box::new(odd.first().unwrap().dtype().clone())))];
        let text = signature(&[], &list, &BTreeSet::new()).unwrap_err();
        assert!(text.starts_with("output \"s\" is not a tensor"), "{text}");
    }

    #[test]
    fn inputs_that_count_different_things_do_not_share_a_batch() {
        let named = |name: &str, symbol: &str| {
            let dimension_symbols = SymbolicDimensions::new([symbol.to_owned(), String::new()]);
            let shape = Shape::new([-1, 4]);
            let ty = TensorElementType::Float32;
            Outlet::new(name, ValueType::Tensor { ty, shape, dimension_symbols })
        };
        let none = BTreeSet::new();
        let output = [floats("y", &[-1, 4])];
        let batched = |inputs: &[Outlet]| signature(inputs, &output, &none).unwrap().batched;
        assert!(batched(&[named("a", "batch"), named("b", "batch")]));
        assert!(batched(&[named("a", "batch"), named("b", "")]), "an unnamed dimension matches any name");
        assert!(!batched(&[named("image", "batch"), named("boxes", "num_boxes")]));
    }

    #[test]
    fn an_input_without_a_shape_is_of_any_rank_and_not_a_scalar() {
        let model = [floats("x", &[])];
        let unranked = BTreeSet::from(["x".to_owned()]);
        let found = signature(&model, &model, &unranked).unwrap();
        assert!(found.inputs.iter().all(|spec| spec.any_rank) && !found.batched);
        let scalar = signature(&model, &model, &BTreeSet::new()).unwrap();
        assert!(!scalar.inputs.iter().any(|spec| spec.any_rank));
    }

    #[test]
    fn an_output_of_maps_names_the_converters_option() {
        let map = ValueType::Map { key: TensorElementType::Int64, value: TensorElementType::Float32 };
        let probabilities = [Outlet::new("probabilities", ValueType::Sequence(Box::new(map)))];
        let text = signature(&[], &probabilities, &BTreeSet::new()).unwrap_err();
        assert!(text.contains("probabilities") && text.contains("\"zipmap\": False"), "{text}");
    }
}
