//! Which shapes can share a batch, and padding of rows to a common shape.
//!
//! Rows can share a batch if all their dimensions but the first are equal. If a model accepts rows of any length, few
//! requests match by chance; so dynamic dimensions may be padded to the next of some sizes, and the response is cropped
//! to the original size.

use std::hash::{DefaultHasher, Hash, Hasher};

use cudock_tensor::{DType, Signature, Tensor, TensorSpec};

/// The padded shape of one row of each input, in signature order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RowShapes(pub(crate) Vec<Vec<usize>>);

impl RowShapes {
    /// The shapes of a request's rows with dynamic dimensions padded to the next of `sizes` (sorted; larger ones stay
    /// as they are).
    pub(crate) fn of(inputs: &[Tensor], signature: &Signature, sizes: &[usize]) -> Self {
        let shape = |(tensor, spec): (&Tensor, &TensorSpec)| {
            let row = tensor.shape().get(usize::from(signature.batched)..).unwrap_or_default();
            if spec.any_rank {
                return row.to_vec();
            }
            let can_pad = tensor.dtype() != DType::String;
            row.iter()
                .zip(row_spec(spec, signature.batched))
                .map(|(&size, open)| if open && can_pad { padded(size, sizes) } else { size })
                .collect()
        };
        Self(inputs.iter().zip(&signature.inputs).map(shape).collect())
    }

    /// A hash of the shapes. If two shapes collide, the lane that finds them in one batch runs each request alone.
    pub(crate) fn bucket(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }
}

/// Which dimensions of a row are dynamic.
fn row_spec(spec: &TensorSpec, batched: bool) -> impl Iterator<Item = bool> {
    spec.shape.iter().skip(usize::from(batched)).map(Option::is_none)
}

fn padded(size: usize, sizes: &[usize]) -> usize {
    sizes.iter().copied().find(|&larger| larger >= size).unwrap_or(size)
}

/// Fills memory with elements of padding; with zeros if the padding is empty.
pub(crate) fn fill_padding(padding: &[u8], out: &mut [u8]) {
    if padding.iter().all(|byte| *byte == 0) {
        out.fill(0);
        return;
    }
    for element in out.chunks_exact_mut(padding.len()) {
        element.copy_from_slice(padding);
    }
}

/// Copies a tensor of fixed-size elements into the corner of a larger one of shape `wide` and equal rank; the rest is
/// unchanged.
pub(crate) fn pad_into(tensor: &Tensor, wide: &[usize], out: &mut [u8]) -> Option<()> {
    let size = tensor.dtype().size()?;
    copy_corner(tensor.data(), tensor.shape(), out, wide, size, tensor.shape())
}

/// The corner of a tensor with the shape `narrow`.
pub(crate) fn crop(tensor: &Tensor, narrow: &[usize]) -> Option<Tensor> {
    let size = tensor.dtype().size()?;
    let mut data = vec![0; cudock_tensor::elements(narrow)?.checked_mul(size)?];
    copy_corner(tensor.data(), tensor.shape(), &mut data, narrow, size, narrow)?;
    Tensor::new(tensor.dtype(), narrow.to_vec(), data.into()).ok()
}

/// Copies the box `part` from the corner of one array to the corner of another, run by run of the last dimension.
fn copy_corner(
    from: &[u8],
    from_shape: &[usize],
    to: &mut [u8],
    to_shape: &[usize],
    size: usize,
    part: &[usize],
) -> Option<()> {
    let Some((&run, outer)) = part.split_last() else {
        to.get_mut(..size)?.copy_from_slice(from.get(..size)?);
        return Some(());
    };
    let run = run * size;
    let mut index = vec![0_usize; outer.len()];
    if part.contains(&0) {
        return Some(());
    }
    loop {
        let offset = |shape: &[usize]| {
            let within = index.iter().zip(shape).fold(0, |sum, (&at, &dimension)| sum * dimension + at);
            within * shape.last().copied().unwrap_or(1) * size
        };
        let (source, target) = (offset(from_shape), offset(to_shape));
        to.get_mut(target..target + run)?.copy_from_slice(from.get(source..source + run)?);
        let mut axis = outer.len();
        loop {
            if axis == 0 {
                return Some(());
            }
            axis -= 1;
            let (at, &dimension) = (index.get_mut(axis)?, outer.get(axis)?);
            *at += 1;
            if *at < dimension {
                break;
            }
            *at = 0;
        }
    }
}

/// The original shape of a padded output: dynamic dimensions that have the padded size of some input get the size of
/// the request.
pub(crate) fn unpadded_shape(
    output: &Tensor,
    spec: &TensorSpec,
    inputs: &[Tensor],
    padded: &RowShapes,
    batched: bool,
) -> Option<Vec<usize>> {
    if output.dtype() == DType::String {
        return None;
    }
    let skip = usize::from(batched);
    let mut shape = output.shape().to_vec();
    for (size, open) in shape.iter_mut().skip(skip).zip(row_spec(spec, batched)) {
        if !open {
            continue;
        }
        let original = inputs.iter().zip(&padded.0).find_map(|(input, padded)| {
            let own = input.shape().iter().skip(skip);
            own.zip(padded).find(|&(own, padded)| *padded == *size && own != padded).map(|(own, _)| *own)
        });
        if let Some(original) = original {
            *size = original;
        }
    }
    (shape != output.shape()).then_some(shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(shape: &[usize]) -> Tensor {
        let count = u8::try_from(cudock_tensor::elements(shape).unwrap()).unwrap();
        Tensor::new(DType::U8, shape.to_vec(), (1..=count).collect::<Vec<_>>().into()).unwrap()
    }

    #[test]
    fn a_padded_row_is_cropped_to_the_original() {
        let small = bytes(&[2, 2, 3]);
        let mut wide = vec![0; 2 * 4 * 5];
        pad_into(&small, &[2, 4, 5], &mut wide).unwrap();
        assert_eq!(wide.get(..10).unwrap(), [1, 2, 3, 0, 0, 4, 5, 6, 0, 0]);
        assert_eq!(wide.get(20..28).unwrap(), [7, 8, 9, 0, 0, 10, 11, 12]);
        let wide = Tensor::new(DType::U8, vec![2, 4, 5], wide.into()).unwrap();
        assert_eq!(crop(&wide, &[2, 2, 3]).unwrap(), small);
    }

    #[test]
    fn padding_may_have_a_value() {
        let mut out = [9; 4];
        fill_padding(&[7, 0], &mut out);
        assert_eq!(out, [7, 0, 7, 0]);
        fill_padding(&[], &mut out);
        assert_eq!(out, [0; 4]);
    }

    #[test]
    fn only_dynamic_dimensions_are_padded() {
        let inputs = vec![TensorSpec::new("x", DType::U8, [None, Some(3), None])];
        let signature = Signature { inputs, outputs: vec![], batched: true };
        let shapes = RowShapes::of(&[bytes(&[1, 3, 5])], &signature, &[8, 16]);
        assert_eq!(shapes.0, [[3, 8]]);
        assert_eq!(RowShapes::of(&[bytes(&[1, 3, 20])], &signature, &[8, 16]).0, [[3, 20]]);
    }

    #[test]
    fn a_response_is_cropped_to_the_size_of_the_request() {
        let unpadded = |output: &[usize], spec: &[Option<usize>]| {
            let spec = TensorSpec::new("x", DType::U8, spec);
            unpadded_shape(&bytes(output), &spec, &[bytes(&[1, 5])], &RowShapes(vec![vec![8]]), true)
        };
        assert_eq!(unpadded(&[1, 8, 2], &[None, None, Some(2)]), Some(vec![1, 5, 2]));
        assert_eq!(unpadded(&[1, 8], &[None, Some(8)]), None, "a static dimension is not padding");
    }
}
