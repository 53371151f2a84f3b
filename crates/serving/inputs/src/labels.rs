//! Names of classes, for responses.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;

use cudock_base::text::format;
use cudock_project::ScoreFunction;
use cudock_tensor::json::write;
use cudock_tensor::{DType, Signature, Tensor, TensorSpec};
use half::{bf16, f16};
use serde::Deserialize;

use crate::OptionError;

/// Labels for each row if `top` does not set it, as is usual for image classifiers.
const TOP: usize = 5;

/// The names of a model's classes.
#[derive(Clone, Debug)]
pub struct Labels {
    names: Vec<String>,
    top: usize,
    scores: ScoreFunction,
    /// Index of the output with a score for each class.
    output: usize,
}

impl Labels {
    /// Reads a file with one name per line, or the `id2label` of a pretrained model's `config.json`. The scores are the first output with as many classes.
    pub fn load(
        file: &Path,
        top: Option<usize>,
        scores: Option<ScoreFunction>,
        signature: &Signature,
    ) -> Result<Self, OptionError> {
        let error = |problem| OptionError::new("serve.labels", problem);
        let invalid = |cause: &dyn Display| error(format!("cannot read {}: {cause}", file.display()));
        let text = std::fs::read_to_string(file).map_err(|cause| invalid(&cause))?;
        let is_config = file.extension().is_some_and(|extension| extension == "json");
        let names = if is_config {
            config_names(&text).map_err(|cause| invalid(&cause))?
        } else {
            text.lines().map(|line| line.trim().to_owned()).collect()
        };
        let output =
            signature.outputs.iter().position(|spec| has_classes(spec, names.len())).ok_or_else(|| {
                let noun = if is_config { "label" } else { "line" };
                let (file, found) = (file.display(), format::count(names.len(), noun));
                error(format!("{file} has {found}, and no output has a score for each of them"))
            })?;
        let (top, scores) = (top.unwrap_or(TOP).clamp(1, names.len()), scores.unwrap_or_default());
        Ok(Self { names, top, scores, output })
    }

    /// Index of the output with the scores.
    pub fn output(&self) -> usize {
        self.output
    }

    /// Appends the best labels of each row as JSON: an array of `{"label", "score"}` per row. `single` omits the array of
    /// rows.
    pub fn write(&self, scores: &Tensor, single: bool, out: &mut Vec<u8>) {
        self.write_rows(scores, single, *b"[]", out, |name, score, out| {
            out.extend_from_slice(b"{\"label\":");
            write::string(name, out);
            out.extend_from_slice(b",\"score\":");
            write::single(score, out);
            out.push(b'}');
        });
    }

    /// Appends the best labels of each row as an object of scores by label. `single` omits the array of rows.
    pub fn write_objects(&self, scores: &Tensor, single: bool, out: &mut Vec<u8>) {
        self.write_rows(scores, single, *b"{}", out, |name, score, out| {
            write::string(name, out);
            out.push(b':');
            write::single(score, out);
        });
    }

    fn write_rows(
        &self,
        scores: &Tensor,
        single: bool,
        brackets: [u8; 2],
        out: &mut Vec<u8>,
        write_label: impl Fn(&str, f32, &mut Vec<u8>),
    ) {
        let classes = scores.shape().last().copied().unwrap_or(0).max(1);
        let values = floats(scores);
        let rows = (!single).then_some(*b"[]");
        list(values.chunks(classes), rows, out, |row, out| {
            list(self.best(row), Some(brackets), out, |(class, score), out| match self.names.get(class) {
                Some(name) => write_label(name, score, out),
                None => write_label(&class.to_string(), score, out),
            });
        });
    }

    /// The best classes and their scores, best first. NaN is never among them.
    #[allow(clippy::cast_possible_truncation, reason = "scores are written as 32-bit floats")]
    fn best(&self, scores: &[f64]) -> Vec<(usize, f32)> {
        let mut best: Vec<(usize, f64)> = Vec::with_capacity(self.top + 1);
        for (class, &score) in scores.iter().enumerate().filter(|(_, score)| !score.is_nan()) {
            if best.len() == self.top && best.last().is_some_and(|(_, least)| score <= *least) {
                continue;
            }
            best.insert(best.partition_point(|(_, other)| *other >= score), (class, score));
            best.truncate(self.top);
        }
        let largest = best.first().map_or(0.0, |(_, score)| *score);
        let sum: f64 = match self.scores {
            ScoreFunction::None | ScoreFunction::Sigmoid => 1.0,
            ScoreFunction::Softmax => scores.iter().map(|score| (score - largest).exp()).sum(),
        };
        let probability = |score: f64| match self.scores {
            ScoreFunction::None => score,
            ScoreFunction::Sigmoid => 1.0 / (1.0 + (-score).exp()),
            ScoreFunction::Softmax => (score - largest).exp() / sum,
        };
        best.into_iter().map(|(class, score)| (class, probability(score) as f32)).collect()
    }
}

/// The names in `id2label`, by their numbers, which are those of the classes.
fn config_names(text: &str) -> Result<Vec<String>, String> {
    #[derive(Deserialize)]
    struct LabeledConfig {
        id2label: BTreeMap<usize, String>,
    }
    let config: LabeledConfig = serde_json::from_str(text).map_err(|error| error.to_string())?;
    match config.id2label.keys().enumerate().find(|(index, number)| index != *number) {
        Some((index, _)) => Err(format!("`id2label` has no class {index}")),
        None => Ok(config.id2label.into_values().collect()),
    }
}

/// Whether an output is one row of that many scores, or an array of such rows.
fn has_classes(spec: &TensorSpec, classes: usize) -> bool {
    let floats = matches!(spec.dtype, DType::F16 | DType::BF16 | DType::F32 | DType::F64);
    floats
        && classes > 0
        && matches!(spec.shape.as_slice(), [size] | [_, size] if size.is_none_or(|size| size == classes))
}

fn floats(tensor: &Tensor) -> Vec<f64> {
    fn values<const N: usize>(data: &[u8], value: impl Fn([u8; N]) -> f64) -> Vec<f64> {
        data.as_chunks().0.iter().map(|bytes| value(*bytes)).collect()
    }
    let data = tensor.data();
    match tensor.dtype() {
        DType::F16 => values(data, |bytes| f16::from_le_bytes(bytes).to_f64()),
        DType::BF16 => values(data, |bytes| bf16::from_le_bytes(bytes).to_f64()),
        DType::F32 => values(data, |bytes| f32::from_le_bytes(bytes).into()),
        DType::F64 => values(data, f64::from_le_bytes),
        _ => Vec::new(),
    }
}

/// Appends items, separated by commas and in brackets if there are any.
fn list<T>(
    items: impl IntoIterator<Item = T>,
    brackets: Option<[u8; 2]>,
    out: &mut Vec<u8>,
    mut write: impl FnMut(T, &mut Vec<u8>),
) {
    if let Some([open, _]) = brackets {
        out.push(open);
    }
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(item, out);
    }
    if let Some([_, close]) = brackets {
        out.push(close);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn signature(shape: &[Option<usize>]) -> Signature {
        let outputs = vec![
            TensorSpec::new("embedding", DType::F32, [None, Some(8)]),
            TensorSpec::new("scores", DType::F32, shape),
        ];
        Signature { inputs: Vec::new(), outputs, batched: true }
    }

    fn labels(names: &str, top: Option<usize>, scores: ScoreFunction) -> Result<Labels, OptionError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), names).unwrap();
        Labels::load(file.path(), top, Some(scores), &signature(&[None, Some(3)]))
    }

    fn written(labels: &Labels, rows: &[[f32; 3]], single: bool) -> Value {
        let data: Vec<u8> = rows.iter().flatten().flat_map(|score| score.to_le_bytes()).collect();
        let tensor = Tensor::new(DType::F32, vec![rows.len(), 3], data.into()).unwrap();
        let mut out = Vec::new();
        labels.write(&tensor, single, &mut out);
        serde_json::from_slice(&out).unwrap()
    }

    #[test]
    fn the_best_labels_of_each_row_come_first() {
        let labels = labels("cat\n dog \nsea \"lion\"", Some(2), ScoreFunction::None).unwrap();
        assert_eq!(labels.output(), 1);
        let entry = |label: &str, score: f32| json!({"label": label, "score": score});
        let rows = written(&labels, &[[0.25, 0.5, 0.25], [0.0, f32::NAN, 1.0]], false);
        assert_eq!(
            rows,
            json!([[entry("dog", 0.5), entry("cat", 0.25)], [entry("sea \"lion\"", 1.0), entry("cat", 0.0)]])
        );
        assert_eq!(written(&labels, &[[3.0, 2.0, 1.0]], true), json!([entry("cat", 3.0), entry("dog", 2.0)]));
    }

    #[test]
    fn a_softmax_makes_probabilities_that_add_up_to_one() {
        let labels = labels("a\nb\nc", None, ScoreFunction::Softmax).unwrap();
        let row = written(&labels, &[[1000.0, 1000.0, -1000.0]], true);
        assert_eq!(row[0], json!({"label": "a", "score": 0.5}));
        assert_eq!(
            row.as_array().unwrap().len(),
            3,
            "there are fewer classes than labels are shown by default"
        );
        assert_eq!(written(&labels, &[[f32::INFINITY, 0.0, 0.0]], true)[0]["score"], Value::Null);
    }

    #[test]
    fn a_file_that_does_not_fit_is_an_error_that_names_the_key() {
        let error = labels("a\nb", None, ScoreFunction::None).unwrap_err();
        assert_eq!(error.key, "serve.labels");
        assert!(
            error.problem.ends_with(" has 2 lines, and no output has a score for each of them"),
            "{error}"
        );
        let missing = Labels::load(Path::new("/missing"), None, None, &signature(&[None])).unwrap_err();
        assert!(
            missing.to_string().starts_with("`serve.labels` in cudock.toml: cannot read /missing: "),
            "{missing}"
        );
    }

    #[test]
    fn labels_of_a_pretrained_model_are_in_its_configuration() {
        let directory = tempfile::tempdir().unwrap();
        let load = |config: &str| {
            let file = directory.path().join("config.json");
            std::fs::write(&file, config).unwrap();
            let labels =
                Labels::load(&file, Some(1), Some(ScoreFunction::Sigmoid), &signature(&[None, Some(3)]));
            labels.map_err(|error| error.problem)
        };
        let labels = load(r#"{"id2label": {"2": "c", "0": "a", "1": "b"}, "model_type": "vit"}"#).unwrap();
        assert_eq!(written(&labels, &[[0.0, -1.0, -2.0]], true), json!([{"label": "a", "score": 0.5}]));
        for (config, problem) in [
            (r#"{"id2label": {"0": "a"}}"#, "has 1 label, and no output"),
            (r#"{"id2label": {"0": "a", "2": "c", "3": "d"}}"#, "`id2label` has no class 1"),
            ("{}", "missing field `id2label`"),
        ] {
            let error = load(config).unwrap_err();
            assert!(error.contains(problem), "{error}");
        }
    }

    #[test]
    fn an_output_of_dynamic_size_takes_any_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "a\n").unwrap();
        let labels = Labels::load(file.path(), None, None, &signature(&[None, None])).unwrap();
        assert_eq!(labels.output(), 1);
        assert_eq!(written(&labels, &[[0.0, 2.0, 1.0]], true), json!([{"label": "1", "score": 2.0}]));
    }
}
