//! The APIs that take inference requests: where their inputs are, and the formats of their bodies.

use cudock_tensor::ResponseForm;
use cudock_tensor::envelope::{self, Envelope};

/// The bodies of an API like `/predict`, as far as headers do not say.
#[derive(Debug)]
pub(crate) struct PredictApi {
    pub(crate) envelope: &'static Envelope,
    /// The JSON form of a response to any other format.
    pub(crate) form: ResponseForm,
    /// Whether a response is JSON unless its client accepts only another format. Otherwise, it has that of the request.
    pub(crate) responds_json: bool,
    /// Whether bodies may be CSV.
    pub(crate) has_csv: bool,
    /// Whether it has TorchServe's default handlers: a body without a type may be an image or a text, and the response of a
    /// model with labels is their scores by label.
    pub(crate) has_handlers: bool,
}

/// The API of `/predict`.
pub(crate) static PREDICT: PredictApi = PredictApi {
    envelope: &envelope::PREDICT,
    form: ResponseForm::Prediction,
    responds_json: false,
    has_csv: false,
    has_handlers: false,
};

/// The format of the body of a response of `/predict`, and of tensors in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyFormat {
    Json,
    Raw,
    Npy,
    Csv,
}

impl BodyFormat {
    pub(super) fn of(kind: &str, api: &PredictApi) -> Option<Self> {
        match kind {
            CSV if api.has_csv => Some(Self::Csv),
            JSON => Some(Self::Json),
            OCTETS => Some(Self::Raw),
            NPY | "application/npy" => Some(Self::Npy),
            _ => None,
        }
    }
}

pub(super) const JSON: &str = "application/json";
pub(super) const OCTETS: &str = "application/octet-stream";
pub(super) const NPY: &str = "application/x-npy";
pub(super) const CSV: &str = "text/csv";
