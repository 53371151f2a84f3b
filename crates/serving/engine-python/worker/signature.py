"""Inputs and outputs of models: declared, annotated, or found by running the model."""
import collections.abc
import inspect
import re
import traceback
import typing

from cudock_worker import LoadError, describe

# Element types, as numpy and as the server names them.
DTYPES = {
    "bool": "Bool", "uint8": "U8", "uint16": "U16", "uint32": "U32", "uint64": "U64", "int8": "I8", "int16": "I16",
    "int32": "I32", "int64": "I64", "float16": "F16", "bfloat16": "BF16", "float32": "F32", "float64": "F64",
    "string": "String",
}
DTYPE_NAMES = {server: name for name, server in DTYPES.items()}


class BatchError(Exception):
    """A batch whose outputs do not match the signature."""


class InvalidRows(Exception):
    """Rows that the model does not take: their indices, and why."""

    def __init__(self, rows):
        super().__init__(rows)
        self.rows = rows


class Spec(typing.NamedTuple):
    """An input or output; a size of None is open."""
    name: str
    dtype: str
    shape: tuple
    json: bool = False

    def __str__(self):
        return f"{self.dtype}{sizes(self.shape)}"

    def message(self):
        return {"name": self.name, "dtype": DTYPES[self.dtype], "shape": self.shape, "json": self.json}

    def check(self, dtype, shape, rows):
        """Checks an output of a batch of `rows`; None if the model has no rows."""
        expected = self.shape if rows is None else (rows, *self.shape[1:])
        fits = len(shape) == len(expected) and all(one in (None, size) for one, size in zip(expected, shape))
        if dtype != self.dtype or not fits:
            expected = self._replace(shape=expected)
            raise BatchError(f"output `{self.name}` is {dtype}{sizes(shape)}, expected {expected}")


def sizes(shape):
    return "[{}]".format(", ".join("-1" if size is None else str(size) for size in shape))


def are_batched(specs):
    return all(spec.shape[:1] == (None,) for spec in specs)


def parse_spec(name, text):
    """The tensor described as `float32[-1, 3]`."""
    parts = re.fullmatch(r"\s*(\w+)\s*\[((?:\s*-?\d+\s*,?)*)\]\s*", text)
    if not parts or parts[1] not in DTYPES:
        raise LoadError(f"cannot read the annotation {text!r} of `{name}`: write it as \"float32[-1, 3, 224, 224]\", with "
                        f"one of {', '.join(DTYPES)}")
    shape = map(int, re.findall(r"-?\d+", parts[2]))
    return Spec(name, parts[1], tuple(None if size < 0 else size for size in shape))


def spec_of(name, hint):
    """The tensor that an annotation describes, if it does."""
    texts = [text for text in getattr(hint, "__metadata__", ()) if isinstance(text, str)]
    return parse_spec(name, texts[0]) if texts else None


def type_hints(thing):
    try:
        return typing.get_type_hints(thing, include_extras=True)
    except NameError:
        return {}


def annotated_outputs(hint):
    """The outputs that a return annotation describes; None if it does not describe all."""
    if typing.get_origin(hint) is tuple:
        specs = [spec_of(f"output_{index}", one) for index, one in enumerate(typing.get_args(hint))]
    elif isinstance(hint, type) and issubclass(hint, dict):
        specs = [spec_of(name, one) for name, one in type_hints(hint).items()]
    else:
        specs = [spec_of("output", hint)]
    return specs if specs and all(specs) else None


def is_torch(hint):
    base = typing.get_args(hint)[0] if hasattr(hint, "__metadata__") else hint
    return (getattr(base, "__module__", None), getattr(base, "__name__", None)) == ("torch", "Tensor")


class Interface:
    """What the annotations of a function tell about its inputs and outputs."""

    def __init__(self, function):
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        parameters = inspect.signature(function).parameters.values()
        self.names = [one.name for one in parameters if one.kind in kinds and one.default is one.empty]
        hints = type_hints(function)
        own = [hints.get(name) for name in self.names]
        specs = [spec_of(name, hint) for name, hint in zip(self.names, own)]
        self.inputs = specs if specs and all(specs) else None
        self.outputs = annotated_outputs(hints.get("return"))
        self.takes_torch = any(is_torch(hint) for hint in own)
        # `list` or `list[row]`: JSON texts, one per row.
        self.takes_rows = len(own) == 1 and (own[0] is list or typing.get_origin(own[0]) is list)
        self.row_type = next(iter(typing.get_args(own[0])), None) if self.takes_rows else None

    def by_name(self, function, inputs):
        """The function with one positional argument per input: declared inputs go to the parameters of their names."""
        names = [spec.name for spec in inputs]
        if names == self.names or not set(names) <= set(self.names):
            return function
        return lambda *values: function(**dict(zip(names, values)))


def need_inputs(what, names):
    flags = " ".join(f"--input '{name}:float32[-1,3,224,224]'" for name in names or ["x"])
    lines = [f"{what} does not say what its inputs are; declare them with -1 for open sizes such as that of the batch, by {flags} "
             "or in cudock.toml, for example:"]
    for name in names or ["x"]:
        lines += ["", "[[serve.inputs]]", f'name = "{name}"', 'dtype = "float32"', "shape = [-1, 3, 224, 224]"]
    raise LoadError("\n".join(lines))


def arrange(result, names):
    """The outputs in the order of the signature, from whatever the model returned."""
    if isinstance(result, collections.abc.Mapping):
        missing = [name for name in names if name not in result]
        if missing:
            found = ", ".join(f"`{name}`" for name in result) or "nothing"
            raise BatchError(f"the model returned no output `{missing[0]}`, but {found}")
        return [result[name] for name in names]
    if len(names) == 1 and not isinstance(result, tuple):
        return [result]
    if not isinstance(result, (tuple, list)) or len(result) != len(names):
        found = len(result) if isinstance(result, (tuple, list)) else 1
        raise BatchError(f"the model returned {found} outputs, expected {len(names)}: {', '.join(names)}")
    return list(result)


def named_outputs(result):
    """The outputs of a model that does not declare them, by name."""
    if isinstance(result, collections.abc.Mapping):
        return {str(name): value for name, value in result.items()}
    several = isinstance(result, tuple) or isinstance(result, list) and all(hasattr(one, "shape") for one in result)
    if several and len(result) != 1:
        return {f"output_{index}": value for index, value in enumerate(result)}
    return {"output": result[0] if several else result}


def find_outputs(inputs, probe):
    """The outputs of a model, found by running it on zeros of some shapes: sizes that change with the inputs are open."""
    batched = are_batched(inputs)
    has_open = any(None in spec.shape[int(batched):] for spec in inputs)
    # Rows, and the size of other open dimensions.
    runs = [(1, 1), (2, 1)] if batched else [(1, 1)]
    found = []
    for rows, size in [*runs, (2, 2)] if has_open else runs:
        shapes = [tuple(size if one is None else one for one in spec.shape) for spec in inputs]
        if batched:
            shapes = [(rows, *shape[1:]) for shape in shapes]
        try:
            found.append(probe(shapes))
        except Exception as error:
            traceback.print_exc()
            shapes = ", ".join(map(sizes, shapes))
            raise LoadError(f"cannot find the outputs, because the model fails on zeros of {shapes} ({describe(error)}); "
                            "declare them in cudock.toml as [[serve.outputs]] with name, dtype and shape") from error
    return [merge(outputs) for outputs in zip(*found)]


def merge(outputs):
    """One output, as it was for each run."""
    first = outputs[0]
    kinds = {(one.name, one.dtype, len(one.shape)) for one in outputs}
    if len(kinds) > 1 or first.dtype not in DTYPES:
        raise LoadError(f"output `{first.name}` is {' and then '.join(map(str, outputs))}")
    dimensions = zip(*(one.shape for one in outputs))
    return first._replace(shape=tuple(values[0] if len(set(values)) == 1 else None for values in dimensions))
