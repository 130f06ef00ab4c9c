"""`btdagg label` as a process, and requests such as its page makes."""

import http.client
import json
import os
import signal
import subprocess
import sys
import time

import polars as pl
from fastapi.testclient import TestClient

from btdagg import PAIRS
from btdagg.judge.pairs import read_pairs
from btdagg.labelling.assignment import Assignment
from btdagg.labelling.outcome import Outcome
from btdagg.labelling.server import Access, label_app
from btdagg.labelling.session import Session
from btdagg.labelling.store import LabelStore

PROGRAM = [sys.executable, "-c", "from btdagg.cli import main; main()"]
TOKEN = "a-token-for-the-tests"

# What a text may try; each would set `window.ran`, load something or mislead.
HOSTILE = [
    "<script>window.ran = 1</script>",
    "<img src=x onerror='window.ran = 1'>",
    "<svg/onload=window.ran=1><math><mtext></form><style>*{display:none}</style>",
    "</div></article><iframe srcdoc='<script>parent.ran=1</script>'></iframe>",
    "[click](javascript:window.ran=1) <javascript:window.ran=1>",
    "![i](http://example.org/i.png) [r]: http://example.org\n\n[r]",
    "[d](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)",
    '<a href="http://example.org" onclick="window.ran=1">x</a>',
    "`</code></pre><script>window.ran=1</script>`",
    "```html\n</code></pre><script>window.ran=1</script>\n```",
    "<base href='http://example.org/'><meta http-equiv=refresh content='0;url=http://example.org'>",
    "\u202etxet desrever\u202c \u2066x\u2069 \x1b[31m \x00 \ud800",
    "{{ script }} {{ css }} ${1} <%= 1 %>",
    "> " * 3000 + "deep",
    "word " * 60_000,
]


def pairs_file(folder, n_items=40, texts=None, **more):
    """Pairs whose ids and other columns tell whose responses they are."""
    rows = [
        {
            "item": f"gpt-9-{k:03}",
            "model_a": "gpt-9",
            "prompt": f"What is {k} + {k}?",
            "a": f"The sum is {2 * k}, says **A** of {k}.",
            "b": f"It makes {2 * k}, says *B* of {k}.",
            **({} if texts is None else {"a": texts[k % len(texts)]}),
            **more,
        }
        for k in range(n_items)
    ]
    path = folder / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


CRITERIA = {"correct": "5: all is right", "clear": "5: a child follows it", "kind": ""}


def responses_file(folder, n_items=12, texts=None, criteria=CRITERIA, **more):
    """Responses to be graded, with a row for each criterion."""
    rows = [
        {
            "item": f"gpt-9-{k:03}",
            "prompt": f"What is {k} + {k}?",
            "response": f"It makes {2 * k}." if texts is None else texts[k % len(texts)],
            **({"criterion": name, "rubric": rubric} if name else {}),
            **more,
        }
        for k in range(n_items)
        for name, rubric in criteria.items()
    ]
    path = folder / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def session_of(folder, pairs, place="human.db", scale=PAIRS, **options):
    """A store, and a session of it with all pairs."""
    store = LabelStore(folder / place if "://" not in str(place) else place)
    assignment = Assignment(pairs, scale=scale, **options)
    return store, Session(store, assignment, Outcome(assignment))


class Answering:
    """What raters do, by the requests of the page."""

    def item(self, rater, key=None):
        path = f"/item?rater={rater}" + (f"&key={key}" if key else "")
        status, _, content = self.ask("GET", path)
        assert status == 200, content
        return json.loads(content)

    def label(self, rater, shown, *choices, seconds=2.5, note=""):
        body = {"rater": rater, "key": shown["key"], "choices": [*choices], "seconds": seconds,
                "note": note}  # fmt: skip
        status, _, content = self.ask("POST", "/label", body)
        assert status == 200, content
        return json.loads(content)


class LabelClient(Answering):
    """The application of `btdagg label` in this process, with a store in a folder."""

    def __init__(self, folder, port=8000):
        self.port, self.host = port, f"127.0.0.1:{port}"
        self.store, session = session_of(folder, read_pairs(folder / "pairs.jsonl"))
        access = Access(TOKEN, f"btdagg_label_{port}", False, frozenset({self.host}))
        self._app = label_app(session, access, lambda: None)

    def ask(self, method, path, body=None, **headers):
        """Status, headers and body; with the cookie and the origin unless others are given."""
        own = {"cookie": f"btdagg_label_{self.port}={TOKEN}"}
        if method == "POST":
            own |= {"origin": f"http://{self.host}", "content-type": "application/json"}
        sent = {name: value for name, value in (own | headers).items() if value is not None}
        content = json.dumps(body) if isinstance(body, dict) else body
        with TestClient(self._app, base_url=f"http://{self.host}") as client:
            answer = client.request(method, path, content=content, headers=sent)
        return answer.status_code, answer.headers, answer.content


class LabelProcess(Answering):
    """`btdagg label` on a port, a free one unless given."""

    def __init__(self, folder, *options, port=0, token=TOKEN):
        self.folder = folder
        self.output = folder / "human.csv"
        environment = {**os.environ, "BTDAGG_LABEL_TOKEN": token}
        self.process = subprocess.Popen(
            [*PROGRAM, "label", str(folder / "pairs.jsonl"), "-o", str(self.output),
             "--port", str(port), *map(str, options)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip
        line = self.process.stdout.readline()
        assert line.startswith("open "), self.process.communicate()
        self.address = line.removeprefix("open ").strip()
        self.port = int(self.address.partition("/?")[0].rpartition(":")[2])

    def ask(self, method, path, body=None):
        """Status, headers and body, with the cookie and the origin."""
        headers = {
            "Cookie": f"btdagg_label_{self.port}={TOKEN}",
            "Origin": f"http://127.0.0.1:{self.port}",
            "Content-Type": "application/json",
        }
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        content = response.read()
        connection.close()
        return response.status, response.headers, content

    def rows(self):
        return pl.read_csv(self.output).rows(named=True)

    def until_written(self, n_rows):
        """Wait for the file to have so many rows."""
        end = time.monotonic() + 20
        while not self.output.exists() or pl.read_csv(self.output).height != n_rows:
            assert time.monotonic() < end
            time.sleep(0.05)

    def stop(self, how=signal.SIGINT):
        self.process.send_signal(how)
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, out, err

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
