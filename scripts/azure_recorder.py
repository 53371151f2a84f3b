"""A server on loopback that records requests of Azure's clients and answers well enough for them to go on.

It speaks TLS, because most clients refuse to send a token otherwise. It has no semantics: whatever is created succeeds at
once and can be read again.
"""

import contextlib
import http.server
import json
import os
import pathlib
import re
import ssl
import subprocess
import tempfile
import threading
import urllib.parse

TENANT = "00000000-0000-0000-0000-0000000000aa"
SUBSCRIPTION = "00000000-0000-0000-0000-000000000001"
WORKSPACE = {
    "location": "westeurope",
    "properties": {
        "provisioningState": "Succeeded",
        "workspaceId": "00000000-0000-0000-0000-0000000000bb",
        "storageAccount": f"/subscriptions/{SUBSCRIPTION}/resourceGroups/team/providers/Microsoft.Storage/storageAccounts/lab",
    },
}


class Recorder:
    """The requests that were recorded, in their order, without those for signing in."""

    def __init__(self, url, certificate):
        self.url = url
        self.certificate = certificate
        self.requests = []
        self.resources = {}
        self.lock = threading.Lock()

    def reset(self):
        """Forgets everything."""
        with self.lock:
            self.requests, self.resources = [], {}

    def changes(self):
        """The requests that change something."""
        is_read = lambda request: request["method"] in ("GET", "HEAD") or request["path"].endswith("/validate")
        return [request for request in self.requests if not is_read(request)]

    def answer(self, method, target, body):
        path, _, query = target.partition("?")
        path = re.sub("/+", "/", urllib.parse.unquote(path))
        sign_in = self.sign_in(path)
        if sign_in is not None:
            return 200, sign_in
        with self.lock:
            self.requests.append({"method": method, "path": path, "query": query, "body": body})
            if path.lower().startswith("/subscriptions/"):
                return self.resource_manager(method, path, body)
            return self.batch(method, path, body)

    def sign_in(self, path):
        """What `az login` asks for."""
        lower = path.lower()
        if lower == "/metadata/endpoints":
            names = ["resourceManager", "gallery", "graph", "activeDirectoryDataLake", "batch", "media", "portal"]
            return {
                "name": "recorder",
                **{name: self.url for name in names},
                "authentication": {"loginEndpoint": self.url, "audiences": [self.url], "tenant": TENANT},
                "suffixes": {},
            }
        if lower.endswith("/.well-known/openid-configuration"):
            token = f"{self.url}/{TENANT}/oauth2/v2.0"
            issuer = f"{self.url}/{TENANT}/v2.0"
            return {"token_endpoint": f"{token}/token", "authorization_endpoint": f"{token}/authorize", "issuer": issuer}
        if lower.endswith("/token"):
            return {"token_type": "Bearer", "expires_in": 86400, "access_token": "recorded"}
        if lower == "/subscriptions":
            subscription = {
                "id": f"/subscriptions/{SUBSCRIPTION}",
                "subscriptionId": SUBSCRIPTION,
                "tenantId": TENANT,
                "displayName": "recorder",
                "state": "Enabled",
            }
            return {"value": [subscription]}
        return None

    def resource_manager(self, method, path, body):
        key = path.lower()
        if method == "PUT":
            created = json.loads(json.dumps(body)) if body else {}
            created.update({"id": path, "name": path.rsplit("/", 1)[1]})
            properties = created.setdefault("properties", {})
            properties["provisioningState"] = "Succeeded"
            if "/jobs/" in key and "machinelearning" in key:
                properties.update({"status": "Running", "services": {}})
            if "/onlineendpoints/" in key and "/deployments/" in key:
                properties.setdefault("scaleSettings", {"scaleType": "Default"})
            is_new = key not in self.resources
            self.resources[key] = created
            # Its client does not take 201.
            return (201 if is_new and "/batchaccounts/" not in key else 200), created
        if method in ("GET", "HEAD"):
            if key in self.resources:
                return 200, self.resources[key]
            if re.search(r"/workspaces/[^/]+$", key):
                return 200, {"id": path, "name": path.rsplit("/", 1)[1], **WORKSPACE}
            if re.search(r"/resourcegroups/[^/]+$", key):
                return 200, {"id": path, "name": path.rsplit("/", 1)[1], "location": "westeurope"}
            error = {"code": "ResourceNotFound", "message": f"{path} was not found"}
            return 404, {"error": error}
        if method == "POST" and key.endswith("/start"):
            return 200, {"id": f"{path[:-6]}/executions/main-1", "name": "main-1"}
        self.resources.pop(key, None)
        return 200, {}

    @staticmethod
    def batch(method, path, body):
        if path.endswith("/addtaskcollection"):
            return 200, {"value": [{"taskId": task["id"], "status": "Success"} for task in body["value"]]}
        return {"POST": 201, "DELETE": 202}.get(method, 200), {}


@contextlib.contextmanager
def recorder():
    """A recorder that runs until the end of the block."""
    with tempfile.TemporaryDirectory() as directory:
        certificate, key = (str(pathlib.Path(directory, name)) for name in ("certificate.pem", "key.pem"))
        command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext basicConstraints=critical,CA:FALSE -addext"
        names = ["subjectAltName=DNS:localhost,IP:127.0.0.1", "-out", certificate, "-keyout", key]
        subprocess.run([*command.split(), *names], check=True, stderr=subprocess.DEVNULL)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        server.recorder = Recorder(f"https://localhost:{server.server_address[1]}", certificate)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        before = {name: os.environ.get(name) for name in ("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE")}
        os.environ.update(dict.fromkeys(before, certificate))
        try:
            yield server.recorder
        finally:
            server.shutdown()
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def respond(self):
        text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        is_json = "json" in (self.headers.get("Content-Type") or "")
        # az sends this key without quotes, which the service accepts.
        text = text.replace(b', template:{', b', "template":{', 1)
        body = json.loads(text) if text and is_json else None
        status, answer = self.server.recorder.answer(self.command, self.path, body)
        content = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json; odata=minimalmetadata")
        self.send_header("ETag", "0x1")
        self.send_header("Last-Modified", "Tue, 17 Nov 2026 02:00:00 GMT")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_GET = do_HEAD = do_PUT = do_POST = do_PATCH = do_DELETE = respond

    def log_message(self, *_):
        pass
