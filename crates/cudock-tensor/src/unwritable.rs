//! Why an answer cannot be written in the form a client asked for.

use crate::json::write::NotText;
use crate::{Answer, Signature, Tensor, WantedOutput};

/// Why an answer cannot be written in the form a client asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unwritable {
    /// JSON holds text only.
    #[error("output `{output}`: string {index} is not UTF-8; ask for it as binary")]
    NotText {
        /// The output's name.
        output: String,
        /// The string's place in it.
        index: usize,
    },
    /// The form has no place for values of this type.
    #[error("output `{output}`: {form} has no place for strings; ask for JSON")]
    Strings {
        /// The output's name.
        output: String,
        /// The form.
        form: &'static str,
    },
    /// The form has room for one output.
    #[error("{form} holds one output, not {count}; name the one you want, or ask for JSON")]
    Several {
        /// The form.
        form: &'static str,
        /// How many there would be.
        count: usize,
    },
    /// The model gave less than its signature says.
    #[error("the model gave no output `{0}`")]
    Missing(String),
}

impl Unwritable {
    pub(crate) fn not_text(output: &str, NotText(index): NotText) -> Self {
        Self::NotText { output: output.to_owned(), index }
    }
}

impl Answer {
    /// The outputs asked for, by name: those in `wanted`, or all in the signature's order if it is empty.
    pub(crate) fn wanted<'a>(
        &'a self,
        wanted: &[WantedOutput],
        signature: &'a Signature,
    ) -> Result<Vec<(&'a str, &'a Tensor)>, Unwritable> {
        let one = |index: usize| {
            let name = signature.outputs.get(index).map(|spec| spec.name.as_str());
            let tensor = self.outputs.get(index);
            name.zip(tensor).ok_or_else(|| Unwritable::Missing(name.unwrap_or("?").to_owned()))
        };
        if wanted.is_empty() {
            (0..signature.outputs.len()).map(one).collect()
        } else {
            wanted.iter().map(|wanted| one(wanted.index)).collect()
        }
    }

    /// The one output asked for, for forms that hold no more.
    pub(crate) fn only<'a>(
        &'a self,
        wanted: &[WantedOutput],
        signature: &'a Signature,
        form: &'static str,
    ) -> Result<(&'a str, &'a Tensor), Unwritable> {
        match self.wanted(wanted, signature)?.as_slice() {
            [one] => Ok(*one),
            several => Err(Unwritable::Several { form, count: several.len() }),
        }
    }
}
