//! What a model takes, with every size known.

use std::str::FromStr;

use cudock_tensor::{DType, TensorSpec};

use crate::LoadError;

/// One input of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// Its name in the model.
    pub name: String,
    /// The type of its elements.
    pub dtype: DType,
    /// The shape of one row; none if the input has no dimension that counts rows.
    pub row: Option<Vec<usize>>,
}

/// The shape of one row, in the words of the user: `3,224,224`, or `image=3,224,224` for one of several inputs. Empty
/// if a row is a single element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShapeOfRow {
    /// The input it is of; any if none.
    pub name: Option<String>,
    /// The shape.
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
            .map(|part| part.trim().parse().map_err(|_| format!("`{part}` is no dimension")))
            .collect::<Result<_, _>>()?;
        Ok(Self { name, dimensions })
    }
}

impl Input {
    /// The input a server describes, its open sizes filled in by what the user says of its rows.
    pub fn resolve(spec: &TensorSpec, shapes: &[ShapeOfRow]) -> Result<Self, LoadError> {
        let given = shapes
            .iter()
            .find(|shape| shape.name.as_deref() == Some(&spec.name))
            .or_else(|| shapes.iter().find(|shape| shape.name.is_none()));
        let row = match (spec.shape.get(1..), given) {
            (None, _) => None,
            (Some(_), Some(given)) => Some(given.dimensions.clone()),
            (Some(row), None) => {
                let known: Option<Vec<usize>> = row.iter().copied().collect();
                Some(known.ok_or_else(|| {
                    LoadError::Payload(format!(
                        "input `{}` has sizes that the model leaves open: {:?}",
                        spec.name,
                        spec.protocol_shape()
                    ))
                })?)
            }
        };
        Ok(Self { name: spec.name.clone(), dtype: spec.dtype, row })
    }

    /// The shape with so many rows.
    pub fn shape(&self, rows: usize) -> Vec<usize> {
        match &self.row {
            Some(row) => std::iter::once(rows).chain(row.iter().copied()).collect(),
            None => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

    use super::*;

    fn spec(shape: &[Option<usize>]) -> TensorSpec {
        TensorSpec { name: "x".to_owned(), dtype: DType::F32, shape: shape.to_vec() }
    }

    #[test]
    fn open_sizes_are_the_users_to_say() {
        let open = spec(&[None, Some(3), None, None]);
        let fault = Input::resolve(&open, &[]).unwrap_err().to_string();
        assert_eq!(fault, "input `x` has sizes that the model leaves open: [-1, 3, -1, -1]");
        let shape: ShapeOfRow = "3x224x224".parse().unwrap();
        let input = Input::resolve(&open, &[shape]).unwrap();
        assert_eq!(input.shape(4), [4, 3, 224, 224]);
    }

    #[test]
    fn a_shape_for_one_input_is_not_taken_for_another() {
        let shapes: Vec<ShapeOfRow> = vec!["y=7".parse().unwrap(), "x=5,6".parse().unwrap()];
        let input = Input::resolve(&spec(&[None, None, None]), &shapes).unwrap();
        assert_eq!(input.row, Some(vec![5, 6]));
        let closed = Input::resolve(&spec(&[None, Some(9)]), shapes.get(..1).unwrap()).unwrap();
        assert_eq!(closed.row, Some(vec![9]));
    }

    #[test]
    fn words_that_are_no_shape_are_refused() {
        assert_eq!("3,a".parse::<ShapeOfRow>(), Err("`a` is no dimension".to_owned()));
        assert_eq!("".parse::<ShapeOfRow>().unwrap().dimensions, Vec::<usize>::new());
    }
}
