//! Inputs of a model other than tensors, and the labels in its responses.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cudock_inputs::{ImageInput, Labels, OptionError, TextInput};
use cudock_project::ServeOptions;
use cudock_tensor::Signature;

/// The settings of a model's inputs, resolved for its signature.
#[derive(Default)]
pub(crate) struct ModelInputs {
    pub(crate) image: Option<Arc<ImageInput>>,
    pub(crate) text: Option<Arc<TextInput>>,
    pub(crate) labels: Option<Labels>,
}

impl ModelInputs {
    pub(crate) fn load(options: &ServeOptions, signature: &Signature) -> Result<Self, OptionError> {
        let ServeOptions { image, text, labels, top, scores, .. } = options;
        let image = image.as_ref().map(|options| ImageInput::new(options, signature).map(Arc::new));
        let text = text.as_ref().map(|options| TextInput::load(options, signature).map(Arc::new));
        let unused = [("serve.top", top.is_some()), ("serve.scores", scores.is_some())];
        if let Some((key, _)) = unused.into_iter().find(|(_, is_set)| labels.is_none() && *is_set) {
            return Err(OptionError { key, problem: "it has no effect without `serve.labels`".to_owned() });
        }
        let labels = labels.as_ref().map(|file| Labels::load(file, *top, *scores, signature));
        Ok(Self { image: image.transpose()?, text: text.transpose()?, labels: labels.transpose()? })
    }

    /// The bytes of an element of padding for each input; zero where there are none.
    pub(crate) fn padding(&self) -> Vec<Vec<u8>> {
        self.text.as_ref().map(|text| text.padding()).unwrap_or_default()
    }
}

/// The files that options name for inputs.
pub(super) fn files(options: &ServeOptions) -> impl Iterator<Item = &Path> {
    let tokenizer = options.text.iter().map(|text| &text.tokenizer);
    tokenizer.chain(&options.labels).map(PathBuf::as_path)
}
