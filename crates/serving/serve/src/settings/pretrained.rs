//! The inputs and labels of a pretrained model, from the files that transformers and sentence-transformers save beside it.
//!
//! Only what says how texts and images become tensors, and what classes are called, is read. Settings that the server cannot
//! follow exactly are an error: a model that is given other pixels than in training answers wrongly, and says nothing.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use cudock_model::is_pretrained;
use cudock_project::{ImageFilter, ImageOptions, ImageSize, ScoreFunction, ServeOptions, TextOptions};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::SettingsError;

/// The largest file that is read; a list of labels is far smaller.
const MAX_FILE: u64 = 16 << 20;
/// Lengths to which texts are padded, so that texts of many lengths share batches.
const LENGTHS: [usize; 6] = [16, 32, 64, 128, 256, 512];
/// `model_max_length` of tokenizers that have no limit is a number of thirty digits.
const NO_LIMIT: f64 = 1e6;
/// Model types whose positions begin after the number of the padding token.
const SHIFTED_POSITIONS: [&str; 8] =
    ["camembert", "data2vec-text", "ibert", "longformer", "mpnet", "roberta", "xlm-roberta", "xmod"];

/// `config.json`, as far as it is needed.
#[derive(Deserialize)]
struct PretrainedConfig {
    #[serde(default)]
    architectures: Vec<String>,
    #[serde(default)]
    model_type: String,
    max_position_embeddings: Option<usize>,
    pad_token_id: Option<i64>,
    problem_type: Option<String>,
}

#[derive(Deserialize)]
struct TokenizerConfig {
    model_max_length: Option<f64>,
}

#[derive(Deserialize)]
struct SentenceConfig {
    max_seq_length: Option<usize>,
    #[serde(default)]
    do_lower_case: bool,
}

/// `preprocessor_config.json` of an image model.
#[derive(Deserialize)]
struct Preprocessor {
    do_resize: Option<bool>,
    size: Option<Extent>,
    crop_pct: Option<f64>,
    do_center_crop: Option<bool>,
    crop_size: Option<Extent>,
    do_rescale: Option<bool>,
    rescale_factor: Option<f64>,
    do_normalize: Option<bool>,
    image_mean: Option<Vec<f64>>,
    image_std: Option<Vec<f64>>,
    resample: Option<u8>,
    #[serde(default)]
    include_top: bool,
    #[serde(default)]
    rescale_offset: bool,
    #[serde(default)]
    do_pad: bool,
}

/// A size in any of the forms in which libraries have written it.
#[derive(Clone, Copy, Deserialize)]
#[serde(untagged)]
enum Extent {
    Side(u32),
    Box { height: u32, width: u32 },
    Shortest { shortest_edge: u32 },
}

/// The options that the directory of a pretrained model describes, but for those that are given. Other models have none.
pub(super) fn described(model: &Path, given: &ServeOptions) -> Result<ServeOptions, SettingsError> {
    if !is_pretrained(model) {
        return Ok(ServeOptions::default());
    }
    let config: PretrainedConfig =
        read(model, "config.json")?.ok_or(SettingsError::NotFound(model.join("config.json")))?;
    let architecture = config.architectures.first().map(String::as_str).unwrap_or_default();
    let mut options = ServeOptions::default();
    let classifies = ["ForImageClassification", "ForSequenceClassification"];
    // The score of each token is not that of a class of the row.
    if given.labels.is_none() && classifies.iter().any(|end| architecture.ends_with(end)) {
        options.labels = Some(model.join("config.json"));
        options.scores = given.scores.is_none().then(|| config.scores());
    }
    let takes_images = architecture.ends_with("ForImageClassification");
    if takes_images && given.image.is_none() {
        options.image = read::<Preprocessor>(model, PREPROCESSOR)?
            .map(|preprocessor| preprocessor.options(model))
            .transpose()?;
    }
    let tokenizer = model.join("tokenizer.json");
    if !takes_images && given.text.is_none() && tokenizer.is_file() {
        let max_length = config.max_length(model)?;
        // Where each token has a score, those of padding would be in the response.
        let scores_tokens = architecture.ends_with("ForTokenClassification");
        options.pad_sizes = (given.pad_sizes.is_none() && !scores_tokens).then(|| lengths(max_length));
        let defaults =
            TextOptions { tokenizer, max_length, truncate: None, ids: None, mask: None, types: None };
        options.text = Some(defaults);
    }
    Ok(options)
}

const PREPROCESSOR: &str = "preprocessor_config.json";

impl PretrainedConfig {
    fn scores(&self) -> ScoreFunction {
        match self.problem_type.as_deref() {
            Some("multi_label_classification") => ScoreFunction::Sigmoid,
            Some("regression") => ScoreFunction::None,
            _ => ScoreFunction::Softmax,
        }
    }

    /// The most tokens of a text: the least of what the model, its tokenizer and sentence-transformers say.
    fn max_length(&self, model: &Path) -> Result<Option<usize>, SettingsError> {
        let shifted = SHIFTED_POSITIONS.contains(&self.model_type.as_str());
        let first =
            if shifted { usize::try_from(self.pad_token_id.unwrap_or(1) + 1).unwrap_or_default() } else { 0 };
        let positions = self.max_position_embeddings.map(|positions| positions.saturating_sub(first));
        let tokenizer: Option<TokenizerConfig> = read(model, "tokenizer_config.json")?;
        let tokenizer =
            tokenizer.and_then(|config| config.model_max_length).filter(|length| *length < NO_LIMIT);
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "below a million; casts saturate"
        )]
        let tokenizer = tokenizer.map(|length| length as usize);
        let sentence: Option<SentenceConfig> = read(model, "sentence_bert_config.json")?;
        if sentence.as_ref().is_some_and(|sentence| sentence.do_lower_case) {
            return Err(unsupported(model, "sentence_bert_config.json", "do_lower_case"));
        }
        let sentence = sentence.and_then(|sentence| sentence.max_seq_length);
        Ok([positions, tokenizer, sentence].into_iter().flatten().filter(|length| *length > 0).min())
    }
}

/// Lengths to pad to, up to the longest text.
fn lengths(max_length: Option<usize>) -> Vec<usize> {
    let most = max_length.unwrap_or(usize::MAX);
    LENGTHS.into_iter().filter(|length| *length < most).chain(max_length).collect()
}

impl Preprocessor {
    fn options(&self, model: &Path) -> Result<ImageOptions, SettingsError> {
        let set = [
            ("include_top", self.include_top),
            ("rescale_offset", self.rescale_offset),
            ("do_pad", self.do_pad),
            ("do_rescale", self.do_rescale == Some(false)),
        ];
        if let Some((key, _)) = set.into_iter().find(|(_, is_set)| *is_set) {
            return Err(unsupported(model, PREPROCESSOR, key));
        }
        let (resize, crop) = self.geometry();
        let normalizes = self.do_normalize != Some(false);
        Ok(ImageOptions {
            resize,
            crop,
            scale: self.rescale_factor,
            mean: self.image_mean.clone().filter(|_| normalizes),
            std: self.image_std.clone().filter(|_| normalizes),
            filter: match self.resample {
                None | Some(2) => Some(ImageFilter::Bilinear),
                Some(1) => Some(ImageFilter::Lanczos),
                Some(3) => Some(ImageFilter::Bicubic),
                Some(_) => return Err(unsupported(model, PREPROCESSOR, "resample")),
            },
            ..ImageOptions::default()
        })
    }

    /// The size after resizing, and that of the center that is kept.
    fn geometry(&self) -> (Option<ImageSize>, Option<ImageSize>) {
        let crops = self.do_center_crop.unwrap_or(self.crop_size.is_some());
        let crop = self.crop_size.filter(|_| crops).map(Extent::square);
        let size = self.size.filter(|_| self.do_resize != Some(false));
        match (size, self.crop_pct) {
            // ConvNeXt and ResNet: a smaller part of a larger image, or the whole image from 384 pixels on.
            (Some(size), Some(part)) if crop.is_none() && part > 0.0 => {
                let edge = size.side();
                if edge >= 384 {
                    return (Some(ImageSize::Box { width: edge, height: edge }), None);
                }
                #[allow(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "as the library rounds it"
                )]
                let larger = (f64::from(edge) / part) as u32;
                (Some(ImageSize::Side(larger)), Some(ImageSize::Side(edge)))
            }
            (Some(Extent::Shortest { shortest_edge }), _) => (Some(ImageSize::Side(shortest_edge)), crop),
            (size, _) => (size.map(Extent::square), crop),
        }
    }
}

impl Extent {
    fn side(self) -> u32 {
        match self {
            Self::Side(side) | Self::Shortest { shortest_edge: side } => side,
            Self::Box { height, width } => height.min(width),
        }
    }

    /// Both lengths; one length is that of a square.
    fn square(self) -> ImageSize {
        match self {
            Self::Box { height, width } => ImageSize::Box { width, height },
            Self::Side(side) | Self::Shortest { shortest_edge: side } => {
                ImageSize::Box { width: side, height: side }
            }
        }
    }
}

/// A JSON file of the directory; `None` if there is none.
fn read<T: DeserializeOwned>(directory: &Path, name: &str) -> Result<Option<T>, SettingsError> {
    let path = directory.join(name);
    let invalid = |problem: String| SettingsError::Pretrained { path: path.clone(), problem };
    let Ok(file) = File::open(&path) else { return Ok(None) };
    let mut text = Vec::new();
    file.take(MAX_FILE + 1).read_to_end(&mut text).map_err(|error| invalid(error.to_string()))?;
    if text.len() as u64 > MAX_FILE {
        return Err(invalid(format!("it is larger than {MAX_FILE} bytes")));
    }
    serde_json::from_slice(&text).map(Some).map_err(|error| invalid(error.to_string()))
}

fn unsupported(model: &Path, file: &str, key: &str) -> SettingsError {
    SettingsError::Pretrained { path: model.join(file), problem: format!("unsupported: `{key}`") }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// The options of a directory with these files, and safetensors.
    fn options_of(files: &[(&str, Value)], given: &ServeOptions) -> Result<ServeOptions, String> {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("model.safetensors"), "").unwrap();
        for (name, value) in files {
            std::fs::write(directory.path().join(name), value.to_string()).unwrap();
        }
        described(directory.path(), given).map_err(|error| error.to_string())
    }

    fn config(architecture: &str) -> (&'static str, Value) {
        ("config.json", json!({"architectures": [architecture], "max_position_embeddings": 512}))
    }

    fn image(preprocessor: Value) -> Result<ImageOptions, String> {
        let files = [config("ViTForImageClassification"), (PREPROCESSOR, preprocessor)];
        options_of(&files, &ServeOptions::default()).map(|options| options.image.unwrap())
    }

    #[test]
    fn images_are_prepared_as_each_family_of_models_was_trained() {
        let (side, square) = (ImageSize::Side, |side| ImageSize::Box { width: side, height: side });
        let cases = [
            // ViT: stretched to a square.
            (json!({"size": {"height": 224, "width": 224}}), Some(square(224)), None),
            (json!({"size": 224, "resample": 2}), Some(square(224)), None),
            // CLIP and BiT: the shorter side, then the center.
            (
                json!({"size": {"shortest_edge": 256}, "crop_size": {"height": 224, "width": 224}}),
                Some(side(256)),
                Some(square(224)),
            ),
            (json!({"size": {"shortest_edge": 256}, "crop_size": 224}), Some(side(256)), Some(square(224))),
            (
                json!({"size": {"shortest_edge": 256}, "crop_size": 224, "do_center_crop": false}),
                Some(side(256)),
                None,
            ),
            // ConvNeXt and ResNet.
            (json!({"size": {"shortest_edge": 224}, "crop_pct": 0.875}), Some(side(256)), Some(side(224))),
            (json!({"size": 384, "crop_pct": 0.875}), Some(square(384)), None),
            (json!({"size": 224, "do_resize": false}), None, None),
        ];
        for (preprocessor, resize, crop) in cases {
            let options = image(preprocessor.clone()).unwrap();
            assert_eq!((options.resize, options.crop), (resize, crop), "{preprocessor}");
        }
        let normalized =
            image(json!({"size": 8, "image_mean": [0.5], "image_std": [0.25], "resample": 3, "rescale_factor": 0.5}))
                .unwrap();
        assert_eq!((normalized.mean, normalized.std), (Some(vec![0.5]), Some(vec![0.25])));
        assert_eq!((normalized.filter, normalized.scale), (Some(ImageFilter::Bicubic), Some(0.5)));
        let plain = image(json!({"size": 8, "image_mean": [0.5], "do_normalize": false})).unwrap();
        assert_eq!((plain.mean, plain.std), (None, None));
    }

    #[test]
    fn image_settings_that_cannot_be_followed_are_errors() {
        for (key, value) in [
            ("include_top", json!(true)),
            ("rescale_offset", json!(true)),
            ("do_pad", json!(true)),
            ("do_rescale", json!(false)),
            ("resample", json!(0)),
        ] {
            let mut preprocessor = json!({"size": 224});
            preprocessor.as_object_mut().unwrap().insert(key.to_owned(), value);
            let error = image(preprocessor).unwrap_err();
            assert!(error.ends_with(&format!("{PREPROCESSOR}: unsupported: `{key}`")), "{error}");
        }
        for hostile in [json!({"size": -1}), json!({"size": {"height": 1}}), json!([1])] {
            assert!(image(hostile.clone()).is_err(), "{hostile}");
        }
    }

    #[test]
    fn texts_are_as_long_as_model_tokenizer_and_sentence_settings_allow() {
        let length = |model: Value, tokenizer: Value, sentence: Option<Value>| {
            let mut files = vec![
                ("config.json", model),
                ("tokenizer.json", json!({})),
                ("tokenizer_config.json", tokenizer),
            ];
            files.extend(sentence.map(|sentence| ("sentence_bert_config.json", sentence)));
            let options = options_of(&files, &ServeOptions::default())?;
            Ok::<_, String>((options.text.unwrap().max_length, options.pad_sizes.unwrap()))
        };
        let bert =
            json!({"architectures": ["BertModel"], "model_type": "bert", "max_position_embeddings": 512});
        let roberta = json!({"architectures": ["RobertaModel"], "model_type": "roberta", "max_position_embeddings": 514});
        let unlimited = json!({"model_max_length": 1e30});
        let cases = [
            (&bert, json!({"model_max_length": 100}), None, Some(100), vec![16, 32, 64, 100]),
            (&bert, unlimited.clone(), Some(json!({"max_seq_length": 32})), Some(32), vec![16, 32]),
            (&roberta, unlimited.clone(), None, Some(512), vec![16, 32, 64, 128, 256, 512]),
        ];
        for (model, tokenizer, sentence, longest, sizes) in cases {
            assert_eq!(length(model.clone(), tokenizer, sentence).unwrap(), (longest, sizes), "{model}");
        }
        let endless = json!({"architectures": ["BertModel"]});
        assert_eq!(length(endless, unlimited.clone(), None).unwrap(), (None, LENGTHS.to_vec()));
        let lower = length(bert, unlimited, Some(json!({"do_lower_case": true})));
        assert!(lower.unwrap_err().contains("`do_lower_case`"));
    }

    #[test]
    fn labels_are_those_of_the_classes_and_what_the_user_sets_stays() {
        let tokenizer = ("tokenizer.json", json!({}));
        let text = |kind: Value| {
            let config = json!({"architectures": ["BertForSequenceClassification"], "problem_type": kind});
            options_of(&[("config.json", config), tokenizer.clone()], &ServeOptions::default())
                .unwrap()
                .scores
        };
        assert_eq!(text(Value::Null), Some(ScoreFunction::Softmax));
        assert_eq!(text(json!("multi_label_classification")), Some(ScoreFunction::Sigmoid));
        assert_eq!(text(json!("regression")), Some(ScoreFunction::None));
        let tokens = [config("BertForTokenClassification"), tokenizer.clone()];
        let options = options_of(&tokens, &ServeOptions::default()).unwrap();
        assert_eq!((options.labels, options.pad_sizes, options.text.is_some()), (None, None, true));
        let given = ServeOptions {
            labels: Some("own.txt".into()),
            text: Some(TextOptions {
                tokenizer: "own.json".into(),
                max_length: None,
                truncate: None,
                ids: None,
                mask: None,
                types: None,
            }),
            ..ServeOptions::default()
        };
        let options = options_of(&[config("BertForSequenceClassification"), tokenizer], &given).unwrap();
        assert_eq!(options, ServeOptions::default());
    }

    #[test]
    fn other_directories_describe_nothing_and_damaged_files_are_named() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(described(directory.path(), &ServeOptions::default()).unwrap(), ServeOptions::default());
        std::fs::write(directory.path().join("config.json"), "{").unwrap();
        assert_eq!(described(directory.path(), &ServeOptions::default()).unwrap(), ServeOptions::default());
        std::fs::write(directory.path().join("model.safetensors"), "").unwrap();
        let error = described(directory.path(), &ServeOptions::default()).unwrap_err().to_string();
        assert!(error.contains("config.json"), "{error}");
    }
}
