//! Settings of images, texts and labels.

use std::path::{Path, PathBuf};

use cudock_project::{ImageOptions, ScoreFunction, ServeOptions, TextOptions};

/// How images and texts become tensors, and scores labels. They are resolved when the signature of the model is known.
#[derive(Clone, Debug, Default)]
pub struct InputSettings {
    pub image: Option<ImageOptions>,
    pub text: Option<TextOptions>,
    pub labels: Option<PathBuf>,
    pub top: Option<usize>,
    pub scores: Option<ScoreFunction>,
}

impl InputSettings {
    pub(super) fn new(options: &ServeOptions) -> Self {
        Self {
            image: options.image.clone(),
            text: options.text.clone(),
            labels: options.labels.clone(),
            top: options.top,
            scores: options.scores,
        }
    }

    /// The files that they name.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        let tokenizer = self.text.iter().map(|text| &text.tokenizer);
        tokenizer.chain(&self.labels).map(PathBuf::as_path)
    }
}
