"""Trains the example's tokenizer and model, and writes tokenizer.json and model.onnx.

The model is the mean of the embeddings of a text's tokens and a linear layer: enough for reviews of a few sentences, and
small enough to train in a minute with numpy. Padding must not change the mean, so the model takes an attention mask.
"""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from reviews import reviews

SEED = 3
VOCABULARY = 500
WIDTH = 16
STEPS = 1500
BATCH = 128
RATE = 0.01
HERE = Path(__file__).parent


def trained_tokenizer(texts):
    """Returns a WordPiece tokenizer, as BERT has it."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    trainer = trainers.WordPieceTrainer(vocab_size=VOCABULARY, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    ends = [(token, tokenizer.token_to_id(token)) for token in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    return tokenizer


def encoded(tokenizer, texts):
    """Returns ids and mask of shape [N, longest]."""
    tokenizer.enable_padding(pad_id=0, pad_token="[PAD]")
    rows = tokenizer.encode_batch(texts)
    tokenizer.no_padding()
    return np.array([row.ids for row in rows]), np.array([row.attention_mask for row in rows])


def train(ids, mask, labels, size):
    """Minimizes the cross entropy with Adam."""
    rng = np.random.default_rng(SEED)
    weights = {
        "embeddings": rng.normal(0, 0.1, (size, WIDTH)),
        "weight": rng.normal(0, 0.1, (WIDTH, 2)),
        "bias": np.zeros(2),
    }
    first = {name: np.zeros_like(value) for name, value in weights.items()}
    second = {name: np.zeros_like(value) for name, value in weights.items()}
    for step in range(1, STEPS + 1):
        picked = rng.integers(0, len(labels), BATCH)
        tokens, kept = ids[picked], mask[picked] / mask[picked].sum(axis=1, keepdims=True)
        means = (weights["embeddings"][tokens] * kept[..., None]).sum(axis=1)
        scores = means @ weights["weight"] + weights["bias"]
        likelihoods = np.exp(scores - scores.max(axis=1, keepdims=True))
        likelihoods /= likelihoods.sum(axis=1, keepdims=True)
        slope = (likelihoods - np.eye(2)[labels[picked]]) / BATCH
        slopes = {"weight": means.T @ slope, "bias": slope.sum(axis=0), "embeddings": np.zeros((size, WIDTH))}
        np.add.at(slopes["embeddings"], tokens, kept[..., None] * (slope @ weights["weight"].T)[:, None])
        for name, value in slopes.items():
            first[name] = 0.9 * first[name] + 0.1 * value
            second[name] = 0.999 * second[name] + 0.001 * value**2
            average = first[name] / (1 - 0.9**step), second[name] / (1 - 0.999**step)
            weights[name] -= RATE * average[0] / (np.sqrt(average[1]) + 1e-8)
    return weights


def export(weights, path):
    """Writes the model as ONNX: inputs `input_ids` and `attention_mask` INT64 [N, L], output `scores` FP32 [N, 2]."""
    constants = {name: value.astype(np.float32) for name, value in weights.items()}
    constants |= {"tokens": np.array([1]), "last": np.array([2]), "one": np.array(1, np.float32)}
    node = helper.make_node
    nodes = [
        node("Gather", ["embeddings", "input_ids"], ["embedded"], axis=0),
        node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        node("Unsqueeze", ["mask", "last"], ["factors"]),
        node("Mul", ["embedded", "factors"], ["masked"]),
        node("ReduceSum", ["masked", "tokens"], ["sum"], keepdims=0),
        node("ReduceSum", ["mask", "tokens"], ["kept"], keepdims=1),
        node("Max", ["kept", "one"], ["count"]),
        node("Div", ["sum", "count"], ["mean"]),
        node("Gemm", ["mean", "weight", "bias"], ["scores"]),
    ]
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["N", "L"]) for name in ("input_ids", "attention_mask")]
    graph = helper.make_graph(
        nodes,
        "reviews",
        inputs,
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["N", 2])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name="cudock")
    onnx.checker.check_model(model, full_check=True)
    path.write_bytes(model.SerializeToString())


def main():
    texts, labels = reviews(6000, SEED)
    tokenizer = trained_tokenizer(texts)
    ids, mask = encoded(tokenizer, texts)
    weights = train(ids, mask, np.array(labels), tokenizer.get_vocab_size())
    tokenizer.save(str(HERE / "tokenizer.json"))
    (HERE / "labels.txt").write_text("negative\npositive\n")
    export(weights, HERE / "model.onnx")

    texts, labels = reviews(1000, SEED + 1)
    ids, mask = encoded(tokenizer, texts)
    session = onnxruntime.InferenceSession(HERE / "model.onnx", providers=["CPUExecutionProvider"])
    (scores,) = session.run(None, {"input_ids": ids, "attention_mask": mask})
    print(f"{(scores.argmax(axis=1) == labels).sum()} of {len(labels)} other reviews are classified correctly")


if __name__ == "__main__":
    main()
