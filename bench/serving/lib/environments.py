"""The Python environments of the other servers, created once per version of `requirements/`."""
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys

REQUIREMENTS = pathlib.Path(__file__).resolve().parent.parent / "requirements"
# Python versions for which all pinned packages have wheels.
USABLE = ((3, 11), (3, 12))


def home():
    """The directory that keeps environments and models between runs."""
    return pathlib.Path(os.environ.get("CUDOCK_BENCH_HOME") or pathlib.Path.home() / ".cache" / "cudock-bench")


def _base_python():
    if sys.version_info[:2] in USABLE:
        return sys.executable
    for major, minor in USABLE:
        found = shutil.which(f"python{major}.{minor}")
        if found and subprocess.run([found, "-c", ""], check=False).returncode == 0:
            return found
    raise SystemExit("no Python " + " or ".join(f"{a}.{b}" for a, b in USABLE) + " found to run the other servers")


class Environment:
    """One virtual environment."""

    def __init__(self, name):
        wanted = (REQUIREMENTS / f"{name}.txt").read_bytes()
        self.directory = home() / "venv" / f"{name}-{hashlib.sha256(wanted).hexdigest()[:12]}"
        self.python = self.directory / "bin" / "python"
        if (self.directory / "complete").exists():
            return
        shutil.rmtree(self.directory, ignore_errors=True)
        print(f"installing {name} into {self.directory}", file=sys.stderr)
        subprocess.run([_base_python(), "-m", "venv", self.directory], check=True)
        subprocess.run([self.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                        "--only-binary", ":all:", "-r", REQUIREMENTS / f"{name}.txt"], check=True)
        (self.directory / "complete").touch()

    def with_torch(self):
        """Adds the packages of the environment that has torch, after its own, and returns itself."""
        link = self.packages() / "cudock-bench-torch.pth"
        if not link.exists():
            link.write_text(f"import site; site.addsitedir({str(Environment('torch').packages())!r})\n")
        return self

    def ask(self, code):
        """Returns the output of a line of Python in this environment."""
        return subprocess.run([self.python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()

    def packages(self):
        """Its site-packages directory."""
        return pathlib.Path(self.ask("import sysconfig; print(sysconfig.get_path('purelib'))"))

    def onnxruntime(self):
        """The engine's shared library, the same build as in the Python package of the other servers."""
        return next((self.packages() / "onnxruntime" / "capi").glob("libonnxruntime.so.*"))
