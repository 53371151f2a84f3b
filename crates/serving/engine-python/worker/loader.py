"""Loads models: the kind is told by the file."""
import collections.abc
import contextlib
import importlib
import importlib.util
import inspect
import pathlib
import platform
import sys
import zipfile

from cudock_arrays import ArrayModel, JsonModel
from cudock_signature import DTYPE_NAMES, Interface, Spec, are_batched, need_inputs
from cudock_worker import LoadError, describe


# Members of archives that torch.export.save writes.
EXPORTED_MEMBERS = {"serialized_exported_program.json", "archive_format"}
# The first release of PyTorch in which `weights_only` keeps its promise (CVE-2025-32434).
WEIGHTS_ONLY = (2, 6)


class Loader:
    """Loads the model of the settings."""

    def __init__(self, settings):
        self.settings, self.kind = settings, settings["kind"]
        self.path = pathlib.Path(settings["model"]).absolute()
        self.inputs, self.outputs = self.declared("inputs"), self.declared("outputs")
        self.wants_gpu = "cuda" in settings["providers"]
        # The device of torch models, and the name of the GPU if another framework uses it.
        self.device = self.gpu_name = None
        self.skipped, self.notes = [], []

    def declared(self, key):
        specs = [Spec(one["name"], DTYPE_NAMES[one["dtype"]], tuple(one["shape"])) for one in self.kind[key]]
        return specs or None

    def load(self):
        suffix = self.path.suffix.lower()
        # What is beside a model that only holds data is not its code.
        if suffix == ".py" or self.kind["class"] or self.kind["trust"]:
            sys.path.insert(0, str(self.path.parent))
        sys.argv = [str(self.path)]
        if self.path.is_dir():
            return self.pretrained() if (self.path / "config.json").is_file() else self.saved_model()
        if suffix == ".py":
            return self.python_class()
        if suffix in (".pkl", ".pickle", ".joblib"):
            return self.pickled(suffix)
        if suffix in (".ubj", ".json"):
            return self.xgboost()
        return self.torch_file(suffix)

    def require_trust(self, what):
        """For formats that are programs. What their libraries do to contain them is not relied on."""
        if not self.kind["trust"]:
            raise LoadError(f"{self.path.name} is {what}, which can run any code when it is loaded; pass --trust if you trust "
                            "its author")

    def ready(self, model):
        """The signature of the model, and its device."""
        torch = sys.modules.get("torch")
        gpu_name = self.gpu_name
        # A class that takes arrays may use the GPU, too.
        if self.wants_gpu and torch is not None and torch.cuda.is_available():
            gpu_name = torch.cuda.get_device_name(0)
        if self.wants_gpu and gpu_name is None and not self.skipped:
            self.skipped.append(["cuda", "the model does not use PyTorch or TensorFlow on a GPU"])
        if "tensorrt" in self.settings["providers"]:
            self.skipped.insert(0, ["tensorrt", "TensorRT runs only ONNX models"])
        signature = {"inputs": [spec.message() for spec in model.inputs],
                     "outputs": [spec.message() for spec in model.outputs],
                     "batched": are_batched([*model.inputs, *model.outputs])}
        device = {"provider": "cuda" if gpu_name else "cpu", "name": gpu_name or "cpu",
                  "gpu": self.settings["gpu"] if gpu_name else None, "skipped_providers": self.skipped,
                  "notes": self.notes + getattr(model, "notes", []),
                  "engine": ", ".join(filter(None, [f"Python {platform.python_version()}", model.engine]))}
        return {"signature": signature, "device": device}

    # Python classes

    def python_class(self):
        reference = self.kind["class"]
        if reference and ":" not in reference:
            reference = f"{self.path.name}:{reference}"
        model = self.find_class(reference or self.path.name)()
        if not callable(getattr(model, "predict", None)):
            raise LoadError(f"class `{type(model).__name__}` has no method `predict`")
        interface = Interface(model.predict)
        if interface.takes_torch:
            self.use_torch()
        if callable(getattr(model, "load", None)):
            takes_device = "device" in inspect.signature(model.load).parameters
            model.load(**{"device": str(self.use_torch())} if takes_device else {})
        if interface.takes_rows and not self.inputs:
            return JsonModel(model.predict, interface.row_type)
        inputs, outputs = self.inputs or interface.inputs, self.outputs or interface.outputs
        if not inputs:
            need_inputs(f"`predict` of class `{type(model).__name__}`", interface.names)
        call = interface.by_name(model.predict, inputs)
        if not interface.takes_torch:
            return ArrayModel(call, inputs, outputs)
        from cudock_tensors import TorchModel
        return TorchModel(call, inputs, outputs, self.place_modules(model, inputs))

    def find_class(self, reference):
        """The class `FILE.py:CLASS` or `MODULE:CLASS`; of a file without a class, the only one with `predict`."""
        place, name = (reference, "") if reference.endswith(".py") else reference.rpartition(":")[::2]
        if place.endswith(".py"):
            path = self.path.parent / place
            if not path.is_file():
                raise LoadError(f"{path} not found, which `class` names")
            # It must not replace a module that is in use.
            module_name = f"cudock_{path.stem}" if path.stem in sys.modules else path.stem
            spec = importlib.util.spec_from_file_location(module_name, path)
            module = sys.modules[module_name] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
        elif place:
            module = importlib.import_module(place)
        else:
            raise LoadError(f"`class` is {reference!r}: write it as \"file.py:Class\" or \"module:Class\"")
        if name:
            if not hasattr(module, name):
                raise LoadError(f"{place} has no class `{name}`")
            return getattr(module, name)
        classes = [one for one in vars(module).values()
                   if isinstance(one, type) and one.__module__ == module.__name__ and hasattr(one, "predict")]
        if len(classes) != 1:
            found = ", ".join(one.__name__ for one in classes) or "none"
            raise LoadError(f"{place} must have one class with a method `predict`, found {found}; name one with `class` in "
                            "cudock.toml, or --class")
        return classes[0]

    # PyTorch

    def use_torch(self):
        """Imports PyTorch, and returns the device of its models."""
        if self.device is not None:
            return self.device
        import torch
        settings = self.settings
        if settings["threads"]:
            torch.set_num_threads(settings["threads"])
        name = "cpu"
        if self.wants_gpu:
            try:
                torch.cuda.init()
                name = "cuda:0"
            except Exception as error:
                self.skipped.append(["cuda", f"PyTorch {torch.__version__}: {describe(error)}"])
        self.device = torch.device(name)
        if self.device.type == "cuda":
            # Trying every algorithm pays off if few batch sizes come.
            torch.backends.cudnn.benchmark = self.kind["exhaustive"] or bool(self.kind["graphs"])
            if settings["gpu_memory"]:
                total = torch.cuda.get_device_properties(self.device).total_memory
                torch.cuda.set_per_process_memory_fraction(min(1.0, settings["gpu_memory"] / total), self.device)
        return self.device

    def torch_options(self, inputs, uses_autocast=False):
        import torch
        from cudock_tensors import PRECISIONS, TorchOptions, pin_error
        is_gpu, dtype = self.device.type == "cuda", PRECISIONS.get(self.kind["precision"])
        error = pin_error() if is_gpu and self.kind["pinned"] else 0
        if error:
            self.notes.append(f"memory is not pinned: CUDA error {error}")
        has_one_open_size = are_batched(inputs) and all(None not in spec.shape[1:] for spec in inputs)
        # PyTorch 2.6 and newer.
        can_stay_eager = hasattr(torch.compiler, "set_stance")
        return TorchOptions(
            self.device, dtype, uses_autocast=uses_autocast and dtype is not None,
            channels_last=self.kind["channels_last"], compile=self.kind["compile"],
            compiled_rows=tuple(self.kind["compiled_rows"]) if has_one_open_size and can_stay_eager else (),
            graphs=tuple(self.kind["graphs"]) if is_gpu else (), pinned=is_gpu and self.kind["pinned"] and not error)

    def torch_file(self, suffix):
        names = set()
        if zipfile.is_zipfile(self.path):
            with zipfile.ZipFile(self.path) as archive:
                names = {name.rpartition("/")[2] for name in archive.namelist()}
        if "constants.pkl" in names:
            return self.script()
        if suffix == ".pt2" or names & EXPORTED_MEMBERS:
            return self.exported()
        return self.weights(suffix == ".safetensors" or self.begins_as_safetensors())

    def begins_as_safetensors(self):
        """Whether the file begins with the length of a header in JSON, whatever its name is."""
        with open(self.path, "rb") as file:
            start = file.read(9)
        return len(start) == 9 and start[5:] == b"\0\0\0{"

    def script(self):
        self.require_trust("a TorchScript program")
        self.use_torch()
        import torch
        module = torch.jit.load(str(self.path), map_location=self.device)
        if not self.inputs:
            arguments = module.forward.schema.arguments[1:]
            need_inputs(f"{self.path.name} is a TorchScript model, which", [one.name for one in arguments])
        return self.module(lambda: torch.jit.load(str(self.path), map_location=self.device), self.inputs, self.outputs)

    def exported(self):
        self.require_trust("an exported program of PyTorch")
        self.use_torch()
        import torch
        program = torch.export.load(str(self.path))
        if self.device.type == "cuda":
            from torch.export.passes import move_to_device_pass
            program = move_to_device_pass(program, self.device)
        values = {node.name: node.meta.get("val") for node in program.graph.nodes}

        def spec(name):
            value = values.get(name)
            if not isinstance(value, torch.Tensor):
                raise LoadError(f"input `{name}` of {self.path.name} is not a tensor")
            # Sizes that are not plain numbers are symbols.
            shape = tuple(size if type(size) is int else None for size in value.shape)
            return Spec(name, str(value.dtype)[len("torch."):], shape)

        inputs = self.inputs or [spec(name) for name in program.graph_signature.user_inputs]
        return self.module(program.module, inputs, self.outputs)

    def weights(self, is_safetensors):
        """A module with weights of a file; with `trust`, also a module in a pickle."""
        self.use_torch()
        import torch
        if is_safetensors:
            from safetensors.torch import load_file
            weights = load_file(str(self.path))
        else:
            weights = self.unpickled_weights()
        if isinstance(weights, torch.nn.Module):
            build = lambda: weights
        else:
            build = self.weighted_class(weights)
        module = build()
        interface = Interface(module.forward)
        inputs = self.inputs or interface.inputs or self.first_layer_input(module, interface)
        if not inputs:
            need_inputs(f"`forward` of class `{type(module).__name__}`", interface.names)
        return self.module(build, inputs, self.outputs or interface.outputs, interface)

    def first_layer_input(self, module, interface):
        """The only input of a module, if its first layer tells for certain what it is."""
        if len(interface.names) != 1:
            return None
        from cudock_tensors import layer_input
        found = layer_input(module, interface.names[0])
        if found:
            self.notes.append(f"input `{found.name}` is {found}, by the first layer")
        return found and [found]

    def unpickled_weights(self):
        import torch
        if tuple(map(int, torch.__version__.split(".")[:2])) < WEIGHTS_ONLY:
            self.require_trust(f"a pickle, of which PyTorch {torch.__version__} cannot load the weights alone (2.6 can)")
        try:
            return torch.load(self.path, map_location="cpu", weights_only=not self.kind["trust"])
        except Exception as error:
            if self.kind["trust"] or "weights_only" not in str(error).lower():
                raise
            raise LoadError(f"{self.path.name} is a pickle of more than weights, which can run any code when it is loaded; "
                            "pass --trust if you trust its author") from error

    def weighted_class(self, weights):
        """Returns a function that makes a module of the class in the settings, with these weights."""
        if not self.kind["class"]:
            raise LoadError(f"{self.path.name} holds weights without the model; name its class: class = \"file.py:Class\" "
                            "under [serve] in cudock.toml, or --class")
        if not isinstance(weights, collections.abc.Mapping):
            raise LoadError(f"{self.path.name} holds {type(weights).__name__}, and not a state dict")
        weights = weights.get("state_dict", weights)
        module_class = self.find_class(self.kind["class"])

        def build():
            module = module_class()
            module.load_state_dict(weights)
            return module

        return build

    def module(self, build, inputs, outputs, interface=None):
        """A model from a module that `build` makes. If it cannot run in the precision asked for, its operators are cast."""
        options = self.torch_options(inputs)
        try:
            return self.prepared(build(), inputs, outputs, options, interface)
        except (LoadError, RuntimeError) as error:
            if options.dtype is None:
                raise
            self.notes.append(f"{self.kind['precision']} by autocast: {describe(error.__cause__ or error)}")
        return self.prepared(build(), inputs, outputs, self.torch_options(inputs, uses_autocast=True), interface)

    def prepared(self, module, inputs, outputs, options, interface):
        from cudock_tensors import TorchModel
        module = self.place(module, options)
        call = interface.by_name(module, inputs) if interface else module
        return TorchModel(call, inputs, outputs, options)

    def place(self, module, options):
        """The module on its device, in the precision and layout of the options."""
        import torch
        # An exported program is in evaluation mode and has no other.
        with contextlib.suppress(NotImplementedError):
            module.eval()
        module.to(self.device)
        if options.dtype is not None and not options.uses_autocast:
            module.to(options.dtype)
        if options.channels_last:
            module.to(memory_format=torch.channels_last)
        if options.compile and isinstance(module, torch.jit.ScriptModule):
            self.notes.append("torch.compile does not apply to TorchScript")
        elif options.compile:
            # On the CPU, frozen weights are packed for its instructions and merged with norms. GPUs were not measured.
            freezing = {"freezing": True} if self.device.type == "cpu" else None
            module = torch.compile(module, dynamic=False if options.compiled_rows else None, options=freezing)
        return module

    def place_modules(self, model, inputs):
        """Places the modules that are attributes of a model of the user's; returns the options for it."""
        import torch
        modules = {name: value for name, value in vars(model).items() if isinstance(value, torch.nn.Module)}
        # Without modules, the weights are in the precision that the class chose.
        options = self.torch_options(inputs, uses_autocast=not modules)
        for name, module in modules.items():
            setattr(model, name, self.place(module, options))
        return options

    def pretrained(self):
        """A directory of transformers."""
        from cudock_pretrained import Pretrained
        directory = Pretrained(self.path, self.kind["trust"])
        self.use_torch()
        first = directory.build()
        inputs = self.inputs or directory.inputs(first.names)
        import transformers
        model = self.module(lambda: first, inputs, self.outputs)
        model.engine += f", transformers {transformers.__version__}"
        return model

    # Other frameworks

    def saved_model(self):
        self.require_trust("a SavedModel of TensorFlow")
        import tensorflow as tf
        for gpu in tf.config.list_physical_devices("GPU"):
            tf.config.experimental.set_memory_growth(gpu, True)
            self.gpu_name = tf.config.experimental.get_device_details(gpu).get("device_name", gpu.name)
        if self.settings["threads"]:
            tf.config.threading.set_intra_op_parallelism_threads(self.settings["threads"])
        loaded = tf.saved_model.load(str(self.path))
        if "serving_default" not in loaded.signatures:
            raise LoadError(f"{self.path.name} has no signature `serving_default`")
        function = loaded.signatures["serving_default"]

        def spec(name, tensor):
            if tensor.shape.rank is None or tensor.dtype.name not in DTYPE_NAMES.values():
                raise LoadError(f"unsupported `{name}` in {self.path.name}: {tensor.dtype.name} {tensor.shape}")
            return Spec(name, tensor.dtype.name, tuple(tensor.shape.as_list()))

        inputs = self.inputs or [spec(*one) for one in function.structured_input_signature[1].items()]
        outputs = self.outputs or [spec(*one) for one in function.structured_outputs.items()]
        names = [one.name for one in inputs]

        def call(*arrays):
            # The variables belong to `loaded`, which must not go.
            assert loaded
            return function(**{name: tf.constant(array) for name, array in zip(names, arrays)})

        return ArrayModel(call, inputs, outputs, f"TensorFlow {tf.__version__}")

    def pickled(self, suffix):
        self.require_trust("a pickle")
        module = importlib.import_module("joblib" if suffix == ".joblib" else "pickle")
        with open(self.path, "rb") as file:
            model = module.load(file)
        if not callable(getattr(model, "predict", None)):
            raise LoadError(f"{self.path.name} holds {type(model).__name__}, which has no method `predict`")
        features = getattr(model, "n_features_in_", None)
        if not self.inputs and features is None:
            need_inputs(self.path.name, [])
        inputs = self.inputs or [Spec("x", "float64", (None, int(features)))]
        call = model.predict
        if hasattr(model, "predict_proba"):
            call = lambda *arrays: {"label": model.predict(*arrays), "probabilities": model.predict_proba(*arrays)}
        package = type(model).__module__.split(".")[0]
        version = getattr(sys.modules.get(package), "__version__", "")
        return ArrayModel(call, inputs, self.outputs, f"{package} {version}".strip())

    def xgboost(self):
        import xgboost
        booster = xgboost.Booster(model_file=str(self.path))
        inputs = self.inputs or [Spec("x", "float32", (None, booster.num_features()))]
        return ArrayModel(booster.inplace_predict, inputs, self.outputs, f"xgboost {xgboost.__version__}")
