//! Which requests are sent: made up by what the server says, by what the user says, or read from a file.

use std::time::Duration;

use cudock_load::payload::{self, Input, InputShape, Protocol, Recipe};
use cudock_load::{
    HttpClient, LoadError, LoadRequest, ModelMetadata, ServerUrl, model_metadata, model_names,
    record_expected,
};
use cudock_tensor::DType;

use super::args::BenchArgs;
use super::failure;
use crate::failure::Failure;

/// How long a single answer may take before the load begins: a model may have to be loaded first.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is sent, and where.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) address: std::net::SocketAddr,
    pub(super) path: String,
    pub(super) requests: Vec<LoadRequest>,
    /// What a request holds, in words.
    pub(super) holds: String,
}

/// Finds out what to send, and sends each request once, so that its answer is known.
pub(super) fn prepare(words: &BenchArgs, target: &ServerUrl) -> Result<Plan, Failure> {
    let told = |error: LoadError| failure(&error);
    let address = target.reach().map_err(told)?;
    let headers = words.header.iter().map(|text| header(text)).collect::<Result<Vec<_>, _>>()?;
    let protocol = Protocol::from(words.protocol);
    let mut dialogue = HttpClient::new(target, address, PATIENCE);
    let mut metadata = None;
    let mut name = words.model_name.clone().or_else(|| target.path().and_then(name_in_path));
    if words.body.is_none() || (name.is_none() && target.path().is_none()) {
        if name.is_none() {
            name = only_model(&mut dialogue, target, &headers)?;
        }
        if let Some(name) = &name {
            // Servers without the protocol answer in many ways; what counts is whether it helped.
            metadata = model_metadata(&mut dialogue, target, &headers, name).unwrap_or_default();
        }
    }
    let path = match (target.path(), protocol, &words.model_name) {
        (Some(path), _, _) => path.to_owned(),
        (None, Protocol::Predict | Protocol::Raw | Protocol::Npy, Some(name)) => format!("/predict/{name}"),
        _ => protocol.path(name.as_deref()).ok_or_else(|| {
            Failure::input("the server does not say which models it has").hint("pass --model-name NAME")
        })?,
    };
    let (mut requests, holds) = if let Some(file) = &words.body {
        from_file(file, target, &path, headers, words)?
    } else {
        let inputs = inputs(words, metadata.as_ref())?;
        let recipe = Recipe {
            target,
            path: &path,
            protocol,
            inputs: &inputs,
            rows: &words.rows,
            bodies: words.bodies,
            headers: &headers,
            seed: words.seed,
        };
        (payload::requests(&recipe).map_err(told)?, described(&inputs, &words.rows))
    };
    let elements = metadata.as_ref().and_then(ModelMetadata::output_elements);
    record_expected(&mut dialogue, &mut requests, elements).map_err(told)?;
    Ok(Plan { address, path, requests, holds })
}

/// The model's name where the path has it, as `/v2/models/NAME/infer`.
fn name_in_path(path: &str) -> Option<String> {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    match parts.as_slice() {
        ["v2", "models", name, ..] | ["predict", name, ..] => Some((*name).to_owned()),
        _ => None,
    }
}

/// The name of the server's only model, if it has one and says so.
fn only_model(
    dialogue: &mut HttpClient,
    target: &ServerUrl,
    headers: &[(String, String)],
) -> Result<Option<String>, Failure> {
    let names = model_names(dialogue, target, headers).unwrap_or_default();
    match names.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(one.clone())),
        several => Err(Failure::input(format!("the server has several models: {}", several.join(", ")))
            .hint("pass --model-name NAME")),
    }
}

fn inputs(words: &BenchArgs, metadata: Option<&ModelMetadata>) -> Result<Vec<Input>, Failure> {
    if words.rows.contains(&0) {
        return Err(Failure::input("a request has at least one row"));
    }
    let dtype = match &words.dtype {
        Some(name) => DType::from_protocol_name(&name.to_ascii_uppercase()).ok_or_else(|| {
            let names: Vec<&str> = DType::ALL.iter().map(|dtype| dtype.protocol_name()).collect();
            Failure::input(format!("`{name}` is no type of tensors"))
                .hint(format!("known are {}", names.join(", ")))
        })?,
        None => DType::F32,
    };
    if let Some(metadata) = metadata {
        let resolve = |spec| Input::resolve(spec, &words.shape).map_err(|error| failure(&error));
        let inputs: Vec<Input> = metadata.inputs.iter().map(resolve).collect::<Result<_, _>>()?;
        let fixed = inputs.iter().all(|input| matches!(input.shape, InputShape::Fixed(_)));
        if fixed && words.rows.iter().any(|rows| *rows != 1) {
            return Err(Failure::input("this model has no batch dimension, so a request is one row")
                .hint("leave --rows out"));
        }
        return Ok(inputs);
    }
    if words.shape.is_empty() {
        return Err(Failure::input("the server does not say what its model takes")
            .hint("pass the shape of one row, as --shape 512 --dtype FP32, or a request by --body FILE"));
    }
    let input = |shape: &payload::ShapeOfRow| Input {
        name: shape.name.clone().unwrap_or_else(|| "input".to_owned()),
        dtype,
        shape: InputShape::Rows(shape.dimensions.clone()),
    };
    Ok(words.shape.iter().map(input).collect())
}

fn described(inputs: &[Input], rows: &[usize]) -> String {
    let rows: Vec<String> = rows.iter().map(ToString::to_string).collect();
    let inputs: Vec<String> =
        inputs.iter().map(|input| format!("{} {:?}", input.dtype, input.dimensions())).collect();
    let word = if rows.as_slice() == ["1"] { "row" } else { "rows" };
    format!("{} {word} of {}", rows.join(" or "), inputs.join(" and "))
}

fn from_file(
    file: &std::path::Path,
    target: &ServerUrl,
    path: &str,
    mut headers: Vec<(String, String)>,
    words: &BenchArgs,
) -> Result<(Vec<LoadRequest>, String), Failure> {
    let body = std::fs::read(file)
        .map_err(|error| Failure::input(format!("cannot read {}: {error}", file.display())))?;
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
        headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
    }
    let rows = words.rows.first().copied().unwrap_or(1);
    Ok((vec![LoadRequest::post(target, path, &headers, &body, rows)], file.display().to_string()))
}

fn header(text: &str) -> Result<(String, String), Failure> {
    let parts = text.split_once(':').map(|(name, value)| (name.trim(), value.trim()));
    match parts {
        Some((name, value))
            if !name.is_empty()
                && name.bytes().all(|byte| byte.is_ascii_graphic())
                && !value.bytes().any(|byte| byte.is_ascii_control()) =>
        {
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err(Failure::input(format!("`{}` is no header", text.escape_debug()))
            .hint("write it as 'Name: value'")),
    }
}
