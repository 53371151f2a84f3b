//! Inputs of a model with all sizes known.

use std::str::FromStr;

use cudock_tensor::{DType, TensorSpec};

use crate::LoadError;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelInput {
    pub name: String,
    pub dtype: DType,
    /// The shape of one row, or of the whole input if it has no row dimension.
    pub shape: InputShape,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputShape {
    /// One row of this shape for each row of the request.
    Rows(Vec<usize>),
    /// This shape, for any number of rows.
    Fixed(Vec<usize>),
}

/// The shape of one row as users write it: `3,224,224`, or `image=3,224,224` for one of several inputs. Empty if a row
/// is a single element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShapeOfRow {
    /// The name of the input; `None` for any.
    pub name: Option<String>,
    pub dimensions: Vec<usize>,
}

impl FromStr for ShapeOfRow {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, dimensions) = match text.split_once('=') {
            Some((name, dimensions)) => (Some(name.to_owned()), dimensions),
            None => (None, text),
        };
        let dimensions = dimensions
            .split([',', 'x'])
            .filter(|part| !part.is_empty())
            .map(|part| part.trim().parse().map_err(|_| format!("`{part}` is not a dimension")))
            .collect::<Result<_, _>>()?;
        Ok(Self { name, dimensions })
    }
}

impl ModelInput {
    /// Resolves the input that a server describes, with dynamic sizes from the user's shapes.
    pub fn resolve(spec: &TensorSpec, shapes: &[ShapeOfRow]) -> Result<Self, LoadError> {
        let given = shapes
            .iter()
            .find(|shape| shape.name.as_deref() == Some(&spec.name))
            .or_else(|| shapes.iter().find(|shape| shape.name.is_none()));
        let counts_rows = spec.shape.first() == Some(&None);
        let row = spec.shape.get(usize::from(counts_rows)..).unwrap_or_default();
        let fits = |given: &[usize]| {
            given.len() == row.len()
                && given.iter().zip(row).all(|(given, size)| size.is_none_or(|size| size == *given))
        };
        let known: Option<Vec<usize>> = row.iter().copied().collect();
        let dimensions = match given {
            Some(given) if counts_rows || fits(&given.dimensions) => given.dimensions.clone(),
            _ => known.ok_or_else(|| {
                LoadError::Payload(format!(
                    "input `{}` has dynamic sizes: {:?}",
                    spec.name,
                    spec.protocol_shape()
                ))
            })?,
        };
        let shape = if counts_rows { InputShape::Rows(dimensions) } else { InputShape::Fixed(dimensions) };
        Ok(Self { name: spec.name.clone(), dtype: spec.dtype, shape })
    }

    /// The shape with `rows` rows.
    pub fn with_rows(&self, rows: usize) -> Vec<usize> {
        match &self.shape {
            InputShape::Rows(row) => std::iter::once(rows).chain(row.iter().copied()).collect(),
            InputShape::Fixed(shape) => shape.clone(),
        }
    }

    /// The shape for display: that of a row, or of the whole input.
    pub fn dimensions(&self) -> &[usize] {
        let (InputShape::Rows(dimensions) | InputShape::Fixed(dimensions)) = &self.shape;
        dimensions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(shape: &[Option<usize>]) -> TensorSpec {
        TensorSpec::new("x", DType::F32, shape)
    }

    #[test]
    fn dynamic_sizes_come_from_the_user() {
        let open = spec(&[None, Some(3), None, None]);
        let fault = ModelInput::resolve(&open, &[]).unwrap_err().to_string();
        assert_eq!(fault, "input `x` has dynamic sizes: [-1, 3, -1, -1]");
        let shape: ShapeOfRow = "3x224x224".parse().unwrap();
        let input = ModelInput::resolve(&open, &[shape]).unwrap();
        assert_eq!(input.with_rows(4), [4, 3, 224, 224]);
    }

    #[test]
    fn an_input_without_a_batch_dimension_has_its_own_size_whatever_the_rows() {
        let fixed = ModelInput::resolve(&spec(&[Some(1), Some(3), Some(8)]), &[]).unwrap();
        assert_eq!(fixed.with_rows(4), [1, 3, 8]);
        assert_eq!(ModelInput::resolve(&spec(&[]), &[]).unwrap().with_rows(4), Vec::<usize>::new());
        let open = spec(&[Some(3), None]);
        assert!(ModelInput::resolve(&open, &[]).is_err());
        let shape: ShapeOfRow = "3,5".parse().unwrap();
        assert_eq!(ModelInput::resolve(&open, &[shape]).unwrap().with_rows(1), [3, 5]);
        let wrong: ShapeOfRow = "4,5".parse().unwrap();
        assert!(ModelInput::resolve(&open, &[wrong]).is_err());
    }

    #[test]
    fn a_shape_for_one_input_is_not_taken_for_another() {
        let shapes: Vec<ShapeOfRow> = vec!["y=7".parse().unwrap(), "x=5,6".parse().unwrap()];
        let input = ModelInput::resolve(&spec(&[None, None, None]), &shapes).unwrap();
        assert_eq!(input.shape, InputShape::Rows(vec![5, 6]));
        let closed = ModelInput::resolve(&spec(&[None, Some(9)]), shapes.get(..1).unwrap()).unwrap();
        assert_eq!(closed.shape, InputShape::Rows(vec![9]));
    }

    #[test]
    fn invalid_shapes_are_rejected() {
        assert_eq!("3,a".parse::<ShapeOfRow>(), Err("`a` is not a dimension".to_owned()));
        assert_eq!("".parse::<ShapeOfRow>().unwrap().dimensions, Vec::<usize>::new());
    }
}
