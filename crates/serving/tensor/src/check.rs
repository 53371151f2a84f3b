//! Checks tensors against the signature of a model.

use std::fmt::Display;

use crate::suggestion::{alternatives, truncated};
use crate::{DType, InferenceRequest, RequestError, RequestLimits, Signature, Tensor, TensorSpec, elements};

/// Checks one tensor per input, in signature order, and returns the number of rows: 1 if the model is not batched.
pub fn check<'a>(
    inputs: impl IntoIterator<Item = &'a Tensor>,
    signature: &Signature,
) -> Result<usize, RequestError> {
    let mut given = inputs.into_iter();
    let mut first: Option<(&str, usize)> = None;
    for spec in &signature.inputs {
        let tensor = given.next().ok_or_else(|| missing(spec))?;
        check_one(tensor, spec, &spec.name)?;
        if !signature.batched {
            continue;
        }
        let rows = tensor.rows();
        if rows == 0 {
            return Err(RequestError::Mismatch(format!("{}: no rows", spec.name)));
        }
        match first {
            None => first = Some((&spec.name, rows)),
            Some((name, before)) if before != rows => {
                let message = format!("{}: {rows} rows, but {name} has {before}", spec.name);
                return Err(RequestError::Mismatch(message));
            }
            Some(_) => {}
        }
    }
    if given.next().is_some() {
        let message = format!("more tensors than the model's {} inputs", signature.inputs.len());
        return Err(RequestError::Mismatch(message));
    }
    Ok(first.map_or(1, |(_, rows)| rows))
}

/// Checks a tensor against one input; `path` is its name in messages.
pub(crate) fn check_one(tensor: &Tensor, spec: &TensorSpec, path: &dyn Display) -> Result<(), RequestError> {
    check_dtype(tensor.dtype(), spec, path)?;
    if !fits(tensor, spec) {
        let (given, taken) = (tensor.shape(), show_spec(spec));
        return Err(RequestError::Mismatch(format!(
            "{path}: shape {given:?}, but the model expects {taken}"
        )));
    }
    // Engines may interpret other values in any way.
    if tensor.dtype() == DType::Bool
        && let Some(index) = tensor.data().iter().position(|byte| *byte > 1)
    {
        return Err(RequestError::Mismatch(format!("{path}: boolean {index} is neither 0 nor 1")));
    }
    Ok(())
}

/// Adds the row dimension to a tensor that may lack it, and returns whether it did. The result matches the input;
/// `path` is its name in messages.
pub(crate) fn as_rows(
    tensor: Tensor,
    spec: &TensorSpec,
    signature: &Signature,
    path: &dyn Display,
) -> Result<(Tensor, bool), RequestError> {
    let single = signature.counts_rows() && tensor.shape().len() + 1 == spec.shape.len();
    if !single {
        check_one(&tensor, spec, path)?;
        return Ok((tensor, false));
    }
    let given = tensor.shape().to_vec();
    let shape: Vec<usize> = std::iter::once(1).chain(given.iter().copied()).collect();
    let tensor =
        tensor.reshaped(shape).ok_or_else(|| RequestError::Mismatch(format!("{path}: shape {given:?}")))?;
    check_one(&tensor, spec, path).map_err(|error| {
        if fits(&tensor, spec) {
            return error;
        }
        let row = show_sizes(spec.shape.get(1..).unwrap_or_default());
        RequestError::Mismatch(format!("{path}: shape {given:?}, but a row of the model has {row}"))
    })?;
    Ok((tensor, true))
}

/// Number of elements of one row, as far as it is static: the initial capacity of a parser.
pub(crate) fn row_elements(spec: &TensorSpec) -> usize {
    let fixed: Vec<usize> = spec.shape.iter().skip(1).map(|size| size.unwrap_or(1)).collect();
    elements(&fixed).unwrap_or(0)
}

fn fits(tensor: &Tensor, spec: &TensorSpec) -> bool {
    let mut sizes = tensor.shape().iter().zip(&spec.shape);
    spec.any_rank
        || tensor.shape().len() == spec.shape.len()
            && sizes.all(|(size, fixed)| fixed.is_none_or(|fixed| fixed == *size))
}

pub(crate) fn check_dtype(dtype: DType, spec: &TensorSpec, path: &dyn Display) -> Result<(), RequestError> {
    if dtype == spec.dtype {
        return Ok(());
    }
    Err(RequestError::Mismatch(format!("{path}: {dtype}, but the model expects {}", spec.dtype)))
}

/// Rejects a shape of too many dimensions or elements before anything is allocated.
pub(crate) fn check_limits(
    shape: &[usize],
    limits: &RequestLimits,
    path: &dyn Display,
) -> Result<(), RequestError> {
    let too_large = |what, most| Err(RequestError::TooLarge { path: path.to_string(), what, most });
    if shape.len() > limits.rank {
        return too_large("dimensions", limits.rank);
    }
    if elements(shape).is_none_or(|count| count > limits.elements) {
        return too_large("elements", limits.elements);
    }
    Ok(())
}

impl InferenceRequest {
    /// Creates a checked request with these inputs and defaults for everything else: all outputs, no priority, no
    /// timeout.
    pub fn new(inputs: Vec<Tensor>, signature: &Signature) -> Result<Self, RequestError> {
        Ok(Self { rows: check(&inputs, signature)?, inputs, ..Self::default() })
    }

    /// [`InferenceRequest::new`] for named tensors in any order.
    pub fn from_tensors(tensors: Vec<(String, Tensor)>, signature: &Signature) -> Result<Self, RequestError> {
        let mut slots = InputSlots::new(signature);
        for (name, tensor) in tensors {
            let index = slots.index(&name)?;
            slots.fill(index, tensor);
        }
        Self::new(slots.finish()?, signature)
    }
}

/// One slot per input, filled in any order.
pub(crate) struct InputSlots<'a> {
    signature: &'a Signature,
    tensors: Vec<Option<Tensor>>,
}

impl<'a> InputSlots<'a> {
    pub(crate) fn new(signature: &'a Signature) -> Self {
        Self { signature, tensors: vec![None; signature.inputs.len()] }
    }

    /// The index of an input whose slot is empty.
    pub(crate) fn index(&self, name: &str) -> Result<usize, RequestError> {
        let index = input_index(name, self.signature)?;
        match self.tensors.get(index) {
            Some(None) => Ok(index),
            _ => Err(RequestError::Mismatch(format!("input `{name}` is given twice"))),
        }
    }

    pub(crate) fn fill(&mut self, index: usize, tensor: Tensor) {
        if let Some(slot) = self.tensors.get_mut(index) {
            *slot = Some(tensor);
        }
    }

    /// All tensors, or an error for the first missing one.
    pub(crate) fn finish(self) -> Result<Vec<Tensor>, RequestError> {
        let slots = self.tensors.into_iter().zip(&self.signature.inputs);
        slots.map(|(tensor, spec)| tensor.ok_or_else(|| missing(spec))).collect()
    }
}

fn missing(spec: &TensorSpec) -> RequestError {
    RequestError::Mismatch(format!("input `{}` is missing", spec.name))
}

pub(crate) fn input_index(name: &str, signature: &Signature) -> Result<usize, RequestError> {
    signature.input(name).ok_or_else(|| {
        let others = alternatives(name, signature.inputs.iter().map(|spec| spec.name.as_str()));
        RequestError::Mismatch(format!("the model has no input `{}`{others}", truncated(name)))
    })
}

pub(crate) fn output_index(name: &str, signature: &Signature) -> Result<usize, RequestError> {
    signature.output(name).ok_or_else(|| {
        let others = alternatives(name, signature.outputs.iter().map(|spec| spec.name.as_str()));
        RequestError::Mismatch(format!("the model has no output `{}`{others}", truncated(name)))
    })
}

pub(crate) fn show_spec(spec: &TensorSpec) -> String {
    if spec.any_rank { "any shape".to_owned() } else { show_sizes(&spec.shape) }
}

fn show_sizes(shape: &[Option<usize>]) -> String {
    let sizes: Vec<String> =
        shape.iter().map(|size| size.map_or_else(|| "any".to_owned(), |size| size.to_string())).collect();
    format!("[{}]", sizes.join(", "))
}
