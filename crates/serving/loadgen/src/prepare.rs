//! Prepares requests: generated from the model metadata or the arguments, or read from a file.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use cudock_base::UsageError;
use cudock_tensor::DType;

use crate::client::http_client::{HttpClient, record_expected};
use crate::client::metadata::{ModelMetadata, model_metadata, model_names};
use crate::client::request::LoadRequest;
use crate::client::server_url::ServerUrl;
use crate::error::LoadError;
use crate::payload::{self, BenchProtocol, InputShape, ModelInput, Recipe, ShapeOfRow};

/// The timeout of single requests before the load: a model may have to be loaded first.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct RequestOptions<'a> {
    pub protocol: BenchProtocol,
    /// The name of the model, if the server has several.
    pub model_name: Option<&'a str>,
    pub shapes: &'a [ShapeOfRow],
    /// The type of the inputs, as the Open Inference Protocol names it.
    pub dtype: Option<&'a str>,
    pub body: Option<&'a Path>,
    /// Headers as `Name: value`.
    pub headers: &'a [String],
    pub rows: &'a [usize],
    pub bodies: usize,
    pub seed: u64,
}

#[derive(Debug)]
pub struct Prepared {
    pub address: SocketAddr,
    pub path: String,
    /// The requests, each with its expected response.
    pub requests: Vec<LoadRequest>,
    /// A description of a request.
    pub summary: String,
}

/// Prepares requests, and sends each one once to record its response.
pub fn prepare(options: &RequestOptions<'_>, target: &ServerUrl) -> Result<Prepared, LoadError> {
    let address = target.reach()?;
    let headers = options.headers.iter().map(|text| header(text)).collect::<Result<Vec<_>, _>>()?;
    let protocol = options.protocol;
    let mut client = HttpClient::new(target, address, RESPONSE_TIMEOUT);
    let mut metadata = None;
    let mut name = options.model_name.map(str::to_owned).or_else(|| target.path().and_then(name_in_path));
    if options.body.is_none() || (name.is_none() && target.path().is_none()) {
        if name.is_none() {
            name = only_model(&mut client, target, &headers)?;
        }
        if let Some(name) = &name {
            // Servers without the protocol respond with various errors; only metadata matters.
            metadata = model_metadata(&mut client, target, &headers, name).unwrap_or_default();
        }
    }
    let path = match (target.path(), protocol, options.model_name) {
        (Some(path), _, _) => path.to_owned(),
        (None, BenchProtocol::Predict | BenchProtocol::Raw | BenchProtocol::Npy, Some(name)) => {
            format!("/predict/{name}")
        }
        _ => protocol.path(name.as_deref()).ok_or_else(|| {
            UsageError::new("the server does not list its models").hint("pass --model-name NAME")
        })?,
    };
    let mut sent = None;
    let (mut requests, summary) = if let Some(file) = options.body {
        from_file(file, target, &path, headers, options)?
    } else {
        let inputs = inputs(options, metadata.as_ref())?;
        sent = inputs.first().map(|input| input.dtype);
        let recipe = Recipe {
            target,
            path: &path,
            protocol,
            inputs: &inputs,
            rows: options.rows,
            bodies: options.bodies,
            headers: &headers,
            seed: options.seed,
        };
        (payload::requests(&recipe)?, describe(&inputs, options.rows))
    };
    // A server that does not describe its model most likely answers in the type that it is sent.
    let elements = metadata.as_ref().map_or(sent, ModelMetadata::output_elements);
    record_expected(&mut client, &mut requests, elements)?;
    Ok(Prepared { address, path, requests, summary })
}

/// The model's name in a path such as `/v2/models/NAME/infer`.
fn name_in_path(path: &str) -> Option<String> {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    match parts.as_slice() {
        ["v2", "models", name, ..] | ["predict", name, ..] => Some((*name).to_owned()),
        _ => None,
    }
}

/// The name of the server's only model, if it is known.
fn only_model(
    client: &mut HttpClient,
    target: &ServerUrl,
    headers: &[(String, String)],
) -> Result<Option<String>, UsageError> {
    let names = model_names(client, target, headers).unwrap_or_default();
    match names.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(one.clone())),
        several => Err(UsageError::new(format!("the server has several models: {}", several.join(", ")))
            .hint("pass --model-name NAME")),
    }
}

fn inputs(
    options: &RequestOptions<'_>,
    metadata: Option<&ModelMetadata>,
) -> Result<Vec<ModelInput>, LoadError> {
    if options.rows.contains(&0) {
        return Err(UsageError::new("a request has at least one row").into());
    }
    let dtype = match options.dtype {
        Some(name) => DType::from_protocol_name(&name.to_ascii_uppercase()).ok_or_else(|| {
            let names: Vec<&str> = DType::ALL.iter().map(|dtype| dtype.protocol_name()).collect();
            UsageError::new(format!("`{name}` is not a tensor type"))
                .hint(format!("use one of {}", names.join(", ")))
        })?,
        None => DType::F32,
    };
    if let Some(metadata) = metadata {
        let resolve = |spec| ModelInput::resolve(spec, options.shapes);
        let inputs: Vec<ModelInput> = metadata.inputs.iter().map(resolve).collect::<Result<_, _>>()?;
        let fixed = inputs.iter().all(|input| matches!(input.shape, InputShape::Fixed(_)));
        if fixed && options.rows.iter().any(|rows| *rows != 1) {
            return Err(UsageError::new("this model has no batch dimension, so a request is one row")
                .hint("omit --rows")
                .into());
        }
        return Ok(inputs);
    }
    if options.shapes.is_empty() {
        return Err(UsageError::new("the server has no metadata of its model")
            .hint("pass the shape of one row, as --shape 512 --dtype FP32, or a request by --body FILE")
            .into());
    }
    let input = |shape: &payload::ShapeOfRow| ModelInput {
        name: shape.name.clone().unwrap_or_else(|| "input".to_owned()),
        dtype,
        shape: InputShape::Rows(shape.dimensions.clone()),
    };
    Ok(options.shapes.iter().map(input).collect())
}

fn describe(inputs: &[ModelInput], rows: &[usize]) -> String {
    let rows: Vec<String> = rows.iter().map(ToString::to_string).collect();
    let inputs: Vec<String> =
        inputs.iter().map(|input| format!("{} {:?}", input.dtype, input.dimensions())).collect();
    let noun = if rows.as_slice() == ["1"] { "row" } else { "rows" };
    format!("{} {noun} of {}", rows.join(" or "), inputs.join(" and "))
}

fn from_file(
    file: &Path,
    target: &ServerUrl,
    path: &str,
    mut headers: Vec<(String, String)>,
    options: &RequestOptions<'_>,
) -> Result<(Vec<LoadRequest>, String), LoadError> {
    let body = std::fs::read(file)
        .map_err(|error| UsageError::new(format!("cannot read {}: {error}", file.display())))?;
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
        headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
    }
    let rows = options.rows.first().copied().unwrap_or(1);
    Ok((vec![LoadRequest::post(target, path, &headers, &body, rows)], file.display().to_string()))
}

pub(crate) fn header(text: &str) -> Result<(String, String), UsageError> {
    let is_valid = |(name, value): &(&str, &str)| {
        !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_graphic())
            && !value.bytes().any(|byte| byte.is_ascii_control())
    };
    let parts = text.split_once(':').map(|(name, value)| (name.trim(), value.trim())).filter(is_valid);
    parts.map(|(name, value)| (name.to_owned(), value.to_owned())).ok_or_else(|| {
        UsageError::new(format!("`{}` is not a header", text.escape_debug()))
            .hint("write it as 'Name: value'")
    })
}
