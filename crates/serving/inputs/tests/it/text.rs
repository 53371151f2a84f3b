//! Texts into token ids.

use cudock_inputs::TextInput;
use cudock_tensor::{DType, RequestLimits, Signature, Tensor, TensorSpec};
use proptest::prelude::*;
use serde_json::json;

use crate::support::options;

/// A tokenizer with a word per token: `[PAD]` is 7, `[UNK]` 1.
fn tokenizer(directory: &std::path::Path, padding: bool) {
    let padding = padding.then(|| {
        json!({"strategy": "BatchLongest", "direction": "Right", "pad_to_multiple_of": null,
               "pad_id": 3, "pad_type_id": 0, "pad_token": "c"})
    });
    let tokenizer = json!({
        "version": "1.0", "truncation": null, "padding": padding, "added_tokens": [], "normalizer": null,
        "pre_tokenizer": {"type": "Whitespace"}, "post_processor": null, "decoder": null,
        "model": {"type": "WordLevel", "unk_token": "[UNK]",
                  "vocab": {"[UNK]": 1, "a": 2, "b": 4, "c": 3, "[PAD]": 7}},
    });
    std::fs::write(directory.join("tokenizer.json"), tokenizer.to_string()).unwrap();
}

fn model(inputs: &[(&str, DType, Option<usize>)]) -> Signature {
    let inputs = inputs.iter().map(|(name, dtype, length)| TensorSpec::new(*name, *dtype, [None, *length]));
    Signature { inputs: inputs.collect(), outputs: Vec::new(), batched: true }
}

const BERT: [(&str, DType, Option<usize>); 3] = [
    ("attention_mask", DType::I64, None),
    ("input_ids", DType::I64, None),
    ("token_type_ids", DType::I64, None),
];

fn load(toml: &str, signature: &Signature, padding: bool) -> Result<TextInput, String> {
    let directory = tempfile::tempdir().unwrap();
    tokenizer(directory.path(), padding);
    let text = format!("[serve.text]\ntokenizer = 'tokenizer.json'\n{toml}");
    let options = options(&text).with_paths_in(directory.path()).text.unwrap();
    TextInput::load(&options, signature).map_err(|error| error.to_string())
}

fn strings(texts: &[&str]) -> Tensor {
    let data: Vec<u8> = texts
        .iter()
        .flat_map(|text| [&u32::try_from(text.len()).unwrap().to_le_bytes(), text.as_bytes()].concat())
        .collect();
    Tensor::new(DType::String, vec![texts.len()], data.into()).unwrap()
}

/// The rows of each tensor.
fn encode(input: &TextInput, texts: &[&str]) -> Result<Vec<Vec<Vec<i64>>>, String> {
    let tensors =
        input.encode(&strings(texts), &RequestLimits::default()).map_err(|error| error.to_string())?;
    let rows = |tensor: &Tensor| {
        let size = tensor.dtype().size().unwrap();
        let values: Vec<i64> = tensor
            .data()
            .chunks(size)
            .map(|bytes| bytes.iter().rev().fold(0, |value, byte| value << 8 | i64::from(*byte)))
            .collect();
        values.chunks(tensor.shape()[1]).map(<[i64]>::to_vec).collect()
    };
    Ok(tensors.iter().map(rows).collect())
}

#[test]
fn shorter_rows_are_padded_to_the_longest_in_every_input() {
    let input = load("", &model(&BERT), false).unwrap();
    let tensors = encode(&input, &["a b c", "b x"]).unwrap();
    assert_eq!(tensors[0], [[1, 1, 1], [1, 1, 0]], "the mask");
    assert_eq!(tensors[1], [[2, 4, 3], [4, 1, 7]], "the ids");
    assert_eq!(tensors[2], [[0, 0, 0], [0, 0, 0]], "the types");
    assert_eq!(input.padding(), [vec![0; 8], vec![7, 0, 0, 0, 0, 0, 0, 0], vec![0; 8]]);
    assert_eq!(encode(&input, &[""]).unwrap()[1], [[7]], "a text of nothing is one padding");
}

#[test]
fn the_tokenizers_own_padding_token_is_used() {
    let input = load("", &model(&[("input_ids", DType::I32, None)]), true).unwrap();
    assert_eq!(encode(&input, &["a b", "a"]).unwrap()[0], [[2, 4], [2, 3]]);
    assert_eq!(input.padding(), [vec![3, 0, 0, 0]]);
}

#[test]
fn long_texts_are_truncated_or_rejected() {
    let signature = model(&[("input_ids", DType::I64, None)]);
    let truncating = load("max_length = 2", &signature, false).unwrap();
    assert_eq!(encode(&truncating, &["a b c", "a"]).unwrap()[0], [[2, 4], [2, 7]]);
    let strict = load("max_length = 2\ntruncate = false", &signature, false).unwrap();
    assert_eq!(
        encode(&strict, &["a b", "a b c"]).unwrap_err(),
        "text 2: 3 tokens are more than the 2 allowed"
    );
    let fixed = load("", &model(&[("input_ids", DType::I64, Some(4))]), false).unwrap();
    assert_eq!(encode(&fixed, &["a b c a b"]).unwrap()[0], [[2, 4, 3, 2]]);
    assert_eq!(encode(&fixed, &["a"]).unwrap()[0], [[2, 7, 7, 7]]);
}

#[test]
fn options_that_do_not_fit_the_model_are_rejected() {
    let fixed = [("input_ids", DType::I64, Some(4))];
    let other = [("input_ids", DType::I64, None), ("pixels", DType::F32, None)];
    for (options, inputs, message) in [
        (
            "ids = 'input_id'",
            &BERT[..],
            "`serve.text.ids` in cudock.toml: the model has no input `input_id`; did you mean `input_ids`?",
        ),
        ("types = 'segments'", &BERT, "`serve.text.types` in cudock.toml: the model has no input `segments`"),
        (
            "",
            &[("x", DType::I64, None)],
            "`serve.text.ids` in cudock.toml: the model has no input `input_ids`",
        ),
        ("", &other, "`serve.text` in cudock.toml: the model's input `pixels` is not made from text"),
        (
            "",
            &[("input_ids", DType::F32, None)],
            "`serve.text.ids` in cudock.toml: input `input_ids` is FP32 [-1, -1]",
        ),
        (
            "max_length = 5",
            &fixed,
            "`serve.text.max_length` in cudock.toml: 5 tokens do not fit into rows of 4",
        ),
    ] {
        let error = load(options, &model(inputs), false).unwrap_err();
        assert!(error.starts_with(message), "{options}: {error}");
    }
    let missing = options("[serve.text]\ntokenizer = '/missing'").text.unwrap();
    let error = TextInput::load(&missing, &model(&BERT)).unwrap_err().to_string();
    assert!(error.starts_with("`serve.text.tokenizer` in cudock.toml: cannot read /missing: "), "{error}");
}

#[test]
fn inputs_of_other_names_can_be_used() {
    let signature = model(&[("tokens", DType::I64, None), ("attention_mask", DType::I32, None)]);
    let input = load("ids = 'tokens'", &signature, false).unwrap();
    assert_eq!(encode(&input, &["a"]).unwrap(), [[[2]], [[1]]]);
    assert_eq!(input.request_signature().inputs, [TensorSpec::new("text", DType::String, [None])]);
}

proptest! {
    #[test]
    fn any_text_is_a_row(texts in proptest::collection::vec(".{0,40}", 1..4)) {
        let input = load("max_length = 8", &model(&BERT), false).unwrap();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let tensors = encode(&input, &texts).unwrap();
        prop_assert!(tensors.iter().all(|rows| rows.len() == texts.len()));
        prop_assert!(tensors[0].iter().flatten().zip(tensors[1].iter().flatten()).all(|(mask, id)| (*mask == 0) == (*id == 7)));
    }
}
