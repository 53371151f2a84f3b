"""Models of Hugging Face's transformers as they are downloaded: a directory with `config.json` and safetensors.

Nothing in the directory is code. A configuration that names code of its own, and weights in a pickle, are refused; classes come
from the installed transformers only, and nothing is looked up on a hub. The server makes the inputs: it has read the directory's
tokenizer and image settings.
"""
import importlib
import inspect
import json
import os

from cudock_signature import Spec
from cudock_worker import LoadError

# Architectures by the ends of their names: what they take, and their outputs.
TASKS = {"ForImageClassification": "image", "ForSequenceClassification": "text", "ForTokenClassification": "text"}
# The ways of sentence-transformers to make one vector of those of the tokens.
POOLINGS = ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens")


def read_json(path):
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise LoadError(f"cannot read {path.name}: {error}") from error
    if not isinstance(value, dict):
        raise LoadError(f"{path.name} is not an object")
    return value


class Pretrained:
    """A directory, and how its model is built."""

    def __init__(self, path, trust):
        # Before transformers is imported, which reads them then.
        os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1")
        self.path, self.trust = path, trust
        self.config = read_json(path / "config.json")
        self.architecture = self.read_architecture()
        self.pooling = self.read_pooling()
        self.task = next((task for end, task in TASKS.items() if self.architecture.endswith(end)), None)
        if self.pooling is not None:
            self.task = "text"
        if self.task is None:
            raise LoadError(f"{path.name} is a {self.architecture}; cudock serves models for the classification of images, texts and "
                            "tokens, and sentence embeddings as they are downloaded, and others as a class with a method `predict`")

    def read_architecture(self):
        names = self.config.get("architectures")
        if not isinstance(names, list) or not names or not isinstance(names[0], str) or not names[0].isidentifier():
            raise LoadError("config.json does not name the model's architecture (`architectures`)")
        if not self.trust:
            if "auto_map" in self.config:
                raise LoadError(f"config.json of {self.path.name} names code of its own (`auto_map`), which cudock never runs; pass "
                                "--trust to load the weights into the class that transformers has under that name")
            if not list(self.path.glob("*.safetensors")):
                raise LoadError(f"{self.path.name} has no safetensors, and weights in a pickle can run any code when they are loaded; "
                                "pass --trust if you trust their author")
        return names[0]

    def read_pooling(self):
        """The steps of a sentence-transformers model after its transformer: how it pools, and whether it normalizes."""
        if not (self.path / "modules.json").is_file():
            return None
        try:
            modules = json.loads((self.path / "modules.json").read_text(encoding="utf-8"))
            steps = [(str(one["type"]).rpartition(".")[2], str(one.get("path", ""))) for one in modules]
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise LoadError(f"cannot read modules.json: {type(error).__name__}: {error}") from error
        kinds = [kind for kind, _ in steps]
        if kinds not in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]):
            raise LoadError(f"modules.json has the steps {', '.join(kinds)}; supported are Transformer, Pooling and Normalize")
        name = steps[1][1]
        if not name or name != os.path.basename(name) or name == "..":
            raise LoadError("modules.json: the path of Pooling is not a directory in the model's own")
        settings = read_json(self.path / name / "config.json")
        chosen = [pooling for pooling in POOLINGS if settings.get(f"pooling_mode_{pooling}")]
        known = {f"pooling_mode_{pooling}" for pooling in POOLINGS}
        unknown = [key for key, value in settings.items() if key.startswith("pooling_mode_") and value and key not in known]
        if len(chosen) != 1 or unknown:
            raise LoadError(f"{name}/config.json pools by {', '.join(unknown + chosen) or 'nothing'}; supported is one of "
                            f"{', '.join(POOLINGS)}")
        return chosen[0], "Normalize" in kinds

    def build(self):
        """The module, in evaluation mode and on the CPU."""
        transformers = importlib.import_module("transformers")
        transformers.utils.logging.set_verbosity_error()
        transformers.utils.logging.disable_progress_bar()
        found = getattr(transformers, self.architecture, None)
        if not isinstance(found, type) or not issubclass(found, transformers.PreTrainedModel):
            raise LoadError(f"transformers {transformers.__version__} has no model {self.architecture}")
        # In the precision of the weights.
        options = {"local_files_only": True, "trust_remote_code": False, "output_loading_info": True, "dtype": "auto"}
        if not self.trust:
            options["use_safetensors"] = True
        module, found = self.from_pretrained(found, options)
        missing = sorted(found["missing_keys"]) + sorted(str(one) for one in found.get("mismatched_keys", ()))
        # A model whose vectors of tokens are pooled here does not need its own pooler.
        missing = [key for key in missing if self.pooling is None or not key.startswith("pooler.")]
        if missing:
            raise LoadError(f"the weights of {self.path.name} lack {missing[0]}" +
                            (f" and {len(missing) - 1} more" if len(missing) > 1 else ""))
        return positional(module.eval(), self.names(module), self.pooling)

    def from_pretrained(self, found, options):
        """The library's fused attention where the model supports it; never a kernel that its configuration names."""
        try:
            return found.from_pretrained(str(self.path), attn_implementation="sdpa", **options)
        except ValueError as error:
            if "scaled_dot_product_attention" not in str(error):
                raise
            return found.from_pretrained(str(self.path), attn_implementation="eager", **options)

    def names(self, module):
        """The inputs of `forward` that the server makes."""
        if self.task == "image":
            return ["pixel_values"]
        takes = inspect.signature(module.forward).parameters
        names = ["input_ids", "attention_mask"]
        # A model with one type of token ignores it.
        if "token_type_ids" in takes and getattr(module.config, "type_vocab_size", 0) > 1:
            names.append("token_type_ids")
        return [name for name in names if name in takes]

    def inputs(self, names):
        if self.task == "text":
            return [Spec(name, "int64", (None, None)) for name in names]
        channels = self.config.get("num_channels", 3)
        if type(channels) is not int or not 1 <= channels <= 4:
            raise LoadError(f"config.json: num_channels is {channels!r}")
        height, width = self.image_size()
        return [Spec("pixel_values", "float32", (None, channels, height, width))]

    def image_size(self):
        """Height and width of the images that the directory's own settings make; else those that the model was built for."""
        settings = read_json(self.path / "preprocessor_config.json") if (self.path / "preprocessor_config.json").is_file() else {}
        crops = settings.get("do_center_crop", "crop_size" in settings)
        size = settings.get("crop_size") if crops else settings.get("size")
        if isinstance(size, dict):
            size = (size.get("height", size.get("shortest_edge")), size.get("width", size.get("shortest_edge")))
        size = size or self.config.get("image_size")
        height, width = size if isinstance(size, (tuple, list)) and len(size) == 2 else (size, size)
        if not all(type(one) is int and 1 <= one <= 4096 for one in (height, width)):
            raise LoadError(f"{self.path.name} does not say how large its images are (`size` of preprocessor_config.json)")
        return height, width


def positional(module, names, pooling):
    """The module with positional inputs, and one tensor of floats as its output."""
    import torch

    class Positional(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model, self.names = module, names

        def forward(self, *values):
            dtype = self.model.dtype
            values = [value.to(dtype) if value.is_floating_point() else value for value in values]
            result = self.model(**dict(zip(self.names, values)))
            if pooling is None:
                return {"logits": result.logits.float()}
            mask = values[self.names.index("attention_mask")]
            return {"embedding": pool(result.last_hidden_state.float(), mask, *pooling)}

    return Positional()


def pool(tokens, mask, mode, normalize):
    import torch
    weights = mask.unsqueeze(-1).to(tokens.dtype)
    if mode == "cls_token":
        pooled = tokens[:, 0]
    elif mode == "max_tokens":
        pooled = tokens.masked_fill(weights == 0, torch.finfo(tokens.dtype).min).max(dim=1).values
    else:
        counts = weights.sum(dim=1).clamp(min=1e-9)
        pooled = (tokens * weights).sum(dim=1) / (counts.sqrt() if mode == "mean_sqrt_len_tokens" else counts)
    return torch.nn.functional.normalize(pooled, dim=1) if normalize else pooled
