"""Pages of documentation whose code blocks are run from top to bottom, as printed.

A page has one folder and one Python namespace. In the folder lie files that pages speak of, as
`stock` writes them, and `examples`. What happens with a fenced block follows from its language:

- `python` is executed; `await` is allowed. Where a line is an expression with a comment that is a
  Python literal, the value has to be that (of an array, its shape or its content).
- `console` is run line by line: commands of btdagg in this process, others in bash. Every one has
  to end with status 0. One with `&` runs until the end of the page. `pip install -e FOLDER` makes a
  package and its entry points known to this process until then.
- `sql` is run in DuckDB, in the folder.
- A block that has a file name after its language is written to that file.
- A block without a language is output: each of its lines has to be among what the last block that
  was run printed, in that order. Blanks count as one; `...` stands for anything.

In an HTML comment right before a block, `not run: REASON` leaves it alone, and so does
`not compared: REASON` with output. Blocks within a comment that begins with `setup` are run like
others, but readers do not see them. Formulas (`math`) and what only the site reads (`{toctree}` and
the like) are left alone. The endpoint of judges is a simulated one, port 8080 is any free one, and
`DATABASE_URL` is a PostgreSQL database of the page's own.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import io
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
import warnings
from collections import deque
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import polars as pl

from btdagg.cli import run
from btdagg.datasets.sums import simulated_pairs
from extension import Installed, install
from trace_servers import free_port

ROOT = Path(__file__).parents[1]
_FENCE = re.compile(r"^```(\S*)[ ]?(\S*)$")
_NOT_CODE = re.compile(r"^```(\{.*|math)$")
_MARK = re.compile(r"<!-- (not run|not compared): (\S.*?) -->", re.DOTALL)
_PORT = "8080"


@dataclass(frozen=True)
class Block:
    """A fenced block, and the line of the page on which its text begins."""

    language: str
    file: str
    text: str
    line: int
    mark: str = ""


def blocks(page: str) -> list[Block]:
    """All blocks of a page, in its order.

    Raises
    ------
    ValueError
        If a mark is not right before a block, or has no reason; or if a block is left open.
    """
    found, lines = [], page.split("\n")
    mark, number = "", 0
    while number < len(lines):
        line, here = lines[number], number
        number += 1
        fence = _FENCE.match(line)
        if fence or _NOT_CODE.match(line):
            end = next((k for k in range(number, len(lines)) if lines[k] == "```"), None)
            if end is None:
                raise ValueError(f"line {number}: a block without an end")
            if _NOT_CODE.match(line):
                number = end + 1
                continue
            text = "\n".join(lines[number:end]) + "\n"
            found.append(Block(fence[1], fence[2], text, number, mark))
            mark, number = "", end + 1
        elif line.startswith("<!-- not"):
            while "-->" not in line:
                line, number = f"{line} {lines[number]}", number + 1
            if not (marked := _MARK.fullmatch(line)):
                raise ValueError(f"line {here + 1}: want <!-- not run: REASON -->")
            mark = marked[1]
            if not lines[number].startswith("```"):
                raise ValueError(f"line {here + 1}: a mark that is not right before a block")
    return found


class Runner:
    """Runs a page in a folder. To be closed, which ends what runs in the background."""

    def __init__(self, name: str, folder: Path, judge_url: str) -> None:
        self.name, self.folder = name, folder
        stock(folder)
        (folder / "examples").symlink_to(ROOT / "examples")
        self._port = str(free_port())
        self._environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "OPENAI_BASE_URL": judge_url,
            "OPENAI_API_KEY": "none",
        }
        duckdb.set_default_connection(duckdb.connect())
        self._namespace: dict[str, object] = {"__name__": "__main__"}
        self._printed: str | None = None
        self._background: list[subprocess.Popen[bytes]] = []
        self._installed: Installed | None = None

    def close(self) -> None:
        if self._installed is not None:
            self._installed.close()
        for process in self._background:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            process.wait(20)

    def run(self, block: Block) -> None:
        """Run, write or compare a block; an AssertionError says what is wrong with it."""
        where = f"{self.name}:{block.line}"
        text = block.text.replace(_PORT, self._port)
        if block.mark == "not run":
            self._printed = None
        elif block.mark:
            assert not block.language, f"{where}: not compared, which is for output"
        elif block.file:
            (self.folder / block.file).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / block.file).write_text(text, encoding="utf-8")
        elif block.language == "python":
            self._printed = self._python(text, block.line)
        elif block.language == "console":
            self._printed = "".join(self._command(line, where) for line in commands(text))
        elif block.language == "sql":
            with self._as_of_the_page():
                self._printed = str(duckdb.sql(text))
        elif block.language == "":
            assert self._printed is not None, f"{where}: output of no block that was run"
            compare(text, self._printed, where)
        else:
            raise AssertionError(
                f"{where}: nobody runs {block.language!r}; mark it, or give it a file name"
            )

    def _python(self, text: str, line: int) -> str:
        # Lines of a traceback are those of the page.
        code = ast.parse("\n" * line + text, self.name)
        said = dict(enumerate(text.split("\n"), start=line + 1))
        out = io.StringIO()
        with contextlib.redirect_stdout(out), self._as_of_the_page():
            for statement in code.body:
                if isinstance(statement, ast.Expr):
                    value = self._run(ast.Expression(statement.value), "eval")
                    check_value(
                        value, said[statement.end_lineno], f"{self.name}:{statement.lineno}"
                    )
                else:
                    self._run(ast.Module([statement], []), "exec")
        return out.getvalue()

    def _run(self, tree: ast.Module | ast.Expression, mode: str) -> object:
        code = compile(tree, self.name, mode, flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        value = eval(code, self._namespace)
        if code.co_flags & 0x80:  # CO_COROUTINE: it has an await
            value = asyncio.run(value)
        return value

    def _command(self, line: str, where: str) -> str:
        try:
            words = shlex.split(line)
        except ValueError as error:
            raise AssertionError(f"{where}: {line}: {error}") from None
        if words[0] == "export":
            name, _, value = words[1].partition("=")
            self._environment[name] = value
            return ""
        if words[:3] == ["pip", "install", "-e"]:
            self._installed = self._installed or Installed(self.folder / "site-packages")
            install(self.folder / words[3], self._installed.target)
            return ""
        if words[0] == "btdagg" and not re.search(r"[|&<>$;]", line):
            out = io.StringIO()
            with (
                contextlib.redirect_stdout(out),
                contextlib.redirect_stderr(out),
                self._as_of_the_page(),
            ):
                status = run(words[1:])
            printed = out.getvalue()
        elif line.endswith("&"):
            self._start(line.removesuffix("&"), where)
            return ""
        else:
            done = subprocess.run(
                ["bash", "-c", line], cwd=self.folder, env=self._environment,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=180,
            )  # fmt: skip
            status, printed = done.returncode, done.stdout
        assert status == 0, f"{where}: {line}: status {status}: {printed}"
        return printed if printed.endswith("\n") or not printed else f"{printed}\n"

    def _start(self, line: str, where: str) -> None:
        """Start what runs until the end of the page, and wait for its port."""
        process = subprocess.Popen(
            ["bash", "-c", f"exec env {line}"],
            cwd=self.folder, env=self._environment, start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self._background.append(process)
        named = re.search(r"--port (\d+)", line)
        port = int(self._port if named is None else named[1])
        end = time.monotonic() + 30
        while True:
            assert process.poll() is None, f"{where}: {line} has ended"
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port), 1).close()
                return
            assert time.monotonic() < end, f"{where}: {line} does not answer on its port"
            time.sleep(0.05)

    @contextlib.contextmanager
    def _as_of_the_page(self):
        """Folder and environment of the page, and warnings as users see them."""
        before = dict(os.environ)
        os.environ.update(self._environment)
        try:
            with contextlib.chdir(self.folder), warnings.catch_warnings():
                warnings.simplefilter("default")
                yield
        finally:
            os.environ.clear()
            os.environ.update(before)


def commands(text: str) -> list[str]:
    """The commands of a console block, without comments, each on one line."""
    joined = re.sub(r"\\\n\s*", "", text)
    bare = (re.sub(r"(^|\s)#.*", "", line).strip() for line in joined.split("\n"))
    return [line for line in bare if line]


def compare(shown: str, printed: str, where: str) -> None:
    """Check that the lines that a page shows were printed, in that order."""
    left = deque(" ".join(line.split()) for line in printed.split("\n"))
    for line in shown.split("\n"):
        parts = [re.escape(part) for part in " ".join(line.split()).split("...")]
        wanted = re.compile(".*".join(parts))
        if not line.strip():
            continue
        while left and not wanted.fullmatch(left[0]):
            left.popleft()
        assert left, f"{where}: not printed, or not there: {line.strip()}\nprinted:\n{printed}"
        left.popleft()


def check_value(value: object, line: str, where: str) -> None:
    """Check that a value is what the comment behind it says, where that is a literal."""
    try:
        said = ast.literal_eval(line.rpartition("  # ")[2].strip() if "  # " in line else "")
    except (SyntaxError, ValueError):
        return
    assert _agree(value, said), f"{where}: {line.strip()}: it is {value!r}"


def _agree(value: object, said: object) -> bool:
    if isinstance(value, np.ndarray):
        return value.shape == said or value.tolist() == said
    if isinstance(value, tuple) and isinstance(said, tuple) and len(value) == len(said):
        return all(_agree(one, other) for one, other in zip(value, said, strict=True))
    return value == said


def stock(folder: Path) -> None:
    """Write the files that pages speak of: pairs, labels, votes of a judge on them, ratings."""
    pairs, labels = (pl.DataFrame(columns) for columns in simulated_pairs(60))
    pairs.write_ndjson(folder / "pairs.jsonl")
    labels.write_csv(folder / "labels.csv")
    more, others = (
        pl.DataFrame(columns).with_columns(pl.col("item").str.replace("sum-", "more-"))
        for columns in simulated_pairs(20, seed=1)
    )
    more.write_ndjson(folder / "more.jsonl")
    votes = _votes(labels, {"template": ["base", "brief"], "temperature": ["default", "0.3"]})
    votes.write_parquet(folder / "votes.parquet")
    plain = ("item", "judge", "order", "sample", "vote")
    votes.filter(template="base", temperature="default").select(plain).write_csv(
        folder / "votes.csv"
    )
    new = _votes(others, {}).select(plain)
    new.write_csv(folder / "more.csv")
    new.write_parquet(folder / "new_votes.parquet")
    raters = pl.DataFrame({"rater": ["Ada", "Ben", "Eve"]})
    rated = _votes(labels, {}).filter(pl.col("sample") < 3)
    rated.with_columns(rater=pl.Series(raters["rater"].to_list() * len(labels))).select(
        "item", "rater", "vote"
    ).write_csv(folder / "ratings.csv")


def _votes(labels: pl.DataFrame, ways: dict[str, list[str]]) -> pl.DataFrame:
    """Eight votes an item, of each way to ask, by a judge that often sees the label."""
    random = np.random.default_rng(len(labels))
    frame = labels.join(pl.DataFrame({"sample": range(8)}), how="cross")
    for name, values in ways.items():
        frame = frame.join(pl.DataFrame({name: values}), how="cross")
    height = frame.height
    seen = frame["label"].to_numpy() + random.normal(0, 0.8, height)
    return frame.select(
        pl.exclude("label"),
        judge=pl.lit("gpt-5.4"),
        order=pl.when(pl.col("sample") % 2 == 0).then(pl.lit("AB")).otherwise(pl.lit("BA")),
        vote=pl.Series(np.sign(np.where(np.abs(seen) < 0.4, 0, seen)).astype(int)),
        margin=pl.Series(random.random(height).round(2)),
    ).sort("item", *ways, "sample", maintain_order=True)
