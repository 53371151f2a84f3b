//! Requests that run a model.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use cudock_tensor::{Answer, Inference, Limits, Malformed, Signature, npy, oip, predict, raw};
use hyper::StatusCode;
use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::http::request::Parts;

use super::activity::Activity;
use super::answer::{HttpAnswer, whole};
use super::body::{self, ReadBody};
use super::route::ModelName;
use crate::ServeError;
use crate::aside::{INLINE, INLINE_COPY};
use crate::memory::{COPIES, FLAT, Reservation};
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
    activity: &Activity,
) -> Result<HttpAnswer, ServeError> {
    let form = body_form(&head.headers)?;
    let wanted = answer_form(&head.headers, form)?;
    let model = match model {
        Some(model) => service.model(&model.name, model.version.as_deref())?,
        None => service.only_model()?,
    };
    let body = body::read(service, &head.headers, body, activity).await?;
    model.refuse_if_crowded()?;
    let text = if form == Form::Json || has_strings(model.signature()) { body.bytes.len() } else { 0 };
    let (mut request, reservation) =
        parsed(service, &model, body, text, move |bytes, signature, limits| match form {
            Form::Json => predict::read(bytes, signature, limits),
            Form::Raw => raw::read(bytes, signature, limits),
            Form::Npy => npy::read(bytes, signature, limits),
        })
        .await?;
    from_headers(&head.headers, &mut request)?;
    let (id, single, outputs) = (request.id.take(), request.single, std::mem::take(&mut request.outputs));
    let answer = model.infer_since(request, received).await?;
    let writing = move |answer: &Answer| {
        let (signature, mut out) = (model.signature(), Vec::new());
        match wanted {
            Form::Json => {
                predict::write(answer, signature, single, &outputs, &model.device_name(), &mut out)?;
                if let Some(id) = &id {
                    predict::add_id(id, &mut out);
                }
            }
            Form::Raw => return Ok((raw::write(answer, signature, &outputs)?, ())),
            Form::Npy => npy::write(answer, signature, &outputs, &mut out)?,
        }
        Ok((out.into(), ()))
    };
    let (kind, inline) = match wanted {
        Form::Json => (JSON, INLINE),
        Form::Raw => (OCTETS, usize::MAX),
        Form::Npy => (NPY, INLINE_COPY),
    };
    let (bytes, ()) = written(service, reservation, answer, inline, writing).await?;
    Ok(whole(StatusCode::OK, kind, bytes))
}

/// `POST /v2/models/NAME/infer`
pub(crate) async fn infer(
    service: &Service,
    model: &ModelName,
    head: &Parts,
    body: Incoming,
    received: Instant,
    activity: &Activity,
) -> Result<HttpAnswer, ServeError> {
    let model = service.model(&model.name, model.version.as_deref())?;
    let json_length = json_length(&head.headers)?;
    let body = body::read(service, &head.headers, body, activity).await?;
    model.refuse_if_crowded()?;
    let text = json_length.filter(|_| !has_strings(model.signature())).unwrap_or(body.bytes.len());
    let (mut request, reservation) = parsed(service, &model, body, text, move |bytes, signature, limits| {
        oip::read(bytes, json_length, signature, limits)
    })
    .await?;
    from_headers(&head.headers, &mut request)?;
    let (id, outputs, binary_outputs) =
        (request.id.take(), std::mem::take(&mut request.outputs), request.binary_outputs);
    let answer = model.infer_since(request, received).await?;
    let inline = if binary_outputs { INLINE_COPY } else { INLINE };
    let writing = move |answer: &Answer| {
        let (signature, mut out) = (model.signature(), Vec::new());
        let reply = oip::Reply { id: id.as_deref(), outputs: &outputs, binary_outputs };
        let json_length = oip::write(answer, signature, &reply, model.name(), model.version(), &mut out)?;
        Ok((out.into(), json_length))
    };
    let (bytes, json_length) = written(service, reservation, answer, inline, writing).await?;
    let mut answer = whole(StatusCode::OK, if json_length.is_some() { OCTETS } else { JSON }, bytes);
    if let Some(length) = json_length.and_then(|length| HeaderValue::from_str(&length.to_string()).ok()) {
        answer.headers_mut().insert(oip::HEADER_LENGTH, length);
    }
    Ok(answer)
}

/// Turns a body into tensors: on a thread of its own if it has much text to go through, so that other connections are
/// served meanwhile.
async fn parsed(
    service: &Service,
    model: &Arc<Model>,
    body: ReadBody,
    text: usize,
    read: impl FnOnce(&Bytes, &Signature, &Limits) -> Result<Inference, Malformed> + Send + 'static,
) -> Result<(Inference, Reservation), ServeError> {
    let ReadBody { bytes, mut held } = body;
    let limits = *service.limits();
    if text <= INLINE {
        let request = read(&bytes, model.signature(), &limits)?;
        if bytes.len() > FLAT {
            // The tensors lie in the body's memory.
            held.resize(bytes.len() * COPIES)?;
        }
        return Ok((request, held));
    }
    let model = Arc::clone(model);
    let parsing = move || {
        held.resize(bytes.len() + parsed_size(bytes.get(..text).unwrap_or(&bytes), model.signature()))?;
        let request = read(&bytes, model.signature(), &limits)?;
        // While the request waits, the memory of its text can be used again.
        drop(bytes);
        let tensors: usize = request.inputs.iter().map(|tensor| tensor.data().len()).sum();
        held.resize(tensors * COPIES)?;
        Ok((request, held))
    };
    service.aside.run(parsing).await
}

/// Whether a model takes strings, which are gone through one by one in whatever form they come.
fn has_strings(signature: &Signature) -> bool {
    signature.inputs.iter().any(|spec| spec.dtype.size().is_none())
}

/// The most bytes that tensors written as this JSON can take.
fn parsed_size(text: &[u8], signature: &Signature) -> usize {
    if has_strings(signature) {
        // A string of one byte gets a length of four bytes.
        return text.len() * 5;
    }
    #[allow(clippy::naive_bytecount, reason = "the compiler makes vector instructions of it")]
    let elements = text.iter().filter(|&&byte| byte == b',').count() + 1;
    elements * signature.inputs.iter().filter_map(|spec| spec.dtype.size()).max().unwrap_or(8)
}

/// Writes an answer: on a thread of its own if it is larger than `inline`. A large one is counted until its client has
/// taken it.
async fn written<T: Send + 'static>(
    service: &Service,
    mut held: Reservation,
    answer: Answer,
    inline: usize,
    write: impl FnOnce(&Answer) -> Result<(Bytes, T), ServeError> + Send + 'static,
) -> Result<(Bytes, T), ServeError> {
    let size: usize = answer.outputs.iter().map(|tensor| tensor.data().len()).sum();
    let writing = move || {
        if size > FLAT {
            held.resize(size * 2)?;
        }
        let (bytes, extra) = write(&answer)?;
        drop(answer);
        if bytes.len() <= FLAT {
            return Ok((bytes, extra));
        }
        held.resize(bytes.len())?;
        Ok((held.attach(bytes), extra))
    };
    if size <= inline { writing() } else { service.aside.run(writing).await }
}

fn json_length(headers: &HeaderMap) -> Result<Option<usize>, ServeError> {
    let Some(value) = headers.get(oip::HEADER_LENGTH) else { return Ok(None) };
    let length = value.to_str().ok().and_then(|text| text.trim().parse::<usize>().ok());
    let wrong = || ServeError::BadRequest(format!("header {} is not a number of bytes", oip::HEADER_LENGTH));
    length.map(Some).ok_or_else(wrong)
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

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use cudock_tensor::{DType, TensorSpec};

    use super::*;

    #[test]
    fn memory_for_tensors_is_known_before_they_are_read() {
        let signature = |dtype| Signature {
            inputs: vec![TensorSpec {
                name: "x".to_owned(),
                dtype,
                shape: vec![None, None],
                any_rank: false,
            }],
            outputs: Vec::new(),
            batched: true,
        };
        for (dtype, text) in [
            (DType::F32, r#"{"input": [[1,2,3],[4,5,6]]}"#),
            (DType::I64, r#"{"input": [[0,0,0,0,0,0,0,0]]}"#),
            (DType::Bool, r#"{"input": [[true,false]]}"#),
            (DType::String, r#"{"input": [["","","a"],["b","",""]]}"#),
        ] {
            let signature = signature(dtype);
            let read = predict::read(text.as_bytes(), &signature, &Limits::default()).unwrap();
            let size: usize = read.inputs.iter().map(|tensor| tensor.data().len()).sum();
            let most = parsed_size(text.as_bytes(), &signature);
            assert!(size <= most, "{text}: {size} bytes, {most} expected");
        }
    }
}
