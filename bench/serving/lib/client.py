"""A small HTTP/1.1 client on bare sockets: the tests must know when a request was sent and when it was lost."""
import concurrent.futures
import json
import socket
import struct
import threading


class Lost(Exception):
    """The connection was closed before the response was complete."""


def request(path, body, headers=()):
    """Returns the bytes of a POST, or of a GET if there is no body."""
    method = "GET" if body is None else "POST"
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", *(f"{name}: {value}" for name, value in headers)]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + (body or b"")


class Connection:
    """One connection, kept open."""

    def __init__(self, port, timeout=30.0):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.rest = b""

    def send(self, data):
        self.socket.sendall(data)

    def _more(self):
        piece = self.socket.recv(65536)
        if not piece:
            raise Lost("the server closed the connection")
        self.rest += piece

    def _take(self, count):
        while len(self.rest) < count:
            self._more()
        taken, self.rest = self.rest[:count], self.rest[count:]
        return taken

    def _line(self):
        while b"\r\n" not in self.rest:
            self._more()
        line, self.rest = self.rest.split(b"\r\n", 1)
        return line.decode("latin-1")

    def receive(self):
        """Returns status, headers and body of the next response."""
        status = int(self._line().split()[1])
        headers = {}
        while line := self._line():
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        if headers.get("transfer-encoding", "").lower() == "chunked":
            body = b""
            while size := int(self._line().split(";")[0], 16):
                body += self._take(size)
                self._take(2)
            self._line()
        else:
            body = self._take(int(headers.get("content-length", 0)))
        return status, headers, body

    def ask(self, data):
        self.send(data)
        return self.receive()

    def close(self):
        self.socket.close()


def ask(port, data, timeout=30.0):
    """Returns status, headers and body over a new connection; status None if there is no response."""
    try:
        connection = Connection(port, timeout)
        try:
            return connection.ask(data)
        finally:
            connection.close()
    except (OSError, Lost, ValueError, IndexError) as error:
        return None, {}, str(error).encode()


def ask_together(port, requests, timeout=30.0):
    """Sends all requests at the same time, each over its own connection; returns the responses in order."""
    barrier = threading.Barrier(len(requests))

    def one(data):
        try:
            connection = Connection(port, timeout)
            barrier.wait()
            try:
                return connection.ask(data)
            finally:
                connection.close()
        except (OSError, Lost, ValueError, IndexError, threading.BrokenBarrierError) as error:
            return None, {}, str(error).encode()

    with concurrent.futures.ThreadPoolExecutor(len(requests)) as pool:
        return list(pool.map(one, requests))


def _flat(value):
    if isinstance(value, list):
        return [number for item in value for number in _flat(item)]
    return [value]


def _floats(data):
    return list(struct.unpack(f"<{len(data) // 4}f", data))


def output(protocol, headers, body):
    """Returns the numbers of a response, flat."""
    if protocol == "oip-binary":
        at = int(headers["inference-header-content-length"])
        return _floats(body[at:])
    if protocol == "raw":
        return _floats(body)
    answer = json.loads(body)
    return _flat(answer["outputs"][0]["data"] if protocol == "oip" else answer["prediction"])


def agrees(got, want, tolerance=1e-3):
    """Whether two lists of numbers are the same except for rounding."""
    return len(got) == len(want) and all(
        isinstance(one, (int, float)) and abs(one - other) <= tolerance * max(1.0, abs(other))
        for one, other in zip(got, want))
