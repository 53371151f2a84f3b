//! Inference requests.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use cudock_inputs::Labels;
use cudock_server::{
    ConnectionActivity, HttpRejection, MAX_INLINE_COPY, MAX_INLINE_PARSE, RequestBody, Reservation,
    SMALL_BODY,
};
use cudock_tensor::envelope;
use cudock_tensor::{
    InferenceRequest, InferenceResponse, RequestError, RequestLimits, RequestedOutput, ResponseForm,
    Signature, Tensor, csv, npy, oip, predict, raw,
};
use cudock_trace::RequestTrace;
use hyper::StatusCode;
use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderName};
use hyper::http::request::Parts;

use super::media::{Media, RequestFormat};
use super::predict_api::{BodyFormat, CSV, JSON, NPY, OCTETS, PredictApi};
use super::response::{HttpResponse, full};
use super::route::ModelName;
use crate::model::Model;
use crate::service::ModelService;
use crate::{COPIES, ServeError};

// Looking up a name that is a string parses it each time.
static TIMEOUT: HeaderName = HeaderName::from_static("x-timeout-ms");
static PRIORITY: HeaderName = HeaderName::from_static("x-priority");
static JSON_LENGTH: HeaderName = HeaderName::from_static(oip::HEADER_LENGTH);

/// `POST /predict`, and the like of other APIs.
pub(crate) async fn predict(
    service: &ModelService,
    api: &'static PredictApi,
    model: Option<&ModelName>,
    head: &Parts,
    body: Incoming,
    received: Instant,
    activity: &ConnectionActivity,
) -> Result<HttpResponse, ServeError> {
    let format = request_format(&head.headers, api)?;
    let wanted = response_format(&head.headers, format, api)?;
    let served = match model {
        Some(model) => service.find(&model.name, model.version.as_deref())?,
        None => service.only_model()?,
    };
    let body = service.resources.read_body(&head.headers, body, activity).await?;
    let timeout = timeout(&head.headers)?;
    let deadline = timeout.and_then(|timeout| received.checked_add(timeout));
    let (model, _first_request) = service.after_first_load(served, deadline).await?;
    model.queue.reject_if_full()?;
    let format = format.guessed(api, &model, &body.bytes);
    let (mut request, reservation) = if let Some(media) = Media::of(format, api, &model, &body.bytes)? {
        media.read(service, &model, api, &head.headers, body).await?
    } else {
        let binary = matches!(format, RequestFormat::Tensors(BodyFormat::Raw | BodyFormat::Npy))
            && !has_strings(&model.signature);
        let text = if binary { 0 } else { body.bytes.len() };
        parse(service, &model, body, text, move |bytes, signature, limits| {
            let request = match format {
                RequestFormat::Tensors(BodyFormat::Raw) => raw::read(bytes, signature, limits)?,
                RequestFormat::Tensors(BodyFormat::Npy) => npy::read(bytes, signature, limits)?,
                RequestFormat::Tensors(BodyFormat::Csv) => csv::read(bytes, signature, limits)?,
                RequestFormat::Tensors(BodyFormat::Json)
                | RequestFormat::Image
                | RequestFormat::Form
                | RequestFormat::PlainText => return envelope::read(bytes, api.envelope, signature, limits),
            };
            Ok(InferenceRequest { form: api.form, ..request })
        })
        .await?
    };
    request.timeout = timeout.or(request.timeout);
    request.priority = priority(&head.headers)?.unwrap_or(request.priority);
    let (id, single, outputs) = (request.id.take(), request.single, std::mem::take(&mut request.outputs));
    let form = request.form;
    let trace = head.extensions.get::<Arc<RequestTrace>>();
    let response = model.infer(request, received, trace.map(AsRef::as_ref)).await?;
    let answered = trace.map(|_| Instant::now());
    let most = match wanted {
        BodyFormat::Json | BodyFormat::Csv => response.most_text(&model.signature),
        BodyFormat::Raw => 0,
        BodyFormat::Npy => response.size(),
    };
    let writing = move |response: &InferenceResponse| {
        let (signature, mut out) = (&model.signature, Vec::new());
        match wanted {
            BodyFormat::Json => {
                let scores = labeled_scores(&model, response, &outputs);
                if let Some((labels, scores)) = scores.filter(|_| api.has_handlers) {
                    labels.write_objects(scores, single, &mut out);
                    return Ok((out.into(), ()));
                }
                let device = model.health.device_name();
                envelope::write(response, signature, single, &outputs, form, &device, &mut out)?;
                if let Some((labels, scores)) = scores.filter(|_| form == ResponseForm::Prediction) {
                    predict::add_key("labels", &mut out, |out| labels.write(scores, single, out));
                }
                if let Some(id) = &id {
                    predict::add_id(id, &mut out);
                }
            }
            BodyFormat::Csv => csv::write(response, signature, &outputs, &mut out)?,
            BodyFormat::Raw => return Ok((raw::write(response, signature, &outputs)?, ())),
            BodyFormat::Npy => npy::write(response, signature, &outputs, &mut out)?,
        }
        Ok((out.into(), ()))
    };
    let (kind, inline) = match wanted {
        BodyFormat::Json => (JSON, MAX_INLINE_PARSE),
        BodyFormat::Raw => (OCTETS, usize::MAX),
        BodyFormat::Npy => (NPY, MAX_INLINE_COPY),
        BodyFormat::Csv => (CSV, MAX_INLINE_PARSE),
    };
    let (bytes, ()) = write(service, reservation, response, inline, most, writing).await?;
    note_reply(trace, answered);
    Ok(full(StatusCode::OK, kind, bytes))
}

/// `POST /v2/models/NAME/infer`
pub(crate) async fn infer(
    service: &ModelService,
    model: &ModelName,
    head: &Parts,
    body: Incoming,
    received: Instant,
    activity: &ConnectionActivity,
) -> Result<HttpResponse, ServeError> {
    let served = service.find(&model.name, model.version.as_deref())?;
    let json_length = json_length(&head.headers)?;
    let body = service.resources.read_body(&head.headers, body, activity).await?;
    let timeout = timeout(&head.headers)?;
    let deadline = timeout.and_then(|timeout| received.checked_add(timeout));
    let (model, _first_request) = service.after_first_load(served, deadline).await?;
    model.queue.reject_if_full()?;
    let text = json_length.filter(|_| !has_strings(&model.signature)).unwrap_or(body.bytes.len());
    let (mut request, reservation) = parse(service, &model, body, text, move |bytes, signature, limits| {
        oip::read(bytes, json_length, signature, limits)
    })
    .await?;
    request.timeout = timeout.or(request.timeout);
    request.priority = priority(&head.headers)?.unwrap_or(request.priority);
    let (id, outputs, binary_outputs) =
        (request.id.take(), std::mem::take(&mut request.outputs), request.binary_outputs);
    let trace = head.extensions.get::<Arc<RequestTrace>>();
    let response = model.infer(request, received, trace.map(AsRef::as_ref)).await?;
    let answered = trace.map(|_| Instant::now());
    let inline = if binary_outputs { MAX_INLINE_COPY } else { MAX_INLINE_PARSE };
    // Each output may be text or bytes.
    let most = response.most_text(&model.signature).max(response.size());
    let writing = move |response: &InferenceResponse| {
        let mut out = Vec::new();
        let reply = oip::ResponseOptions { id: id.as_deref(), outputs: &outputs, binary_outputs };
        let (name, version) = (model.name(), model.version());
        let json_length = oip::write(response, &model.signature, &reply, name, version, &mut out)?;
        Ok((out.into(), json_length))
    };
    let (bytes, json_length) = write(service, reservation, response, inline, most, writing).await?;
    note_reply(trace, answered);
    let mut response = full(StatusCode::OK, if json_length.is_some() { OCTETS } else { JSON }, bytes);
    if let Some(length) = json_length {
        response.headers_mut().insert(JSON_LENGTH.clone(), length.into());
    }
    Ok(response)
}

/// Notes in a trace that the response to a request, which ran until `answered`, has been written.
fn note_reply(trace: Option<&Arc<RequestTrace>>, answered: Option<Instant>) {
    if let (Some(trace), Some(answered)) = (trace, answered) {
        trace.stage("reply", answered, Instant::now());
    }
}

/// The labels of a model, and the output with their scores if it was requested.
fn labeled_scores<'a>(
    model: &'a Model,
    response: &'a InferenceResponse,
    requested: &[RequestedOutput],
) -> Option<(&'a Labels, &'a Tensor)> {
    let labels = model.inputs.labels.as_ref()?;
    let is_requested = requested.is_empty() || requested.iter().any(|output| output.index == labels.output());
    Some((labels, response.outputs.get(labels.output()).filter(|_| is_requested)?))
}

/// Turns a body into tensors: on a worker thread if it contains much text, so that other connections are served
/// meanwhile.
async fn parse(
    service: &ModelService,
    model: &Arc<Model>,
    body: RequestBody,
    text: usize,
    read: impl FnOnce(&Bytes, &Signature, &RequestLimits) -> Result<InferenceRequest, RequestError>
    + Send
    + 'static,
) -> Result<(InferenceRequest, Reservation), ServeError> {
    let RequestBody { bytes, mut held } = body;
    let limits = service.settings.limits;
    if text <= MAX_INLINE_PARSE {
        let request = read(&bytes, &model.signature, &limits)?;
        if bytes.len() > SMALL_BODY {
            // The tensors are slices of the body.
            held.resize(bytes.len() * COPIES)?;
        }
        return Ok((request, held));
    }
    let model = Arc::clone(model);
    let parsing = move || {
        held.resize(bytes.len() + parsed_size(bytes.get(..text).unwrap_or(&bytes), &model.signature))?;
        let request = read(&bytes, &model.signature, &limits)?;
        // The text is not needed while the request is queued.
        drop(bytes);
        let tensors: usize = request.inputs.iter().map(|tensor| tensor.data().len()).sum();
        held.resize(tensors * COPIES)?;
        Ok((request, held))
    };
    service.resources.workers.run(parsing).await?
}

/// Whether a model has string inputs, which are processed one by one in every format.
fn has_strings(signature: &Signature) -> bool {
    signature.inputs.iter().any(|spec| spec.dtype.size().is_none())
}

/// Upper bound of the size of tensors written as this JSON or CSV.
fn parsed_size(text: &[u8], signature: &Signature) -> usize {
    if has_strings(signature) {
        // A string of one byte gets a length of four bytes.
        return text.len() * 5;
    }
    #[allow(clippy::naive_bytecount, reason = "the compiler makes vector instructions of it")]
    let elements = text.iter().filter(|&&byte| byte == b',' || byte == b'\n').count() + 1;
    elements * signature.inputs.iter().filter_map(|spec| spec.dtype.size()).max().unwrap_or(8)
}

/// Writes a response: on a worker thread if it is larger than `inline`. A large one keeps its reservation until its
/// client has read it; that of the tensors is their own. `most` is the most bytes that are written.
async fn write<T: Send + 'static>(
    service: &ModelService,
    mut held: Reservation,
    response: InferenceResponse,
    inline: usize,
    most: usize,
    write: impl FnOnce(&InferenceResponse) -> Result<(Bytes, T), ServeError> + Send + 'static,
) -> Result<(Bytes, T), ServeError> {
    let size = response.size();
    let writing = move || {
        if size > SMALL_BODY {
            held.resize(most)?;
        }
        let (bytes, extra) = write(&response)?;
        drop(response);
        if most == 0 || bytes.len() <= SMALL_BODY {
            return Ok((bytes, extra));
        }
        held.resize(bytes.len())?;
        Ok((held.attach(bytes), extra))
    };
    if size <= inline { writing() } else { service.resources.workers.run(writing).await? }
}

fn json_length(headers: &HeaderMap) -> Result<Option<usize>, ServeError> {
    let Some(value) = headers.get(&JSON_LENGTH) else { return Ok(None) };
    let length = value.to_str().ok().and_then(|text| text.trim().parse().ok());
    let message = || format!("header {} is not a number of bytes", oip::HEADER_LENGTH);
    length.map(Some).ok_or_else(|| HttpRejection::BadRequest(message()).into())
}

/// The priority, for clients whose protocol has no field for it.
fn priority(headers: &HeaderMap) -> Result<Option<u32>, HttpRejection> {
    let priority = number(headers, &PRIORITY)?;
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "in range, as `number` checks"
    )]
    Ok(priority.map(|priority| priority as u32))
}

/// The time that a client gives us from the arrival of its request.
fn timeout(headers: &HeaderMap) -> Result<Option<Duration>, HttpRejection> {
    let milliseconds = number(headers, &TIMEOUT)?;
    Ok(milliseconds.map(|milliseconds| Duration::from_secs_f64(milliseconds / 1000.0)))
}

fn number(headers: &HeaderMap, name: &HeaderName) -> Result<Option<f64>, HttpRejection> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    let number = value.to_str().ok().and_then(|text| text.trim().parse::<f64>().ok());
    let number = number.filter(|number| number.is_finite() && *number >= 0.0 && *number < 1e9);
    number.map(Some).ok_or_else(|| HttpRejection::BadRequest(format!("header {name} is not a number")))
}

fn request_format(headers: &HeaderMap, api: &PredictApi) -> Result<RequestFormat, HttpRejection> {
    let Some(kind) = headers.get(header::CONTENT_TYPE) else { return Ok(RequestFormat::JSON) };
    let kind = essence(kind.to_str().unwrap_or("?"));
    RequestFormat::of(kind, api).ok_or_else(|| {
        HttpRejection::UnsupportedMediaType(format!(
            "unsupported content-type `{kind}`; supported: {JSON}, {OCTETS}, {NPY}, text/plain, and for models that \
             take images image/jpeg, image/png, image/webp, multipart/form-data"
        ))
    })
}

/// A media type without its parameters.
fn essence(media_type: &str) -> &str {
    media_type.split(';').next().unwrap_or_default().trim()
}

/// The format that the client accepts; by default that of its body, or JSON.
fn response_format(
    headers: &HeaderMap,
    body: RequestFormat,
    api: &PredictApi,
) -> Result<BodyFormat, ServeError> {
    let body = match body {
        _ if api.responds_json => BodyFormat::Json,
        RequestFormat::Tensors(format @ (BodyFormat::Raw | BodyFormat::Npy)) => format,
        _ => BodyFormat::Json,
    };
    let Some(accepted) = headers.get(header::ACCEPT) else { return Ok(body) };
    let accepted = accepted.to_str().unwrap_or("*/*");
    let format = accepted.split(',').map(essence).find_map(|kind| match kind {
        "*/*" | "application/*" => Some(body),
        kind => BodyFormat::of(kind, api),
    });
    format.ok_or_else(|| {
        ServeError::NotAcceptable(format!(
            "cannot respond with `{accepted}`; supported: {JSON}, {OCTETS}, {NPY}"
        ))
    })
}

#[cfg(test)]
mod tests {
    use cudock_tensor::{DType, TensorSpec};

    use super::*;

    #[test]
    fn the_size_of_tensors_is_bounded_before_they_are_parsed() {
        for (dtype, text) in [
            (DType::F32, r#"{"input": [[1,2,3],[4,5,6]]}"#),
            (DType::I64, r#"{"input": [[0,0,0,0,0,0,0,0]]}"#),
            (DType::Bool, r#"{"input": [[true,false]]}"#),
            (DType::String, r#"{"input": [["","","a"],["b","",""]]}"#),
        ] {
            let inputs = vec![TensorSpec::new("x", dtype, [None, None])];
            let signature = Signature { inputs, outputs: Vec::new(), batched: true };
            let read = predict::read(text.as_bytes(), &signature, &RequestLimits::default()).unwrap();
            let size: usize = read.inputs.iter().map(|tensor| tensor.data().len()).sum();
            let most = parsed_size(text.as_bytes(), &signature);
            assert!(size <= most, "{text}: {size} bytes, {most} expected");
        }
        let inputs = vec![TensorSpec::new("x", DType::F32, [None, Some(1)])];
        let signature = Signature { inputs, outputs: Vec::new(), batched: true };
        let column = "1\n".repeat(1000);
        let read = csv::read(column.as_bytes(), &signature, &RequestLimits::default()).unwrap();
        let size: usize = read.inputs.iter().map(|tensor| tensor.data().len()).sum();
        assert!((4000..=parsed_size(column.as_bytes(), &signature)).contains(&size), "{size}");
    }
}
