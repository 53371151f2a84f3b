import sys
# A module in the current directory must not replace another one.
sys.path[:] = [path for path in sys.path if path]
import json, types
with open(0, "rb", closefd=False) as stream:
    settings = json.loads(stream.read(int.from_bytes(stream.read(4), "little")))
worker = sys.modules["cudock_worker"] = types.ModuleType("cudock_worker")
exec(compile(settings["kind"].pop("worker"), "cudock_worker.py", "exec"), vars(worker))
worker.main(settings)
