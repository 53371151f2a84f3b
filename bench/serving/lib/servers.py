"""The servers in the comparison, and how each is started.

Every server gets the same model, one engine thread, one core, batches of at most 32 rows and, if it has such a
setting, a wait of 2 ms for them.
"""
import dataclasses
import json
import pathlib
import secrets
import shutil
import subprocess

import client
import models
from environments import Environment, home
from process import Process, free_port, pinned, wait_until

MAX_BATCH = 32
MAX_WAIT_MS = 2
START_SECONDS = 60
HERE = pathlib.Path(__file__).resolve().parent
SERVERS = HERE.parent / "servers"
PYTHON = SERVERS / "python"
RAW = "application/octet-stream"


@dataclasses.dataclass(frozen=True)
class Kind:
    """A server and the protocol used with it."""
    name: str
    program: str
    protocol: str = "predict"
    # Additional options of its command, and how much numbers may differ because of them.
    options: tuple = ()
    tolerance: float = 1e-3

    @property
    def is_ours(self):
        return self.program == "cudock"


def _by_name(*kinds):
    return {kind.name: kind for kind in kinds}


OURS = Kind("cudock", "cudock")
OURS_BINARY = Kind("cudock-bin", "cudock", "oip-binary")
PEERS = _by_name(
    Kind("mosec", "mosec"),
    Kind("triton", "triton", "oip"),
    Kind("triton-bin", "triton", "oip-binary"),
    Kind("asgi-batch", "uvicorn"),
    Kind("granian-batch", "granian"))
ALL = {**_by_name(OURS, OURS_BINARY), **PEERS}
# The network as it is, and what settings make of it; with other servers that is code of the user's.
OURS_PYTHON = (
    Kind("cudock", "cudock", "raw"),
    Kind("cudock --nhwc --precision bf16", "cudock", "raw", ("--nhwc", "--precision", "bf16"), tolerance=2e-2))
PYTHON_PEERS = _by_name(
    Kind("litserve", "litserve", "raw"),
    Kind("bentoml", "bentoml", "raw"),
    Kind("ray", "ray", "raw"),
    Kind("mosec", "mosec", "raw"),
    Kind("triton", "triton", "oip-binary"))
PYTHON_CLASSES = {"torch-mlp": "Mlp", "resnet18": "ResNet18"}


class Traffic:
    """The requests for a model in a protocol, and the results of the bare engine."""

    def __init__(self, model, protocol):
        self.model, self.protocol = model, protocol
        self.expected = expected(model)
        self.path = "/predict" if protocol in ("predict", "raw") else f"/v2/models/{model}/infer"
        rows = models.rows(model)
        self.bodies = [self.body([row]) for row in rows]

    def body(self, rows):
        """Returns body and headers of a request with several rows."""
        flat = [number for row in rows for number in row]
        if self.protocol == "raw":
            return models.raw_body(flat), [("Content-Type", RAW), ("Accept", RAW)]
        if self.protocol == "oip-binary":
            body, head = models.oip_binary_body(self.model, flat, len(rows))
            return body, [("Content-Type", RAW), ("Inference-Header-Content-Length", head)]
        writer = models.predict_body if self.protocol == "predict" else models.oip_body
        return writer(self.model, flat, len(rows)), [("Content-Type", "application/json")]

    def requests(self):
        """Returns the complete requests."""
        return [client.request(self.path, body, headers) for body, headers in self.bodies]

    def request_of(self, rows):
        """Returns a request with several rows."""
        return client.request(self.path, *self.body(rows))


def model_file(model):
    return models.write(home() / "models", model)


def expected(model):
    """Returns the bare engine's result for each row."""
    if model in models.PYTHON_MODELS:
        source, path, python = PYTHON / "networks.py", PYTHON, Environment("torch").python
    else:
        source = path = model_file(model)
        python = Environment("asgi").python
    kept = home() / "models" / f"{model}.expected.json"
    if not kept.exists() or kept.stat().st_mtime < source.stat().st_mtime:
        done = subprocess.run([python, "-B", HERE / "expected.py", model, path], check=True, capture_output=True)
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(done.stdout)
    return json.loads(kept.read_text())


def _cudock(context, model, port):
    if model in models.PYTHON_MODELS:
        what = [PYTHON / "cudock_models.py", "--class", PYTHON_CLASSES[model], "--python", Environment("torch").python]
        env = _settings(model)
    else:
        what, env = [model_file(model)], {"CUDOCK_ONNXRUNTIME": str(Environment("asgi").onnxruntime())}
    return ([context.cudock, "serve", *what, "--listen", f"127.0.0.1:{port}", "--device", "cpu", "--threads", "1",
             "--max-batch", MAX_BATCH, "--max-wait", f"{MAX_WAIT_MS}ms", "--offline", *context.ours], env, None)


def _settings(model):
    settings = {"MODEL_SHAPE": ",".join(map(str, models.SHAPES[model])), "MAX_BATCH": str(MAX_BATCH),
                "MAX_WAIT_MS": str(MAX_WAIT_MS), "PYTHONDONTWRITEBYTECODE": "1"}
    if model in models.PYTHON_MODELS:
        return {**settings, "MODEL_NAME": model, "PYTHONPATH": str(PYTHON), "OMP_NUM_THREADS": "1"}
    return {**settings, "MODEL_FILE": str(model_file(model))}


def _environment(name, model):
    environment = Environment(name)
    return environment.with_torch() if model in models.PYTHON_MODELS else environment


def _directory(model):
    """The directory with the servers for a model."""
    return PYTHON if model in models.PYTHON_MODELS else SERVERS


def _mosec(_context, model, port):
    return ([_environment("mosec", model).python, _directory(model) / "mosec_server.py", "--port", port,
             "--log-level", "warning"], _settings(model), None)


def _litserve(_context, model, port):
    return [_environment("litserve", model).python, PYTHON / "litserve_server.py", port], _settings(model), None


def _bentoml(_context, model, port):
    env = {**_settings(model), "BENTOML_HOME": str(home() / "bentoml"), "BENTOML_DO_NOT_TRACK": "1"}
    return ([_environment("bentoml", model).python, "-m", "bentoml", "serve", "bentoml_service:Inference",
             "--host", "127.0.0.1", "--port", port, "--working-dir", PYTHON], env, PYTHON)


def _ray(_context, model, port):
    # The first two are what its documentation calls high throughput mode. Without a token, it writes one to ~/.ray.
    env = {**_settings(model), "RAY_SERVE_ENABLE_HA_PROXY": "1", "RAY_SERVE_THROUGHPUT_OPTIMIZED": "1",
           "RAY_SERVE_HAPROXY_NBTHREAD": "1", "RAY_SERVE_HAPROXY_METRICS_ENABLED": "0", "RAY_USAGE_STATS_ENABLED": "0",
           "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    return [_environment("ray", model).python, PYTHON / "ray_server.py", port], env, None


def _uvicorn(_context, model, port):
    return ([Environment("asgi").python, "-m", "uvicorn", "--app-dir", SERVERS, "asgi_server:app", "--port", port,
             "--loop", "uvloop", "--http", "httptools", "--no-access-log", "--log-level", "warning"],
            _settings(model), None)


def _granian(_context, model, port):
    return ([Environment("asgi").python, "-m", "granian", "--interface", "asgi", "--port", port, "--no-ws",
             "--loop", "uvloop", "--log-level", "warning", "asgi_server:app"], _settings(model), SERVERS)


TRITON_CONFIG = """name: "{model}"
backend: "python"
max_batch_size: {batch}
input [{{ name: "input" data_type: TYPE_FP32 dims: {dims} }}]
output [{{ name: "output" data_type: TYPE_FP32 dims: [-1] }}]
instance_group [{{ count: 1 kind: KIND_CPU }}]
dynamic_batching {{ max_queue_delay_microseconds: {wait} }}
"""


def _triton(_context, model, port):
    environment = _environment("triton", model)
    packages, work = environment.packages(), home() / "triton"
    parts = packages / "pytriton" / "tritonserver"
    version, libraries = environment.ask(
        "import sys, sysconfig; "
        "print('%d.%d' % sys.version_info[:2], sysconfig.get_config_var('LIBDIR'))").split(" ", 1)
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(parts / "backends", work / "backends")
    shutil.copy(parts / "python_backend_stubs" / version / "triton_python_backend_stub", work / "backends" / "python")
    version_directory = work / "models" / model / "1"
    version_directory.mkdir(parents=True)
    shutil.copy(_directory(model) / "triton_model.py", version_directory / "model.py")
    if model in models.PYTHON_MODELS:
        shutil.copy(PYTHON / "networks.py", version_directory)
    (work / "models" / model / "config.pbtxt").write_text(TRITON_CONFIG.format(
        model=model, batch=MAX_BATCH, dims=models.SHAPES[model], wait=MAX_WAIT_MS * 1000))
    # The backend uses the first Python it finds, and with it the environment's packages.
    env = {**_settings(model), "PATH": f"{environment.directory / 'bin'}:/usr/local/bin:/usr/bin:/bin",
           "LD_LIBRARY_PATH": f"{libraries}:{packages / 'nvidia_pytriton.libs'}"}
    return ([parts / "bin" / "tritonserver", "--model-repository", work / "models", "--backend-directory",
             work / "backends", "--http-port", port, "--http-thread-count", "4", "--allow-grpc", "false",
             "--allow-metrics", "false", "--log-info", "false"], env, None)


PROGRAMS = {"cudock": _cudock, "mosec": _mosec, "uvicorn": _uvicorn, "granian": _granian, "triton": _triton,
            "litserve": _litserve, "bentoml": _bentoml, "ray": _ray}
HEALTH = {"cudock": "/health", "mosec": "/metrics", "uvicorn": "/", "granian": "/", "triton": "/v2/health/ready"}


class Running:
    """A started server that has answered correctly; a context manager that terminates it."""

    def __init__(self, context, kind, model):
        self.kind, self.model, self.port = kind, model, free_port()
        self.traffic = Traffic(model, kind.protocol)
        command, env, cwd = PROGRAMS[kind.program](context, model, self.port)
        command += kind.options
        log = context.logs / f"{kind.name.replace(' ', '')}-{model}.log"
        self.process = Process(pinned(context.server_core, command), log, env, cwd)

    def __enter__(self):
        try:
            first = self.traffic.requests()[0]
            answered = wait_until(
                lambda: not self.process.is_alive() or client.ask(self.port, first, 5)[0] == 200, START_SECONDS)
            if not answered or not self.process.is_alive():
                raise RuntimeError(f"{self.kind.name} does not serve {self.model}:\n{self.process.last_words()}")
            return self
        except BaseException:
            self.process.stop(1)
            raise

    def __exit__(self, *_):
        self.process.stop()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def health(self):
        """Returns the status of its health route."""
        return client.ask(self.port, client.request(HEALTH[self.kind.program], None), 2)[0]

    def engine(self):
        """Returns the process that runs the model: the newest one that has the engine mapped."""
        holders = self.process.holders("onnxruntime")
        return max((pid for pid in holders if pid != self.process.pid), default=self.process.pid)

    def wrong_answers(self):
        """Sends every request alone, then all together; returns how many responses differ from the bare engine."""
        requests = self.traffic.requests()
        answers = [client.ask(self.port, data) for data in requests] + client.ask_together(self.port, requests)
        return sum(
            status != 200
            or not client.agrees(client.output(self.kind.protocol, headers, body), want, self.kind.tolerance)
            for (status, headers, body), want in zip(answers, self.traffic.expected * 2))
