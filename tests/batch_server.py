"""An endpoint of files and batches, over HTTP; its replies are what the types of openai say."""

import email
import email.policy
import json
import os
import signal
import socket
import threading
import time
from collections import Counter
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from openai.types import Batch, BatchRequestCounts, FileObject

from judge_endpoints import completion


def answer_b(_):
    return 200, completion("[[B]]", usage={"prompt_tokens": 1000, "completion_tokens": 100})


class BatchServer:
    """Answers each request of a batch when the batch is made; what `answer` returns is its result.

    Parameters
    ----------
    answer : callable
        From the body of a request to (status, body), or to the code of an error without a reply.

    Attributes
    ----------
    asked : Counter of str
        How often each request was asked, by its `custom_id`.
    looks : int
        How often a batch is looked at before it has ended.
    status : str
        What it ends as.
    die_at : str
        Where the process in `victim` is killed: ``create:after`` is when a batch is made and not
        yet answered. Once.
    """

    def __init__(self, answer=answer_b):
        self.answer, self.asked, self.calls = answer, Counter(), []
        self.files, self.batches = {}, {}
        self.looks, self.status, self.errors = 1, "completed", None
        self.die_at, self.victim = "", None
        self.faults = {}  # from a step to the statuses or the bytes of its next replies
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                outer.handle(self, b"")

            def do_POST(self):
                outer.handle(self, self.rfile.read(int(self.headers["content-length"] or 0)))

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self):
        self._server.shutdown()
        self._server.server_close()

    def handle(self, request, body):
        url = urlsplit(request.path)
        parts = url.path.removeprefix("/v1/").split("/")
        step = self.step_of(request.command, parts)
        self.calls.append(step)
        if self.faults.get(step):
            status = self.faults[step].pop(0)
            if isinstance(status, bytes):  # a reply that says 200
                return self.send(request, status)
            if status != "lost":
                return self.send(request, {"error": {"message": "a fault"}}, status)
            getattr(self, step)(request, parts, parse_qs(url.query), body)
            request.close_connection = True
            return request.connection.shutdown(socket.SHUT_RDWR)
        self.kill(f"{step}:before")
        said = getattr(self, step)(request, parts, parse_qs(url.query), body)
        self.kill(f"{step}:after")
        return self.send(request, said)

    def step_of(self, method, parts):
        return {
            ("POST", 1, "files"): "upload",
            ("GET", 3, "files"): "content",
            ("POST", 1, "batches"): "create",
            ("GET", 1, "batches"): "list",
            ("GET", 2, "batches"): "look",
            ("POST", 3, "batches"): "cancel",
        }[method, len(parts), parts[0]]

    def kill(self, place):
        if self.die_at == place:
            self.die_at = ""
            os.kill(self.victim.pid, signal.SIGKILL)
            self.victim.wait()

    def send(self, request, said, status=200):
        body = said if isinstance(said, bytes) else json.dumps(said).encode()
        try:
            request.send_response(status)
            request.send_header("content-type", "application/json")
            request.send_header("content-length", str(len(body)))
            request.end_headers()
            request.wfile.write(body)
        except OSError:  # of a process that is dead
            request.close_connection = True

    # Files

    def upload(self, request, parts, query, body):
        head = b"content-type: " + request.headers["content-type"].encode() + b"\r\n\r\n"
        message = email.message_from_bytes(head + body, policy=email.policy.HTTP)
        fields = {part.get_param("name", header="content-disposition"): part
                  for part in message.iter_parts()}  # fmt: skip
        assert fields["purpose"].get_content().strip() == "batch"
        return self.add_file(fields["file"].get_payload(decode=True), "batch")

    def add_file(self, content, purpose):
        number = f"file-{len(self.files)}"
        self.files[number] = content
        made = FileObject(
            id=number, bytes=len(content), created_at=int(time.time()), filename="requests.jsonl",
            object="file", purpose=purpose, status="processed",
        )  # fmt: skip
        return made.model_dump()

    def content(self, request, parts, query, body):
        return self.files[parts[1]]

    # Batches

    def create(self, request, parts, query, body):
        told = json.loads(body)
        assert (told["endpoint"], told["completion_window"]) == ("/v1/chat/completions", "24h")
        number = f"batch_{len(self.batches)}"
        made = Batch(
            id=number, completion_window="24h", created_at=int(time.time()),
            endpoint=told["endpoint"], input_file_id=told["input_file_id"], object="batch",
            status="in_progress", metadata=told.get("metadata"),
        )  # fmt: skip
        lines = [json.loads(line) for line in self.files[told["input_file_id"]].splitlines()]
        self.batches[number] = (made, lines, [])
        for line in lines:
            assert (line["method"], line["url"]) == ("POST", told["endpoint"])
            self.asked[line["custom_id"]] += 1
        return made.model_dump()

    def list(self, request, parts, query, body):
        numbers = list(self.batches)[::-1]
        if "after" in query:
            numbers = numbers[numbers.index(query["after"][0]) + 1 :]
        page = numbers[:2]  # whatever is asked for, so that there are pages
        data = [self.batches[number][0].model_dump(mode="json") for number in page]
        return {"object": "list", "data": data, "has_more": len(numbers) > 2}

    def look(self, request, parts, query, body):
        made, lines, looks = self.batches[parts[1]]
        looks.append(1)
        if made.status == "in_progress" and len(looks) > self.looks:
            self.end(made, lines, self.status)
        return made.model_dump()

    def cancel(self, request, parts, query, body):
        made, lines, _ = self.batches[parts[1]]
        self.end(made, lines, "cancelled")
        return made.model_dump()

    def end(self, made, lines, status):
        made.status = status
        if status == "failed":
            made.errors = Batch.model_fields["errors"].annotation.__args__[0](
                data=[{"code": "token_limit", "message": "Enqueued too much."}]
            )
            return
        good, bad = [], []
        for number, line in enumerate(lines):
            said = self.answer(line["body"])
            told = {"id": f"r{number}", "custom_id": line["custom_id"], "error": None}
            if isinstance(said, str):
                bad.append({**told, "response": None, "error": {"code": said, "message": said}})
                continue
            response = {"status_code": said[0], "request_id": "q", "body": said[1]}
            (good if said[0] == 200 else bad).append({**told, "response": response})
        made.request_counts = BatchRequestCounts(
            total=len(lines), completed=len(good), failed=len(bad)
        )
        for name, results in (("output_file_id", good), ("error_file_id", bad)):
            if results:
                content = "".join(json.dumps(line) + "\n" for line in results[::-1]).encode()
                setattr(made, name, self.add_file(content, "batch_output")["id"])


class AnthropicServer(BatchServer):
    """The same in Anthropic's format: requests come with the call that makes their batch."""

    def __init__(self, answer=lambda _: (200, message("[[B]]"))):
        super().__init__(answer)
        self.url = self.url.removesuffix("/v1")

    def step_of(self, method, parts):
        del parts[0]  # messages
        return {
            ("POST", 1): "create",
            ("GET", 1): "list",
            ("GET", 2): "look",
            ("POST", 3): "cancel",
            ("GET", 3): "content",
        }[method, len(parts)]

    def create(self, request, parts, query, body):
        from anthropic.types.messages import MessageBatch, MessageBatchRequestCounts  # slow

        number = f"msgbatch_{len(self.batches)}"
        lines = json.loads(body)["requests"]
        made = MessageBatch(
            id=number, created_at=datetime.now(UTC), expires_at=datetime.now(UTC),
            processing_status="in_progress", type="message_batch",
            request_counts=MessageBatchRequestCounts(
                processing=len(lines), canceled=0, errored=0, expired=0, succeeded=0
            ),
        )  # fmt: skip
        self.batches[number] = (made, lines, [])
        self.asked.update(line["custom_id"] for line in lines)
        return made.model_dump(mode="json")

    def list(self, request, parts, query, body):
        if "after_id" in query:
            query["after"] = query["after_id"]
        return super().list(request, parts, query, body)

    def look(self, request, parts, query, body):
        made, lines, looks = self.batches[parts[1]]
        looks.append(1)
        if len(looks) > self.looks:
            self.end(made, lines, "ended")
        return made.model_dump(mode="json")

    def content(self, request, parts, query, body):
        return self.files[parts[1]]

    def end(self, made, lines, status):
        made.processing_status = "ended"
        results = []
        for line in lines:
            status, body = self.answer(line["params"])
            result = {"type": "succeeded", "message": body}
            if status != 200:
                result = {"type": "errored", "error": {"type": "error", "error": body}}
            results.append({"custom_id": line["custom_id"], "result": result})
        n = sum(line["result"]["type"] == "succeeded" for line in results)
        made.request_counts = type(made.request_counts)(
            processing=0, canceled=0, errored=len(lines) - n, expired=0, succeeded=n
        )
        self.files[made.id] = "".join(json.dumps(line) + "\n" for line in results).encode()


def message(text):
    """A reply of Anthropic's."""
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m",
        "stop_reason": "end_turn", "content": [{"type": "text", "text": text}],
        "stop_sequence": None, "usage": {"input_tokens": 1000, "output_tokens": 100},
    }  # fmt: skip
