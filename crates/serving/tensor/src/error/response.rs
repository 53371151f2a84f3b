//! Errors of responses.

use crate::json::write::NotText;
use crate::{InferenceResponse, RequestedOutput, Signature, Tensor};

/// The response cannot be written in the requested format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResponseError {
    /// JSON can hold only text.
    #[error("output `{output}`: string {index} is not UTF-8; request it as binary")]
    NotText { output: String, index: usize },
    /// The format cannot hold strings.
    #[error("output `{output}`: {form} cannot hold strings; request JSON")]
    Strings { output: String, form: &'static str },
    /// The format holds only one output.
    #[error("{form} holds one output, not {count}; request a single output, or JSON")]
    Several { form: &'static str, count: usize },
    /// The model returned fewer outputs than its signature has.
    #[error("the model returned no output `{0}`")]
    Missing(String),
}

impl ResponseError {
    pub(crate) fn not_text(output: &str, NotText(index): NotText) -> Self {
        Self::NotText { output: output.to_owned(), index }
    }
}

/// Appends what `write` writes; on error, nothing.
pub(crate) fn append<T>(
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> Result<T, ResponseError>,
) -> Result<T, ResponseError> {
    let start = out.len();
    write(out).inspect_err(|_| out.truncate(start))
}

impl InferenceResponse {
    /// The requested outputs by name: those in `requested`, or all in signature order if it is empty.
    pub(crate) fn requested<'a>(
        &'a self,
        requested: &[RequestedOutput],
        signature: &'a Signature,
    ) -> Result<Vec<(&'a str, &'a Tensor)>, ResponseError> {
        let one = |index: usize| {
            let name = signature.outputs.get(index).map(|spec| spec.name.as_str());
            let tensor = self.outputs.get(index);
            name.zip(tensor).ok_or_else(|| ResponseError::Missing(name.unwrap_or("?").to_owned()))
        };
        if requested.is_empty() {
            (0..signature.outputs.len()).map(one).collect()
        } else {
            requested.iter().map(|requested| one(requested.index)).collect()
        }
    }

    /// The single requested output, for formats that hold no more.
    pub(crate) fn only<'a>(
        &'a self,
        requested: &[RequestedOutput],
        signature: &'a Signature,
        form: &'static str,
    ) -> Result<(&'a str, &'a Tensor), ResponseError> {
        match self.requested(requested, signature)?.as_slice() {
            [one] => Ok(*one),
            several => Err(ResponseError::Several { form, count: several.len() }),
        }
    }
}
