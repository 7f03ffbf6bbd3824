"""What may stand between a client and an HTTP server."""

import contextlib
import http.client
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Between(ThreadingHTTPServer):
    """What stands between a client and the server: it takes its time, and does not answer for ever."""

    daemon_threads = True

    def __init__(self, port, delay=0.0, calls=10**9):
        super().__init__(("127.0.0.1", 0), Passing)
        self.port, self.delay, self.calls, self.seen = port, delay, calls, 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def uri(self):
        return f"http://127.0.0.1:{self.server_port}"


class Passing(BaseHTTPRequestHandler):
    """Pass one request on."""

    def pass_on(self):
        between = self.server
        between.seen += 1
        if between.seen > between.calls:
            self.connection.close()
            return
        time.sleep(between.delay)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", between.port, timeout=60)) as connection:
            connection.request(self.command, self.path, body, dict(self.headers))
            answer = connection.getresponse()
            content = answer.read()
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.getheader("Content-Type", "application/json"))
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = pass_on  # noqa: N815

    def log_message(self, *words):
        pass
