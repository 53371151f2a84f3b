//! Bodies at `/predict` that are not tensors: which types there are, and how images and texts become tensors.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use cudock_inputs::{ImageFile, ImageInput, InputFile, TextInput, is_image, read_base64, read_form};
use cudock_server::{HttpRejection, MAX_INLINE_PARSE, RequestBody, Reservation};
use cudock_tensor::{
    DType, InferenceRequest, RequestError, RequestLimits, Signature, Tensor, check, elements, envelope,
};
use futures_util::future::try_join_all;
use hyper::header::{self, HeaderMap};

use super::predict_api::{BodyFormat, PredictApi};
use crate::model::Model;
use crate::service::ModelService;
use crate::{COPIES, ServeError};

/// Longest text that is tokenized on the I/O thread, in bytes.
const MAX_INLINE_TEXT: usize = 2 << 10;

/// The format of the body of a request to `/predict`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestFormat {
    /// One of the formats that responses have, too.
    Tensors(BodyFormat),
    /// An image file.
    Image,
    /// A form with files.
    Form,
    /// A text, or JSON if the model takes no texts.
    PlainText,
}

impl RequestFormat {
    pub(super) const JSON: Self = Self::Tensors(BodyFormat::Json);

    pub(super) fn of(kind: &str, api: &PredictApi) -> Option<Self> {
        match kind {
            // The last two are what curl and simple clients send by default.
            "text/json" | "" | "application/x-www-form-urlencoded" => Some(Self::JSON),
            "multipart/form-data" => Some(Self::Form),
            "text/plain" => Some(Self::PlainText),
            // The first bytes of a file say more about its type.
            kind if kind.starts_with("image/") => Some(Self::Image),
            kind => BodyFormat::of(kind, api).map(Self::Tensors),
        }
    }

    /// The format of a body whose type the client did not state, or stated to be any bytes.
    pub(super) fn guessed(self, api: &PredictApi, model: &Model, body: &[u8]) -> Self {
        if !api.has_handlers || !matches!(self, Self::Tensors(BodyFormat::Json | BodyFormat::Raw)) {
            return self;
        }
        if model.inputs.image.is_some() && is_image(body) {
            return Self::Image;
        }
        let is_json = matches!(body.trim_ascii_start().first(), Some(b'{' | b'[' | b'"'));
        if self == Self::JSON && model.inputs.text.is_some() && !is_json { Self::PlainText } else { self }
    }
}

/// The content of a body.
pub(super) enum Media {
    /// An image file.
    Image(Arc<ImageInput>),
    /// A form with image files.
    Form(Arc<ImageInput>),
    /// JSON with image files as base64.
    ImagesInJson(Arc<ImageInput>),
    Text(Arc<TextInput>),
    /// JSON with texts.
    TextsInJson(Arc<TextInput>),
}

impl Media {
    /// The content of the body; `None` if it is tensors.
    pub(super) fn of(
        format: RequestFormat,
        api: &PredictApi,
        model: &Model,
        body: &[u8],
    ) -> Result<Option<Self>, HttpRejection> {
        let (image, text) = (model.inputs.image.as_ref(), model.inputs.text.as_ref());
        let image_or_error = || {
            image.cloned().ok_or_else(|| {
                let name = model.name();
                let message = format!(
                    "model `{name}` takes no images; `[serve.image]` in its cudock.toml enables them"
                );
                HttpRejection::UnsupportedMediaType(message)
            })
        };
        let has_strings = |signature: &Signature, index: usize| {
            signature.inputs.get(index).is_some_and(|spec| envelope::is_text(body, api.envelope, &spec.name))
        };
        Ok(match format {
            RequestFormat::Image => Some(Self::Image(image_or_error()?)),
            RequestFormat::Form => Some(Self::Form(image_or_error()?)),
            RequestFormat::PlainText => text.cloned().map(Self::Text),
            RequestFormat::Tensors(BodyFormat::Json) => image
                .filter(|image| has_strings(image.request_signature(), image.index()))
                .map(|image| Self::ImagesInJson(Arc::clone(image)))
                .or_else(|| {
                    let text = text.filter(|text| has_strings(text.request_signature(), 0))?;
                    Some(Self::TextsInJson(Arc::clone(text)))
                }),
            RequestFormat::Tensors(_) => None,
        })
    }

    /// Turns a body into tensors.
    pub(super) async fn read(
        self,
        service: &ModelService,
        model: &Arc<Model>,
        api: &'static PredictApi,
        headers: &HeaderMap,
        body: RequestBody,
    ) -> Result<(InferenceRequest, Reservation), ServeError> {
        let without_json = InferenceRequest { form: api.form, ..InferenceRequest::default() };
        match self {
            Self::Image(input) => {
                let open = move |body: &Bytes, _: &RequestLimits| {
                    let file = InputFile { name: "image".to_owned(), bytes: body.clone() };
                    Ok((vec![file], InferenceRequest { single: true, ..without_json }))
                };
                read_images(service, model, &input, body, open).await
            }
            Self::Form(input) => {
                let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
                let content_type = content_type.unwrap_or_default().to_owned();
                let open = move |body: &Bytes, _: &RequestLimits| {
                    Ok((read_form(body, &content_type)?, without_json))
                };
                read_images(service, model, &input, body, open).await
            }
            Self::ImagesInJson(input) => {
                let json = Arc::clone(&input);
                let open = move |body: &Bytes, limits: &RequestLimits| {
                    let request = envelope::read(body, api.envelope, json.request_signature(), limits)?;
                    let texts = request.inputs.get(json.index()).into_iter().flat_map(Tensor::strings);
                    let file = |(index, text)| {
                        let name = format!("input[{index}]");
                        // A client may say that a string is bytes, and then it is decoded.
                        let is_decoded = is_image(text);
                        let bytes =
                            if is_decoded { Ok(Bytes::copy_from_slice(text)) } else { read_base64(text) };
                        let bytes = bytes.map_err(|error| error.of(&name))?;
                        Ok(InputFile { name, bytes })
                    };
                    let files = texts.enumerate().map(file).collect::<Result<_, ServeError>>()?;
                    Ok((files, request))
                };
                read_images(service, model, &input, body, open).await
            }
            Self::Text(input) => {
                let read = move |body: &Bytes, _: &RequestLimits| {
                    Ok(InferenceRequest { inputs: vec![one_string(body)?], single: true, ..without_json })
                };
                read_texts(service, model, input, body, read).await
            }
            Self::TextsInJson(input) => {
                let json = Arc::clone(&input);
                let read = move |body: &Bytes, limits: &RequestLimits| {
                    Ok(envelope::read(body, api.envelope, json.request_signature(), limits)?)
                };
                read_texts(service, model, input, body, read).await
            }
        }
    }
}

/// Decodes the files that `open` finds in a body, each on a worker thread. `open` also returns the rest of the request.
async fn read_images(
    service: &ModelService,
    model: &Arc<Model>,
    input: &Arc<ImageInput>,
    body: RequestBody,
    open: impl FnOnce(&Bytes, &RequestLimits) -> Result<(Vec<InputFile>, InferenceRequest), ServeError>
    + Send
    + 'static,
) -> Result<(InferenceRequest, Reservation), ServeError> {
    let RequestBody { bytes, mut held } = body;
    let (limits, length) = (service.settings.limits, bytes.len());
    let (opened_input, signature) = (Arc::clone(input), Arc::clone(&model.signature));
    let opening = move || -> Result<_, ServeError> {
        // Base64 text is copied once, and decoded.
        held.cover(length * COPIES)?;
        let (files, request) = open(&bytes, &limits)?;
        let files = opened_input.open(files)?;
        let shape = opened_input.shape(&files, &limits)?;
        let spec = signature.inputs.get(opened_input.index());
        let dtype = spec.map_or(DType::F32, |spec| spec.dtype);
        let size = elements(&shape).unwrap_or(0) * dtype.size().unwrap_or(1);
        held.cover(length * COPIES + size)?;
        Ok((files, request, held, dtype, shape, size))
    };
    let opened =
        if length <= MAX_INLINE_PARSE { opening() } else { service.resources.workers.run(opening).await? };
    let (files, mut request, mut held, dtype, shape, size) = opened?;
    let mut room = BytesMut::zeroed(size);
    let row_size = size / files.len().max(1);
    let jobs = files.into_iter().map(|file| decode(service, input, file, room.split_to(row_size)));
    let rows = try_join_all(jobs).await?;
    // They are parts of one buffer, which are not copied when they are joined.
    let data = rows.into_iter().reduce(|mut all, row| {
        all.unsplit(row);
        all
    });
    let tensor = Tensor::new(dtype, shape, data.unwrap_or_default().freeze())
        .map_err(|error| RequestError::Mismatch(error.to_string()))?;
    held.resize(size * COPIES)?;
    if let Some(slot) = request.inputs.get_mut(input.index()) {
        *slot = tensor;
    } else {
        let name = model.signature.inputs.get(input.index()).map(|spec| spec.name.clone());
        let named = vec![(name.unwrap_or_default(), tensor)];
        request.inputs = InferenceRequest::from_tensors(named, &model.signature)?.inputs;
    }
    request.rows = check(&request.inputs, &model.signature)?;
    Ok((request, held))
}

/// Decodes one file into its row, on a worker thread.
async fn decode(
    service: &ModelService,
    input: &Arc<ImageInput>,
    file: ImageFile,
    mut row: BytesMut,
) -> Result<BytesMut, ServeError> {
    let (input, budget) = (Arc::clone(input), Arc::clone(&service.resources.budget));
    let decoding = move || {
        let mut held = Reservation::new(&budget);
        held.cover(file.memory())?;
        input.decode(&file, &mut row)?;
        Ok(row)
    };
    service.resources.workers.run(decoding).await?
}

/// Tokenizes the texts that `read` finds in a body: on a worker thread if they are long.
async fn read_texts(
    service: &ModelService,
    model: &Arc<Model>,
    input: Arc<TextInput>,
    body: RequestBody,
    read: impl FnOnce(&Bytes, &RequestLimits) -> Result<InferenceRequest, ServeError> + Send + 'static,
) -> Result<(InferenceRequest, Reservation), ServeError> {
    let RequestBody { bytes, mut held } = body;
    let (limits, length) = (service.settings.limits, bytes.len());
    let signature = Arc::clone(&model.signature);
    let reading = move || -> Result<_, ServeError> {
        held.cover(length * COPIES + input.memory(length))?;
        let mut request = read(&bytes, &limits)?;
        if let Some(texts) = request.inputs.first() {
            request.inputs = input.encode(texts, &limits)?;
        }
        request.rows = check(&request.inputs, &signature)?;
        let tensors: usize = request.inputs.iter().map(|tensor| tensor.data().len()).sum();
        held.resize(tensors * COPIES)?;
        Ok((request, held))
    };
    if length <= MAX_INLINE_TEXT { reading() } else { service.resources.workers.run(reading).await? }
}

/// A tensor of one string.
fn one_string(text: &[u8]) -> Result<Tensor, RequestError> {
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    let data = [&length.to_le_bytes(), text].concat();
    Tensor::new(DType::String, vec![1], data.into())
        .map_err(|error| RequestError::Mismatch(error.to_string()))
}
