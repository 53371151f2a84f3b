//! The container contract of Amazon SageMaker:
//! <https://docs.aws.amazon.com/sagemaker/latest/dg/your-algorithms-inference-code.html>.

use cudock_tensor::ResponseForm;
use cudock_tensor::envelope::Envelope;

use super::foreign_call::ForeignCall;
use crate::http::predict_api::PredictApi;

pub(super) static API: PredictApi = PredictApi {
    envelope: &Envelope {
        inputs: &[
            ("instances", ResponseForm::Rows),
            ("inputs", ResponseForm::Columns),
            ("input", ResponseForm::Prediction),
        ],
        bare: true,
        strict: false,
    },
    form: ResponseForm::Bare,
    responds_json: true,
    has_csv: true,
    has_handlers: false,
};

pub(super) fn call(parts: &[&str]) -> Option<ForeignCall> {
    match parts {
        ["ping"] => Some(ForeignCall::Probe),
        ["invocations"] => Some(ForeignCall::Predict(None)),
        _ => None,
    }
}
