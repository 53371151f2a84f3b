//! Generated request bodies.

mod body;
mod element;
mod input;
mod protocol;

pub use input::{InputShape, ModelInput, ShapeOfRow};
pub use protocol::BenchProtocol;

use cudock_base::Rng;

use crate::{LoadError, LoadRequest, ServerUrl};

/// The parameters of a pool of requests.
#[derive(Clone, Debug)]
pub struct Recipe<'a> {
    pub target: &'a ServerUrl,
    pub path: &'a str,
    pub protocol: BenchProtocol,
    pub inputs: &'a [ModelInput],
    /// Row counts of the requests; with several, as many requests of each.
    pub rows: &'a [usize],
    /// Number of different bodies per row count.
    pub bodies: usize,
    /// Additional headers.
    pub headers: &'a [(String, String)],
    pub seed: u64,
}

/// Generates a body with `rows` rows, without a request.
pub fn body(
    protocol: BenchProtocol,
    inputs: &[ModelInput],
    rows: usize,
    seed: u64,
) -> Result<Vec<u8>, LoadError> {
    Ok(body::make(protocol, inputs, rows, &mut Rng::new(seed))?.bytes)
}

/// Generates a pool of requests; row counts alternate.
pub fn requests(recipe: &Recipe<'_>) -> Result<Vec<LoadRequest>, LoadError> {
    let mut rng = Rng::new(recipe.seed);
    let mut pool = Vec::new();
    for _ in 0..recipe.bodies.max(1) {
        for rows in recipe.rows {
            let made = body::make(recipe.protocol, recipe.inputs, *rows, &mut rng)?;
            let content_type = recipe.protocol.content_type().to_owned();
            let mut headers = vec![("Content-Type".to_owned(), content_type.clone())];
            if matches!(recipe.protocol, BenchProtocol::Raw | BenchProtocol::Npy) {
                headers.push(("Accept".to_owned(), content_type));
            }
            if let Some(length) = made.json_length {
                headers.push(("Inference-Header-Content-Length".to_owned(), length.to_string()));
            }
            for (name, value) in recipe.headers {
                headers.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
                headers.push((name.clone(), value.clone()));
            }
            pool.push(LoadRequest::post(recipe.target, recipe.path, &headers, &made.bytes, *rows));
        }
    }
    Ok(pool)
}
