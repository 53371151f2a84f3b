//! Bodies to send: made-up rows in the words of a protocol.

mod body;
mod element;
mod input;

pub use input::{Input, InputShape, ShapeOfRow};

use crate::rng::Rng;
use crate::{LoadError, Request, Target};

/// How a model is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// `POST /predict` with `{"input": …}`.
    Predict,
    /// The Open Inference Protocol, version 2, with JSON.
    Oip,
    /// The same with binary tensors.
    OipBinary,
    /// `POST /predict` with the bytes of the rows.
    Raw,
    /// `POST /predict` with a `.npy` file.
    Npy,
}

impl Protocol {
    /// Where requests go, unless the user said so.
    pub fn path(self, model: Option<&str>) -> Option<String> {
        match self {
            Self::Oip | Self::OipBinary => model.map(|model| format!("/v2/models/{model}/infer")),
            Self::Predict | Self::Raw | Self::Npy => Some("/predict".to_owned()),
        }
    }

    /// What the body is.
    fn content_type(self) -> &'static str {
        match self {
            Self::Predict | Self::Oip => "application/json",
            Self::OipBinary | Self::Raw => "application/octet-stream",
            Self::Npy => "application/x-npy",
        }
    }
}

/// What a pool of requests is made of.
#[derive(Clone, Debug)]
pub struct Recipe<'a> {
    /// The server.
    pub target: &'a Target,
    /// Where the requests go.
    pub path: &'a str,
    /// How the model is asked.
    pub protocol: Protocol,
    /// What the model takes.
    pub inputs: &'a [Input],
    /// Rows of the requests; with several, as many requests of each.
    pub rows: &'a [usize],
    /// How many different bodies there are of each number of rows.
    pub bodies: usize,
    /// Headers of the user's own.
    pub headers: &'a [(String, String)],
    /// Draws the numbers.
    pub seed: u64,
}

/// A made-up body of so many rows, without a request around it.
pub fn body(protocol: Protocol, inputs: &[Input], rows: usize, seed: u64) -> Result<Vec<u8>, LoadError> {
    Ok(body::make(protocol, inputs, rows, &mut Rng::new(seed))?.bytes)
}

/// A pool of requests; those with different numbers of rows take turns.
pub fn requests(recipe: &Recipe<'_>) -> Result<Vec<Request>, LoadError> {
    let mut rng = Rng::new(recipe.seed);
    let mut pool = Vec::new();
    for _ in 0..recipe.bodies.max(1) {
        for rows in recipe.rows {
            let made = body::make(recipe.protocol, recipe.inputs, *rows, &mut rng)?;
            let content_type = recipe.protocol.content_type().to_owned();
            let mut headers = vec![("Content-Type".to_owned(), content_type.clone())];
            if matches!(recipe.protocol, Protocol::Raw | Protocol::Npy) {
                headers.push(("Accept".to_owned(), content_type));
            }
            if let Some(length) = made.json_length {
                headers.push(("Inference-Header-Content-Length".to_owned(), length.to_string()));
            }
            for (name, value) in recipe.headers {
                headers.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
                headers.push((name.clone(), value.clone()));
            }
            pool.push(Request::post(recipe.target, recipe.path, &headers, &made.bytes, *rows));
        }
    }
    Ok(pool)
}
