//! Requests common to the first version of KServe's protocol and TensorFlow Serving.

use cudock_server::HttpRejection;
use cudock_tensor::ResponseForm;
use cudock_tensor::envelope::Envelope;

use super::foreign_call::ForeignCall;
use crate::http::predict_api::PredictApi;
use crate::http::route::parse_model_name;

pub(super) static API: PredictApi = PredictApi {
    envelope: &Envelope {
        inputs: &[("instances", ResponseForm::Rows), ("inputs", ResponseForm::Columns)],
        bare: false,
        strict: false,
    },
    form: ResponseForm::Rows,
    responds_json: true,
    has_csv: false,
    has_handlers: false,
};

/// `/v1/models/NAME[/versions/VERSION]`, followed by `:predict`, `/metadata` or nothing.
pub(super) fn call(parts: &[&str]) -> Result<Option<ForeignCall>, HttpRejection> {
    let (name, version, rest) = match parts {
        ["v1", "models", name, "versions", version, rest @ ..] => (*name, Some(*version), rest),
        ["v1", "models", name, rest @ ..] => (*name, None, rest),
        _ => return Ok(None),
    };
    let last = version.unwrap_or(name);
    let (last, verb) = last.split_once(':').map_or((last, None), |(last, verb)| (last, Some(verb)));
    let (name, version) = if version.is_some() { (name, Some(last)) } else { (last, None) };
    let model = parse_model_name(name, version)?;
    Ok(match (verb, rest) {
        (None, []) => Some(ForeignCall::Model(model)),
        (None, ["metadata"]) => Some(ForeignCall::Metadata(model)),
        (Some("predict"), []) => Some(ForeignCall::Predict(Some(model))),
        _ => None,
    })
}
