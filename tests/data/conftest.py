"""A file server on this machine that misbehaves as its files' folders say."""

import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


class Handler(BaseHTTPRequestHandler):
    """``/<behaviour>/<name>``: ok, no-range, cut, stall, corrupt(-once), wrong-range, no-length, (always-)busy."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        _, behaviour, name = self.path.split("/", 2)
        server = self.server
        server.requests.append((behaviour, name, self.headers.get("Range")))
        server.counts[self.path] += 1
        first = server.counts[self.path] == 1
        server.authorizations.append(self.headers.get("Authorization"))
        if server.wanted not in (None, self.headers.get("Authorization")):
            return self.answer(401, b"who are you?")
        if behaviour == "redirect":
            return self.answer(302, b"", Location=server.redirect)
        content = server.files.get(name)
        if content is None:
            return self.answer(404, b"not here")
        if behaviour == "always-busy" or (behaviour == "busy" and first):
            return self.answer(503, b"later")
        if behaviour == "corrupt" or (behaviour == "corrupt-once" and first):
            content = content[:-1] + bytes([content[-1] ^ 1])
        start = self.start(content) if behaviour != "no-range" else 0
        body = content[start:]
        self.send_response(206 if start else 200)
        if start:
            at = start + 1 if behaviour == "wrong-range" else start
            self.send_header("Content-Range", f"bytes {at}-{len(content) - 1}/{len(content)}")
        if behaviour == "no-length":
            self.send_header("Connection", "close")
        else:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        faulty = behaviour in ("cut", "stall", "no-range", "wrong-range", "corrupt-once")
        if faulty and first:
            self.wfile.write(body[: len(body) // 2])
            self.wfile.flush()
            if behaviour == "stall":
                server.released.wait(20)
        else:
            self.wfile.write(body)
        self.close_connection = True

    def start(self, content):
        wanted = self.headers.get("Range", "bytes=0-")
        start = int(wanted.removeprefix("bytes=").split("-")[0])
        return start if start < len(content) else 0

    def answer(self, status, body, **headers):
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.files, server.requests, server.counts = {}, [], Counter()
    server.authorizations, server.wanted, server.redirect = [], None, None
    server.released = threading.Event()
    server.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield server
    server.released.set()
    server.shutdown()
    server.server_close()
    thread.join()
