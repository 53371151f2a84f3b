"""The two load generators: `cudock bench`, and wrk as an independent second opinion."""
import json
import os
import shutil
import subprocess

import models
from environments import Environment, home
from process import pinned
from servers import HERE, MAX_BATCH, PYTHON

# The connections that an open loop may use; when all are busy, a request waits for one, and the wait counts. Under overload
# there must be more than a server queues, or the generator's queue fills instead of the server's.
CONNECTIONS = 512
CONNECTIONS_OF_A_CROWD = 8192


def _seconds(duration):
    return f"{duration:g}s"


def _run(command, env=None, limit=None):
    try:
        done = subprocess.run(command, capture_output=True, env={**os.environ, **(env or {})}, timeout=limit,
                              check=False)
    except subprocess.TimeoutExpired as error:
        raise RuntimeError(f"the generator took more than {limit:.0f} s") from error
    if done.returncode != 0:
        raise RuntimeError(f"the generator failed ({done.returncode}): {done.stderr.decode(errors='replace')[-800:]}")
    return done.stdout.decode()


def _write_bodies(traffic):
    directory = home() / "bodies" / f"{traffic.model}-{traffic.protocol}"
    directory.mkdir(parents=True, exist_ok=True)
    for index, ((body, _), want) in enumerate(zip(traffic.bodies, traffic.expected)):
        (directory / f"{index}.body").write_bytes(body)
        (directory / f"{index}.expected").write_text(json.dumps(want))
    return directory


def _bench(context, running, duration, warm_up, options):
    traffic = running.traffic
    # The shape is for servers that do not describe their models; bodies are generated from the same seed for all.
    command = pinned(context.load_core, [
        context.cudock, "bench", running.url + traffic.path, *options, "--protocol", traffic.protocol,
        "--shape", f"{models.INPUT}={','.join(map(str, models.SHAPES[traffic.model]))}", "--dtype", "FP32",
        "--duration", _seconds(duration), "--warm-up", _seconds(warm_up), "--format", "json"])
    report = json.loads(_run(command, limit=duration * 4 + 120))
    return _plain(report["runs"][0])


def _plain(run):
    """Returns the figures of a run that the tables need."""
    return {
        "throughput": run["goodput_per_second"],
        "p50_ms": run["latency"]["p50_ms"],
        "p99_ms": run["latency"]["p99_ms"],
        "refused": run["refused"]["count"],
        "refused_p99_ms": run["refused"]["p99_ms"] if run["refused"]["count"] else None,
        "failed": run["failed"]["count"] + sum(run["broken"].values()),
        "unanswered": run["unanswered"],
        "checked": run["checked"],
        "wrong": run["wrong"],
        "generator_busy": run.get("generator_busy"),
    }


def closed(context, running, clients, duration, warm_up):
    """Runs a number of clients, each sending when it has its response."""
    return _bench(context, running, duration, warm_up, ["--clients", clients])


def open_loop(context, running, rate, duration, warm_up, connections=CONNECTIONS):
    """Keeps a rate regardless of the server, with latency counted from the time a request was due."""
    return _bench(context, running, duration, warm_up, ["--rate", f"{rate:.0f}", "--connections", connections])


def has_wrk():
    return shutil.which("wrk") is not None


def wrk(context, running, clients, duration):
    """Runs the same closed loop with wrk."""
    traffic = running.traffic
    env = {"BODY_DIR": str(_write_bodies(traffic)), "BODY_PATH": traffic.path,
           "BODY_BINARY": str(int(traffic.protocol == "oip-binary")),
           "BODY_HEADERS": "\n".join(f"{name}: {value}" for name, value in traffic.bodies[0][1])}
    command = pinned(context.load_core, [
        "wrk", "-t1", f"-c{clients}", f"-d{max(1, round(duration))}s", "-s", HERE / "wrk.lua", running.url])
    found = json.loads(_run(command, env, duration * 4 + 60).splitlines()[-1])
    return {"throughput": (found["requests"] - found["failed"]) / found["seconds"], "p50_ms": found["p50_ms"],
            "p99_ms": found["p99_ms"], "refused": 0, "refused_p99_ms": None,
            "failed": found["failed"] + found["broken"], "unanswered": 0,
            "checked": found["checked"], "wrong": found["wrong"], "generator_busy": None}


def limit(context, model, library):
    """Measures the limit set by the bare engine and the JSON work, on the server's core."""
    command = pinned(context.server_core, [
        context.cudock, "bench", "--model", model, "--device", "cpu", "--engine-threads", "1", "--batch", "1,8,16,32",
        "--duration", "2s", "--offline", "--format", "json"])
    return json.loads(_run(command, {"CUDOCK_ONNXRUNTIME": str(library)}, 300))


def limit_of_torch(context, model):
    """Measures a network without a server, on the server's core."""
    command = pinned(context.server_core, [Environment("torch").python, "-B", HERE / "bare_torch.py", model, PYTHON,
                                           1, 8, MAX_BATCH])
    return json.loads(_run(command, limit=300))
