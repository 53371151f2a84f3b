//! `{"input": …}` and its response `{"prediction": …, "device": …}`: the format for requests written by hand.
//!
//! The rows of a model that takes JSON are any values: `{"input": [{"age": 3}, …]}` has the response
//! `{"prediction": [{"risk": 0.1}, …], …}`.
//!
//! Other keys are `"id"`, `"outputs": ["name", …]` and `"parameters": {"priority": 1, "timeout_ms": 250}`. An unknown
//! key is rejected instead of ignored: it is a typo, and its author would wonder why it has no effect.

pub(crate) mod inputs;
pub(crate) mod parameters;
pub(crate) mod response_form;

use crate::envelope::{self, PREDICT};
use crate::json::write as text;
use crate::{
    InferenceRequest, InferenceResponse, RequestError, RequestLimits, RequestedOutput, ResponseError,
    ResponseForm, Signature,
};

/// Parses a request. The input is one row or an array of rows; several inputs are an object by name.
pub fn read(
    body: &[u8],
    signature: &Signature,
    limits: &RequestLimits,
) -> Result<InferenceRequest, RequestError> {
    envelope::read(body, &PREDICT, signature, limits)
}

/// Appends the response: the outputs in `requested`, or all if it is empty. One output is an array, several are an
/// object by name. `single` omits the row dimension. NaN and infinities, which JSON lacks, become null. Nothing is
/// appended on error.
pub fn write(
    response: &InferenceResponse,
    signature: &Signature,
    single: bool,
    requested: &[RequestedOutput],
    device: &str,
    out: &mut Vec<u8>,
) -> Result<(), ResponseError> {
    envelope::write(response, signature, single, requested, ResponseForm::Prediction, device, out)
}

/// Adds the client's id to a response of [`write()`].
pub fn add_id(id: &str, out: &mut Vec<u8>) {
    add_key("id", out, |out| text::string(id, out));
}

/// Adds a key, whose value `write` appends, to a response of [`write()`].
pub fn add_key(key: &str, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    if out.pop_if(|last| *last == b'}').is_some() {
        out.push(b',');
        text::string(key, out);
        out.push(b':');
        write(out);
        out.push(b'}');
    }
}
