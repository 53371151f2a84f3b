"""The process of cudock's Python engine: loads a model and runs the batches that the server writes to shared memory.

The server sends these modules with the settings. `crates/serving/engine` defines the protocol: messages of JSON on a control
stream, then for each lane a socket for one packet per batch, and a file descriptor of shared memory for each tensor.

Needs Python 3.9 and numpy. A framework is imported only for a model that uses it.
"""
import contextlib
import importlib.abc
import importlib.util
import json
import os
import queue
import signal
import socket
import sys
import threading
import traceback

# File descriptors per packet, as in channel.rs.
DESCRIPTORS = 64
# Packages whose names differ from those of their modules.
PACKAGES = {"cv2": "opencv-python-headless", "PIL": "pillow", "sklearn": "scikit-learn", "skimage": "scikit-image",
            "yaml": "pyyaml"}


class LoadError(Exception):
    """A model that cannot be served, for a reason that its user can remove."""


def describe(error):
    """The type and message of an exception, and how to install a module that is missing."""
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, ModuleNotFoundError) and error.name:
        package = error.name.split(".")[0]
        text += f"; install it: {sys.executable} -m pip install {PACKAGES.get(package, package)}"
    return text


class SourceFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports the other modules of the worker, which are not on disk."""

    def __init__(self, sources):
        self.sources = sources

    def find_spec(self, name, path=None, target=None):
        return importlib.util.spec_from_loader(name, self) if name in self.sources else None

    def exec_module(self, module):
        name = module.__name__
        exec(compile(self.sources[name], f"{name}.py", "exec"), vars(module))


def send_message(control, message):
    text = json.dumps(message).encode()
    control.sendall(len(text).to_bytes(4, "little") + text)


def receive(control, size):
    data = b""
    while len(data) < size:
        part = control.recv(size - len(data))
        if not part:
            end_now()
        data += part
    return data


def receive_descriptors(control, count):
    descriptors = []
    while len(descriptors) < count:
        data, some, _, _ = socket.recv_fds(control, 1, DESCRIPTORS, socket.MSG_CMSG_CLOEXEC)
        if not data:
            end_now()
        descriptors += some
    return descriptors


def end_now():
    """Kills this process without cleanup, which may wait for a GPU that does not respond."""
    os.kill(os.getpid(), signal.SIGKILL)


def in_this_process(function):
    """The function, but a process that it forks ends where the function ends. It is a copy of this one, with its sockets and
    the memory of its tensors, and must not answer for it."""
    process = os.getpid()

    def run(*values):
        try:
            return function(*values)
        except BaseException as error:
            if os.getpid() != process:
                traceback.print_exception(type(error), error, error.__traceback__)
            raise
        finally:
            if os.getpid() != process:
                os._exit(0)

    return run


def follow_control(control, counts, opened):
    """Receives the lanes, whose numbers of descriptors are in `counts` once the model is loaded, and ends this process when
    the server closes the stream."""
    if not control.recv(1, socket.MSG_PEEK):
        end_now()
    for count in counts.get():
        opened.put(receive_descriptors(control, count))
    while True:
        # Requests to cancel a batch: Python code cannot be interrupted.
        receive(control, int.from_bytes(receive(control, 4), "little"))


def load(settings):
    """The model of the settings, and the reply that describes it."""
    try:
        from cudock_loader import Loader
        loader = Loader(settings)
        model = loader.load()
        return model, {"Ready": {"process": os.getpid(), **loader.ready(model)}}
    except BaseException as error:
        if isinstance(error, LoadError):
            return None, {"Load": {"reason": str(error)}}
        if not isinstance(error, ModuleNotFoundError):
            traceback.print_exception(type(error), error, error.__traceback__)
        return None, {"Load": {"reason": describe(error)}}


def main(settings):
    # The server still has batches for this process when it is asked to stop, and closes the stream when it is done.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    # When memory runs out, the kernel should kill this process and not the server.
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:
        score.write("500")
    sys.stdout.reconfigure(line_buffering=True, errors="backslashreplace")
    control = socket.socket(fileno=os.dup(0))
    # A model that reads standard input finds it empty.
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    counts, opened = queue.Queue(), queue.Queue()
    watcher = threading.Thread(target=follow_control, args=(control, counts, opened), name="control", daemon=True)
    watcher.start()
    sys.meta_path.insert(0, SourceFinder(settings["kind"].pop("modules")))
    model, reply = in_this_process(load)(settings)
    if model is None:
        send_message(control, reply)
        os._exit(1)
    from cudock_lane import Lane
    lanes = max(1, settings["lanes"])
    counts.put([1 + len(model.inputs) + len(model.outputs)] * lanes)
    send_message(control, reply)
    # The model was loaded by this thread, and may expect to be called by it: this is the first lane.
    first = Lane(model, opened.get())
    for number in range(1, lanes):
        lane = Lane(model, opened.get())
        threading.Thread(target=lane.serve, name=f"lane {number}", daemon=True).start()
    first.serve()
    watcher.join()
