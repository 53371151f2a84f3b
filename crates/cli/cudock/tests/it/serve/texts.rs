//! Texts at `/predict`.

use cudock_tensor::DType;
use cudock_testkit::onnx::{Attribute, OnnxModel};
use serde_json::{Value, json};

use crate::serve_support::client::Ask;
use crate::serve_support::server::{Server, Stage};
use crate::serve_support::{occupy, receive_all, send_all, until_queued};

/// The id of the padding, larger than that of any word.
const PAD: u8 = 7;

/// Adds up the embeddings of all tokens, and gives the largest id: `input_ids` and `attention_mask` I64 [rows, any],
/// `sum` F32 [rows, 2], `largest` I64 [rows].
fn model() -> Vec<u8> {
    let table: Vec<f32> = (0..16_u8).map(|value| f32::from(value) * 0.5).collect();
    OnnxModel::new("sums")
        .input("input_ids", DType::I64, &[None, None])
        .input("attention_mask", DType::I64, &[None, None])
        .floats("table", &[8, 2], &table)
        .integers("across", &[1], &[1])
        .integers("last", &[1], &[2])
        .node("Gather", &["table", "input_ids"], &["embedded"], &[Attribute::Int("axis", 0)])
        .node("Cast", &["attention_mask"], &["mask"], &[Attribute::Int("to", 1)])
        .node("Unsqueeze", &["mask", "last"], &["factors"], &[])
        .node("Mul", &["embedded", "factors"], &["masked"], &[])
        .node("ReduceSum", &["masked", "across"], &["sum"], &[Attribute::Int("keepdims", 0)])
        .node(
            "ReduceMax",
            &["input_ids"],
            &["largest"],
            &[Attribute::Ints("axes", vec![1]), Attribute::Int("keepdims", 0)],
        )
        .output("sum", DType::F32, &[None, Some(2)])
        .output("largest", DType::I64, &[None])
        .bytes()
}

fn serve(stage: &Stage, settings: &str) -> Server {
    let tokenizer = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
        "pre_tokenizer": {"type": "Whitespace"}, "post_processor": null, "decoder": null,
        "model": {"type": "WordLevel", "unk_token": "[UNK]",
                  "vocab": {"[UNK]": 1, "one": 2, "two": 3, "three": 4, "[PAD]": PAD}},
    });
    stage.write("models/sums/model.onnx", &model());
    stage.write("models/sums/tokenizer.json", tokenizer.to_string().as_bytes());
    let settings =
        format!("[serve]\n{settings}\n[serve.text]\ntokenizer = \"tokenizer.json\"\nmax_length = 6\n");
    stage.write("models/sums/cudock.toml", settings.as_bytes());
    stage.serve("models", &["--queue-time", "60s"])
}

const TEXTS: [&str; 4] = ["one two three", "two", "three three unknown one two", "one one"];

fn text(text: &str) -> Ask {
    Ask::post("/predict", text).with("content-type", "text/plain; charset=utf-8")
}

fn sum(reply: &Value) -> Value {
    reply["prediction"]["sum"].clone()
}

#[test]
fn texts_of_different_lengths_give_the_same_answers_as_alone() {
    let Some(stage) = Stage::new() else { return };
    let server = serve(&stage, "pad_sizes = [8]");
    let alone: Vec<Value> = TEXTS.iter().map(|line| sum(&server.ask(&text(line)).ok().json())).collect();
    assert_eq!(alone[0], json!([2.0 + 3.0 + 4.0, 2.5 + 3.5 + 4.5]));
    let before = server.metric("cudock_batches_total");
    let held = server.hold_engine();
    let mut first = occupy(&server, &text("one"));
    let mut waiting = send_all(&server, &TEXTS.map(text));
    until_queued(&server, TEXTS.len());
    drop(held);
    first.receive().unwrap().ok();
    let together: Vec<Value> =
        receive_all(&mut waiting).into_iter().map(|reply| sum(&reply.ok().json())).collect();
    assert_eq!(together, alone);
    assert_eq!(server.metric("cudock_batches_total") - before, 2, "the rows shared a batch");
    let rows = server.ask(&Ask::predict(&json!(TEXTS).to_string())).ok().json();
    assert_eq!(sum(&rows), json!(alone));
}

#[test]
fn rows_are_padded_with_the_padding_token() {
    let Some(stage) = Stage::new() else { return };
    let largest = |server: &Server, ask: &Ask| server.ask(ask).ok().json()["prediction"]["largest"].clone();
    let server = serve(&stage, "");
    assert_eq!(largest(&server, &text("one two")), 3, "nothing is padded");
    let two = Ask::predict(&json!({"text": ["one two", "one"]}).to_string());
    assert_eq!(largest(&server, &two), json!([3, PAD]));
    drop(server);
    let server = serve(&stage, "pad_sizes = [8]");
    assert_eq!(largest(&server, &text("one two")), PAD);
    let ids = json!({"input": {"input_ids": [[2, 3]], "attention_mask": [[1, 1]]}}).to_string();
    assert_eq!(largest(&server, &Ask::post("/predict", ids)), json!([PAD]), "ids that clients send, too");
}

#[test]
fn texts_are_truncated_and_bad_ones_are_named() {
    let Some(stage) = Stage::new() else { return };
    let server = serve(&stage, "");
    let long = "one ".repeat(3000);
    let short = server.ask(&text("one one one one one one")).ok().json();
    assert_eq!(sum(&server.ask(&text(&long)).ok().json()), sum(&short));
    let reply = server.ask(&Ask::post("/predict", b"\xff\xfe".to_vec()).with("content-type", "text/plain"));
    assert_eq!((reply.status, reply.json()["error"].as_str()), (400, Some("text 1: not UTF-8")));
    let reply = server.ask(&Ask::predict(r#"["one", 2]"#));
    assert_eq!(reply.status, 400, "{}", reply.text());
    assert_eq!(server.metric("cudock_held_bytes"), 0);
}

#[test]
fn plain_text_is_json_for_other_models() {
    let Some(stage) = Stage::new() else { return };
    stage.write("m.onnx", &crate::serve_support::made::times(2.0));
    let server = stage.serve("m.onnx", &[]);
    let reply = server.ask(&text(r#"{"input": [1, 2, 3, 4]}"#)).ok().json();
    assert_eq!(reply["prediction"], json!([2.0, 4.0, 6.0, 8.0]));
}

#[test]
fn the_example_classifies_reviews() {
    let Some(stage) = Stage::new() else { return };
    let server = stage.serve(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../examples/text-classifier"), &[]);
    let texts = json!(["What a gripping story, the cast is superb!", "a lazy script . i want my money back"]);
    let reply = server.ask(&Ask::predict(&texts.to_string())).ok().json();
    let best: Vec<&str> = [0, 1].map(|row| reply["labels"][row][0]["label"].as_str().unwrap()).into();
    assert_eq!(best, ["positive", "negative"], "{reply}");
}
