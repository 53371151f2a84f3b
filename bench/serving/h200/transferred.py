"""The command and the engine's libraries as `prepare` packed them for the GPU machine."""
import lzma
import os
import subprocess


def unpack(work):
    """Unpacks the parts that exist; if both have a file, the newer one is used."""
    target = work / "open"
    target.mkdir(parents=True, exist_ok=True)
    newest = {}
    for packed in sorted(work.glob("[ab]/*.xz"), key=lambda path: (path.stat().st_mtime, path)):
        newest[packed.name[:-3]] = packed
    for name, packed in newest.items():
        opened, mark = target / name, target / f"{name}.from"
        source = f"{packed.parent.name} {packed.stat().st_size} {packed.stat().st_mtime}"
        if not opened.exists() or not mark.exists() or mark.read_text() != source:
            opened.unlink(missing_ok=True)
            opened.write_bytes(lzma.open(packed).read())
            opened.chmod(0o755)
            mark.write_text(source)
    return target


def cuda_directories(python):
    """Returns the directories of the CUDA libraries that torch installed."""
    code = "import glob, nvidia; print('\\n'.join(f for p in nvidia.__path__ for f in glob.glob(p + '/*/lib')))"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.split()


def environment(opened, library, python, on_gpu):
    """Returns the variables with which the command finds the engine's libraries."""
    library = library or next(iter(sorted(opened.glob("libonnxruntime.so.*[0-9]"))), None)
    directories = [str(opened.resolve()), *cuda_directories(python)] if on_gpu else []
    env = {**os.environ, "LD_LIBRARY_PATH": ":".join([*directories, os.environ.get("LD_LIBRARY_PATH", "")]),
           "PYTHONUNBUFFERED": "1", "NO_COLOR": "1"}
    if library:
        env["CUDOCK_ONNXRUNTIME"] = str(library.resolve())
    return env
