//! Requests that run a model.

use std::time::{Duration, Instant};

use bytes::Bytes;
use cudock_tensor::{Inference, npy, oip, predict, raw};
use hyper::StatusCode;
use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::http::request::Parts;

use super::answer::{HttpAnswer, whole};
use super::body::{self, ReadBody};
use super::route::ModelName;
use crate::ServeError;
use crate::model::Model;
use crate::service::Service;

/// How a body, or an answer to `/predict`, is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Json,
    Raw,
    Npy,
}

const JSON: &str = "application/json";
const OCTETS: &str = "application/octet-stream";
const NPY: &str = "application/x-npy";

/// `POST /predict`
pub(crate) async fn predict(
    service: &Service,
    model: Option<&ModelName>,
    head: &Parts,
    body: Incoming,
    received: Instant,
) -> Result<HttpAnswer, ServeError> {
    let form = body_form(&head.headers)?;
    let wanted = answer_form(&head.headers, form)?;
    let model = match model {
        Some(model) => service.model(&model.name, model.version.as_deref())?,
        None => service.only_model()?,
    };
    let ReadBody { bytes, held: _held } = body::read(service, &head.headers, body).await?;
    model.refuse_if_crowded()?;
    let signature = model.signature();
    let mut request = match form {
        Form::Json => predict::read(&bytes, signature, service.limits())?,
        Form::Raw => raw::read(&bytes, signature, service.limits())?,
        Form::Npy => npy::read(&bytes, signature, service.limits())?,
    };
    // While the request waits, the connection can use the memory of its text again.
    drop(bytes);
    from_headers(&head.headers, &mut request)?;
    let (single, outputs) = (request.single, std::mem::take(&mut request.outputs));
    let answer = model.infer_since(request, received).await?;
    let mut out = Vec::new();
    match wanted {
        Form::Json => {
            predict::write(&answer, signature, single, &outputs, &model.device_name(), &mut out)?;
            Ok(whole(StatusCode::OK, JSON, out))
        }
        Form::Raw => Ok(whole(StatusCode::OK, OCTETS, raw::write(&answer, signature, &outputs)?)),
        Form::Npy => {
            npy::write(&answer, signature, &outputs, &mut out)?;
            Ok(whole(StatusCode::OK, NPY, out))
        }
    }
}

/// `POST /v2/models/NAME/infer`
pub(crate) async fn infer(
    service: &Service,
    model: &ModelName,
    head: &Parts,
    body: Incoming,
    received: Instant,
) -> Result<HttpAnswer, ServeError> {
    let model = service.model(&model.name, model.version.as_deref())?;
    let ReadBody { bytes, held: _held } = body::read(service, &head.headers, body).await?;
    model.refuse_if_crowded()?;
    let signature = model.signature();
    let mut request = read_protocol(&model, &bytes, &head.headers, service)?;
    drop(bytes);
    from_headers(&head.headers, &mut request)?;
    let (id, outputs, binary_outputs) =
        (request.id.take(), std::mem::take(&mut request.outputs), request.binary_outputs);
    let answer = model.infer_since(request, received).await?;
    let mut out = Vec::new();
    let reply = oip::Reply { id: id.as_deref(), outputs: &outputs, binary_outputs };
    let json_length = oip::write(&answer, signature, &reply, model.name(), model.version(), &mut out)?;
    let mut answer = whole(StatusCode::OK, if json_length.is_some() { OCTETS } else { JSON }, out);
    if let Some(length) = json_length.and_then(|length| HeaderValue::from_str(&length.to_string()).ok()) {
        answer.headers_mut().insert(oip::HEADER_LENGTH, length);
    }
    Ok(answer)
}

fn read_protocol(
    model: &Model,
    body: &Bytes,
    headers: &HeaderMap,
    service: &Service,
) -> Result<Inference, ServeError> {
    let json_length = match headers.get(oip::HEADER_LENGTH) {
        None => None,
        Some(value) => {
            let length = value.to_str().ok().and_then(|text| text.trim().parse::<usize>().ok());
            Some(length.ok_or_else(|| {
                ServeError::BadRequest(format!("header {} is not a number of bytes", oip::HEADER_LENGTH))
            })?)
        }
    };
    Ok(oip::read(body, json_length, model.signature(), service.limits())?)
}

/// Deadline and priority, for clients whose protocol has no place for them.
fn from_headers(headers: &HeaderMap, request: &mut Inference) -> Result<(), ServeError> {
    let number = |name: &str| -> Result<Option<f64>, ServeError> {
        let Some(value) = headers.get(name) else { return Ok(None) };
        let number = value.to_str().ok().and_then(|text| text.trim().parse::<f64>().ok());
        let number = number.filter(|number| number.is_finite() && *number >= 0.0 && *number < 1e9);
        number.map(Some).ok_or_else(|| ServeError::BadRequest(format!("header {name} is not a number")))
    };
    if let Some(milliseconds) = number("x-timeout-ms")? {
        request.timeout = Some(Duration::from_secs_f64(milliseconds / 1000.0));
    }
    if let Some(priority) = number("x-priority")? {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "in range, as checked above"
        )]
        let priority = priority as u32;
        request.priority = priority;
    }
    Ok(())
}

fn body_form(headers: &HeaderMap) -> Result<Form, ServeError> {
    let Some(kind) = headers.get(header::CONTENT_TYPE) else { return Ok(Form::Json) };
    let kind = kind.to_str().unwrap_or("?");
    let essence = kind.split(';').next().unwrap_or_default().trim();
    match essence {
        // What curl and simple clients send when nobody told them.
        "" | JSON | "text/json" | "text/plain" | "application/x-www-form-urlencoded" => Ok(Form::Json),
        OCTETS => Ok(Form::Raw),
        NPY | "application/npy" => Ok(Form::Npy),
        other => Err(ServeError::UnsupportedMediaType(format!(
            "content-type `{other}` is not read; {JSON}, {OCTETS} and {NPY} are"
        ))),
    }
}

/// What the client wants; the form of its body if it does not say.
fn answer_form(headers: &HeaderMap, body: Form) -> Result<Form, ServeError> {
    let Some(accepted) = headers.get(header::ACCEPT) else { return Ok(body) };
    let accepted = accepted.to_str().unwrap_or("*/*");
    for item in accepted.split(',') {
        match item.split(';').next().unwrap_or_default().trim() {
            "*/*" | "application/*" => return Ok(body),
            JSON => return Ok(Form::Json),
            OCTETS => return Ok(Form::Raw),
            NPY | "application/npy" => return Ok(Form::Npy),
            _ => {}
        }
    }
    Err(ServeError::NotAcceptable(format!(
        "nothing of `{accepted}` is written; {JSON}, {OCTETS} and {NPY} are"
    )))
}
