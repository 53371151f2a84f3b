"""Processes of a measurement: pinned to a core, in their own process group, and always terminated by process id."""
import os
import pathlib
import signal
import socket
import subprocess
import time

# Read before this process is pinned to a core.
USABLE = sorted(os.sched_getaffinity(0))
TICKS = os.sysconf("SC_CLK_TCK")


def cores():
    """Returns a core for servers and one for the generator; the same one twice if there is only one."""
    return USABLE[0], USABLE[min(1, len(USABLE) - 1)]


def pinned(core, command):
    """Returns the command, pinned to a core."""
    return ["taskset", "-c", str(core), *map(str, command)]


def free_port():
    """Returns a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Others:
    """Measures how much of the server's core other programs use during a measurement."""

    def __init__(self, process):
        self.process = process

    def __enter__(self):
        self.start, self.before = time.monotonic(), self._spent()
        return self

    def __exit__(self, *_):
        self.share = max(0.0, self._spent() - self.before) / (time.monotonic() - self.start)

    def _spent(self):
        """Returns the seconds that the core was busy with other programs."""
        for line in pathlib.Path("/proc/stat").read_text().splitlines():
            name, *ticks = line.split()
            if name == f"cpu{cores()[0]}":
                # All but idle and iowait; the last two are included in the first.
                busy = sum(int(tick) for index, tick in enumerate(ticks[:8]) if index not in (3, 4))
                return busy / TICKS - self.process.cpu_seconds()
        return 0.0


def _stat(pid):
    """Returns parent, CPU seconds and CPU seconds of exited children, or None if the process has exited."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    if fields[0] == "Z":
        return None
    return int(fields[1]), (int(fields[11]) + int(fields[12])) / TICKS, (int(fields[13]) + int(fields[14])) / TICKS


def _resident(pid):
    """Returns bytes, with shared memory counted proportionally if the system reports it."""
    try:
        for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


class Process:
    """A started program and its descendants."""

    def __init__(self, command, log, env=None, cwd=None):
        self.log = pathlib.Path(log)
        self._output = open(self.log, "wb")
        self.child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self._output, stderr=self._output,
                                      env={**os.environ, **(env or {})}, cwd=cwd, start_new_session=True)
        self.pid = self.child.pid

    def is_alive(self):
        return self.child.poll() is None

    def tree(self):
        """Returns the process and its current descendants."""
        parents = {}
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                stat = _stat(int(entry))
                if stat:
                    parents.setdefault(stat[0], []).append(int(entry))
        found, open_ = [], [self.pid] if _stat(self.pid) else []
        while open_:
            pid = open_.pop()
            found.append(pid)
            open_.extend(parents.get(pid, []))
        return found

    def cpu_seconds(self):
        """Returns the CPU time of the process tree so far."""
        return sum(stat[1] + stat[2] for stat in map(_stat, self.tree()) if stat)

    def memory(self):
        """Returns the memory of the process tree in bytes."""
        return sum(map(_resident, self.tree()))

    def holders(self, library):
        """Returns the processes of the tree that have a library with that name mapped."""
        found = []
        for pid in self.tree():
            try:
                if library in pathlib.Path(f"/proc/{pid}/maps").read_text():
                    found.append(pid)
            except OSError:
                continue
        return found

    def stop(self, patience=10.0):
        """Terminates the process, kills it if necessary, and kills the rest of its group."""
        members = self.tree()
        if self.is_alive():
            self.child.terminate()
            try:
                self.child.wait(patience)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait()
        for pid in members:
            stat = _stat(pid)
            if pid != self.pid and stat and os.getpgid(pid) == self.pid:
                try:
                    os.kill(pid, signal.SIGKILL)
                except OSError:
                    pass
        self._output.close()

    def last_words(self, lines=15):
        """Returns the last lines of its output."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])


def wait_until(condition, seconds, step=0.05):
    """Whether the condition became true in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(step)
    return False
