//! Whether tensors are what a model takes.

use crate::unknown::{alternatives, shown};
use crate::{DType, Inference, Limits, Malformed, Signature, Tensor, TensorSpec, elements};

/// Checks one tensor for each input, in the signature's order, and tells how many rows of a batch they take: one if
/// the model is not batched.
pub fn check<'a>(
    inputs: impl IntoIterator<Item = &'a Tensor>,
    signature: &Signature,
) -> Result<usize, Malformed> {
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
            return Err(Malformed::Unfit(format!("{}: no rows", spec.name)));
        }
        match first {
            None => first = Some((&spec.name, rows)),
            Some((name, before)) if before != rows => {
                let problem = format!("{}: {rows} rows, but {name} has {before}", spec.name);
                return Err(Malformed::Unfit(problem));
            }
            Some(_) => {}
        }
    }
    if given.next().is_some() {
        let problem = format!("more tensors than the model's {} inputs", signature.inputs.len());
        return Err(Malformed::Unfit(problem));
    }
    Ok(first.map_or(1, |(_, rows)| rows))
}

/// Checks a tensor against one input; `place` is what a message calls it.
pub(crate) fn check_one(tensor: &Tensor, spec: &TensorSpec, place: &str) -> Result<(), Malformed> {
    check_dtype(tensor.dtype(), spec, place)?;
    if !fits(tensor, spec) {
        let (given, taken) = (show_shape(tensor.shape()), show_spec(spec));
        return Err(Malformed::Unfit(format!("{place}: shape {given} where the model takes {taken}")));
    }
    // An engine may take a boolean that is neither for anything.
    if tensor.dtype() == DType::Bool
        && let Some(index) = tensor.data().iter().position(|byte| *byte > 1)
    {
        return Err(Malformed::Unfit(format!("{place}: boolean {index} is neither 0 nor 1")));
    }
    Ok(())
}

/// A tensor that may lack the dimension that counts rows, with that dimension, and whether it was put there. The
/// result fits the input; `place` is what a message calls it.
pub(crate) fn as_rows(
    tensor: Tensor,
    spec: &TensorSpec,
    signature: &Signature,
    place: &str,
) -> Result<(Tensor, bool), Malformed> {
    let single = signature.batched && tensor.shape().len() + 1 == spec.shape.len();
    if !single {
        check_one(&tensor, spec, place)?;
        return Ok((tensor, false));
    }
    let shape: Vec<usize> = std::iter::once(1).chain(tensor.shape().iter().copied()).collect();
    let given = show_shape(tensor.shape());
    let tensor = tensor.reshaped(shape).ok_or_else(|| Malformed::Unfit(format!("{place}: shape {given}")))?;
    check_one(&tensor, spec, place).map_err(|error| {
        if fits(&tensor, spec) {
            return error;
        }
        let row = show_sizes(spec.shape.get(1..).unwrap_or_default());
        Malformed::Unfit(format!("{place}: shape {given} where a row of the model has {row}"))
    })?;
    Ok((tensor, true))
}

/// Elements of one row, as far as the model fixes them: what a reader makes room for at first.
pub(crate) fn row_elements(spec: &TensorSpec) -> usize {
    let fixed: Vec<usize> = spec.shape.iter().skip(1).map(|size| size.unwrap_or(1)).collect();
    elements(&fixed).unwrap_or(0)
}

fn fits(tensor: &Tensor, spec: &TensorSpec) -> bool {
    if spec.any_rank {
        return true;
    }
    tensor.shape().len() == spec.shape.len()
        && tensor
            .shape()
            .iter()
            .zip(&spec.shape)
            .all(|(size, fixed)| fixed.is_none_or(|fixed| fixed == *size))
}

pub(crate) fn check_dtype(dtype: DType, spec: &TensorSpec, place: &str) -> Result<(), Malformed> {
    if dtype == spec.dtype {
        return Ok(());
    }
    Err(Malformed::Unfit(format!("{place}: {dtype} where the model takes {}", spec.dtype)))
}

/// Refuses a shape of too many dimensions or elements before anything is made of it.
pub(crate) fn check_limits(shape: &[usize], limits: &Limits, place: &str) -> Result<(), Malformed> {
    let too_large = |what, most| Err(Malformed::TooLarge { place: place.to_owned(), what, most });
    if shape.len() > limits.rank {
        return too_large("dimensions", limits.rank);
    }
    if elements(shape).is_none_or(|count| count > limits.elements) {
        return too_large("elements", limits.elements);
    }
    Ok(())
}

impl Inference {
    /// A request with these inputs, checked, and nothing else asked for: every output, no priority, no timeout.
    pub fn new(inputs: Vec<Tensor>, signature: &Signature) -> Result<Self, Malformed> {
        let rows = check(&inputs, signature)?;
        Ok(Self {
            id: None,
            inputs,
            rows,
            single: false,
            outputs: Vec::new(),
            binary_outputs: false,
            priority: 0,
            timeout: None,
        })
    }

    /// [`Inference::new`] for tensors that come by name and in any order.
    pub fn from_tensors(tensors: Vec<(String, Tensor)>, signature: &Signature) -> Result<Self, Malformed> {
        let mut slots = Slots::new(signature);
        for (name, tensor) in tensors {
            let index = slots.place(&name)?;
            slots.fill(index, tensor);
        }
        Self::new(slots.finish()?, signature)
    }
}

/// One place for each input, filled in any order.
pub(crate) struct Slots<'a> {
    signature: &'a Signature,
    tensors: Vec<Option<Tensor>>,
}

impl<'a> Slots<'a> {
    pub(crate) fn new(signature: &'a Signature) -> Self {
        Self { signature, tensors: vec![None; signature.inputs.len()] }
    }

    /// The place of an input that has none yet.
    pub(crate) fn place(&self, name: &str) -> Result<usize, Malformed> {
        let index = self.signature.input(name).ok_or_else(|| {
            let others = alternatives(name, self.signature.inputs.iter().map(|spec| spec.name.as_str()));
            Malformed::Unfit(format!("the model has no input `{}`{others}", shown(name)))
        })?;
        match self.tensors.get(index) {
            Some(None) => Ok(index),
            _ => Err(Malformed::Unfit(format!("input `{name}` is given twice"))),
        }
    }

    pub(crate) fn fill(&mut self, index: usize, tensor: Tensor) {
        if let Some(slot) = self.tensors.get_mut(index) {
            *slot = Some(tensor);
        }
    }

    /// All of them, or what is missing.
    pub(crate) fn finish(self) -> Result<Vec<Tensor>, Malformed> {
        let specs = &self.signature.inputs;
        self.tensors
            .into_iter()
            .zip(specs)
            .map(|(tensor, spec)| tensor.ok_or_else(|| missing(spec)))
            .collect()
    }
}

fn missing(spec: &TensorSpec) -> Malformed {
    Malformed::Unfit(format!("input `{}` is missing", spec.name))
}

/// The place of an output with that name.
pub(crate) fn output_index(name: &str, signature: &Signature) -> Result<usize, Malformed> {
    signature.output(name).ok_or_else(|| {
        let others = alternatives(name, signature.outputs.iter().map(|spec| spec.name.as_str()));
        Malformed::Unfit(format!("the model has no output `{}`{others}", shown(name)))
    })
}

pub(crate) fn show_shape(shape: &[usize]) -> String {
    let sizes: Vec<String> = shape.iter().map(ToString::to_string).collect();
    format!("[{}]", sizes.join(", "))
}

pub(crate) fn show_spec(spec: &TensorSpec) -> String {
    if spec.any_rank { "any shape".to_owned() } else { show_sizes(&spec.shape) }
}

fn show_sizes(shape: &[Option<usize>]) -> String {
    let sizes: Vec<String> =
        shape.iter().map(|size| size.map_or_else(|| "any".to_owned(), |size| size.to_string())).collect();
    format!("[{}]", sizes.join(", "))
}
