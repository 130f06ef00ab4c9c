"""Endpoints of the tests that answer as a function says, over HTTP: for what no judge would do."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def completion(text="[[A]]", finish="stop", usage=None, **message):
    """A reply with one answer."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text, **message}}
    return {"model": "m", "choices": [{**choice, "finish_reason": finish}], "usage": usage}


def error(message, **fields):
    """The body of an error."""
    return {"error": {"message": message, **fields}}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # The library's 5 connections that wait to be accepted are fewer than a run opens at once, and
    # on a busy machine those beyond are reset: calls would be repeated that no test asked for.
    request_queue_size = 256


class Endpoint:
    """A server; `answer` takes the body of a request and returns (status, body[, headers]).

    A body is JSON, or bytes, or an iterable of bytes that are sent as they come. With `tls`, the
    context of a server, it speaks HTTPS as localhost; without a port it takes a free one.
    """

    def __init__(self, answer, tls=None, port=0):
        self.requests, self.headers, self.is_stopped = [], [], False
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_POST(self):
                asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
                if outer.is_stopped:  # connections outlive the server
                    self.close_connection = True
                    return
                outer.requests.append(asked)
                outer.headers.append({k.lower(): v for k, v in self.headers.items()})
                status, body, *headers = answer(asked)
                if isinstance(body, dict):
                    body = json.dumps(body).encode()
                self.send_response(status)
                for name, value in (headers[0] if headers else {}).items():
                    self.send_header(name, value)
                if isinstance(body, bytes):
                    self.send_header("content-length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                    return
                self.send_header("connection", "close")
                self.end_headers()
                try:
                    for chunk in body:
                        self.wfile.write(chunk)
                except (BrokenPipeError, ConnectionResetError):
                    pass
                self.close_connection = True

        self._server = _Server(("127.0.0.1", port), Handler)
        self.port = port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{port}/v1" if tls is None else f"https://localhost:{port}/v1"
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def stop(self):
        self.is_stopped = True
        self._server.shutdown()
        self._server.server_close()
