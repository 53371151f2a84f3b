//! Any bytes as an image, a form or a text: no panic, not even one that is contained, and rows have the right size.
#![no_main]

use std::path::Path;
use std::sync::LazyLock;

use bytes::Bytes;
use cudock_inputs::{ImageInput, InputFile, TextInput, read_base64, read_form};
use cudock_tensor::{DType, RequestLimits, Signature, Tensor, TensorSpec};
use libfuzzer_sys::fuzz_target;

/// Words, special tokens and an unknown one.
const TOKENIZER: &str = r#"{
    "version": "1.0", "truncation": null, "padding": null, "decoder": null,
    "added_tokens": [{"id": 2, "content": "[SEP]", "single_word": false, "lstrip": false, "rstrip": false,
                      "normalized": false, "special": true}],
    "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null,
                   "lowercase": true},
    "pre_tokenizer": {"type": "BertPreTokenizer"}, "post_processor": null,
    "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "\u0023\u0023",
              "max_input_chars_per_word": 100, "vocab": {"[UNK]": 0, "a": 1, "[SEP]": 2, "\u0023\u0023b": 3}}
}"#;

static IMAGE: LazyLock<ImageInput> = LazyLock::new(|| {
    let options = options("[serve.image]\nlayout = 'nchw'\nresize = 16\ncrop = 16\nmax_pixels = 100_000");
    let shape = [None, Some(3), None, None];
    ImageInput::new(&options.image.expect("images"), &signature("x", DType::U8, &shape)).expect("it fits")
});

static TEXT: LazyLock<TextInput> = LazyLock::new(|| {
    let directory = tempfile::tempdir().expect("a temporary directory");
    std::fs::write(directory.path().join("tokenizer.json"), TOKENIZER).expect("it can be written");
    let options = options("[serve.text]\ntokenizer = 'tokenizer.json'\nmax_length = 64").with_paths_in(directory.path());
    TextInput::load(&options.text.expect("texts"), &signature("input_ids", DType::I64, &[None, None])).expect("it fits")
});

fn options(text: &str) -> cudock_project::ServeOptions {
    cudock_project::parse(Path::new("cudock.toml"), text).expect("it is valid").serve
}

fn signature(name: &str, dtype: DType, shape: &[Option<usize>]) -> Signature {
    Signature { inputs: vec![TensorSpec::new(name, dtype, shape)], outputs: Vec::new(), batched: true }
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, bytes)) = bytes.split_first() else { return };
    match choice {
        b'i' => image(Bytes::copy_from_slice(bytes)),
        b'f' => {
            let body = Bytes::copy_from_slice(bytes);
            for file in read_form(&body, "multipart/form-data; boundary=x").unwrap_or_default() {
                image(file.bytes);
            }
        }
        b't' => text(bytes),
        _ => _ = read_base64(bytes),
    }
});

fn image(bytes: Bytes) {
    let files = IMAGE.open(vec![InputFile { name: "image".to_owned(), bytes }]);
    for file in files.unwrap_or_default() {
        let mut row = vec![0; 3 * 16 * 16];
        let _ = IMAGE.decode(&file, &mut row);
    }
}

fn text(bytes: &[u8]) {
    let length = u32::try_from(bytes.len()).expect("inputs are short").to_le_bytes();
    let texts = Tensor::new(DType::String, vec![1], [&length, bytes].concat().into()).expect("one string");
    if let Ok(tensors) = TEXT.encode(&texts, &RequestLimits::default()) {
        assert!(tensors.iter().all(|tensor| tensor.shape()[0] == 1 && (1..=64).contains(&tensor.shape()[1])));
    }
}
