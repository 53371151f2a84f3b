//! `[serve.image]` and `[serve.text]`: how images and texts become tensors; and how scores become labels.

use std::fmt;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// How images become a tensor. Requests may then send JPEG, PNG and WebP files.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ImageOptions {
    /// The input that takes images; the only input if absent.
    pub input: Option<String>,
    /// Size after resizing: the length of the shorter side, or `[width, height]`. That of the input if absent.
    pub resize: Option<ImageSize>,
    /// Size of the centered part that is kept after resizing: one side of a square, or `[width, height]`.
    pub crop: Option<ImageSize>,
    /// Subtracted from each channel after scaling: `[0.485, 0.456, 0.406]`.
    pub mean: Option<Vec<f64>>,
    /// Each channel is divided by it after `mean` is subtracted: `[0.229, 0.224, 0.225]`.
    pub std: Option<Vec<f64>>,
    /// What pixels, 0 to 255, are multiplied with; 1/255 if absent.
    pub scale: Option<f64>,
    /// Order of the dimensions; that of the input's shape if absent.
    pub layout: Option<ImageLayout>,
    /// The channels and their order; `rgb` if absent.
    pub color: Option<ImageColor>,
    /// The filter for resizing; `bilinear` if absent.
    pub filter: Option<ImageFilter>,
    /// Largest image in pixels, as sent; 50 million if absent.
    #[schemars(extend("minimum" = 1))]
    pub max_pixels: Option<u64>,
}

/// One length, or width and height, in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageSize {
    Side(u32),
    Box { width: u32, height: u32 },
}

impl ImageSize {
    /// The largest length. JPEG has the same limit.
    pub const MAX: u32 = 65_535;
}

impl<'de> Deserialize<'de> for ImageSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SizeVisitor)
    }
}

struct SizeVisitor;

impl<'de> Visitor<'de> for SizeVisitor {
    type Value = ImageSize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a length of 1 to {} pixels such as 256, or [width, height]", ImageSize::MAX)
    }

    fn visit_i64<E: de::Error>(self, length: i64) -> Result<ImageSize, E> {
        self.length(length).map(ImageSize::Side)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<ImageSize, A::Error> {
        let mut lengths = [0; 2];
        for (index, length) in lengths.iter_mut().enumerate() {
            let given = list.next_element()?.ok_or_else(|| de::Error::invalid_length(index, &self))?;
            *length = self.length(given)?;
        }
        if list.next_element::<de::IgnoredAny>()?.is_some() {
            return Err(de::Error::invalid_length(3, &self));
        }
        let [width, height] = lengths;
        Ok(ImageSize::Box { width, height })
    }
}

impl SizeVisitor {
    fn length<E: de::Error>(&self, length: i64) -> Result<u32, E> {
        let valid = u32::try_from(length).ok().filter(|length| (1..=ImageSize::MAX).contains(length));
        valid.ok_or_else(|| E::invalid_value(de::Unexpected::Signed(length), self))
    }
}

/// Order of the dimensions of an image tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ImageLayout {
    /// Channels before height and width, as in PyTorch.
    Nchw,
    /// Channels last, as in TensorFlow.
    Nhwc,
}

/// The channels of an image tensor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ImageColor {
    #[default]
    Rgb,
    Bgr,
    /// One channel: the brightness.
    Gray,
}

/// A filter for resizing. All of them average the pixels that are left out, as Pillow does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ImageFilter {
    #[default]
    Bilinear,
    Bicubic,
    Lanczos,
}

/// How texts become tensors of token ids.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TextOptions {
    /// Path of the `tokenizer.json`, relative to this file.
    pub tokenizer: PathBuf,
    /// Most tokens of a text; that of the input's shape or of the tokenizer if absent.
    #[schemars(extend("minimum" = 1))]
    pub max_length: Option<usize>,
    /// Whether longer texts are truncated, which is the default, or rejected.
    pub truncate: Option<bool>,
    /// The input that takes token ids; `input_ids` if absent.
    pub ids: Option<String>,
    /// The input that takes 1 for each token and 0 for padding; `attention_mask` if absent.
    pub mask: Option<String>,
    /// The input that takes the segment of each token; `token_type_ids` if absent.
    pub types: Option<String>,
}

/// What is done to class scores before labels are added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ScoreFunction {
    /// The model's output are the scores.
    #[default]
    None,
    /// The model's output are logits, from which a softmax makes probabilities.
    Softmax,
    /// The model's output are logits of classes that do not exclude each other.
    Sigmoid,
}
