"""`btdagg votes` for a vote store: its summary and its export."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from btdagg._core import InputError
from btdagg._util.files import TABLE_SUFFIXES
from btdagg._util.outputs import require_file
from btdagg.cli.common import note, out, print_json
from btdagg.report.table import Entry

_HEADER = (
    *("judge", "template", "method", "temp.", "items", "votes", "no vote", "ties", "bias"),
    *("tokens", "cost", "seconds"),
)


def show_store(store: str, *, json: bool = False) -> None:
    """Print counts, missing votes by status, tie rates, positional bias, tokens and cost."""
    from btdagg.judge.store import VoteStore, summaries

    with VoteStore(store, create=False) as opened:
        found = summaries(opened)
    if json:
        print_json([summary.as_dict() for summary in found])
        return
    if not found:
        out.print("no votes yet")
        return
    rows = []
    for each in found:
        cells = (
            each.judge,
            each.template,
            each.method,
            "" if each.temperature is None else f"{each.temperature:g}",
            str(each.n_items),
            str(each.n_votes),
            str(sum(each.statuses.values()) - each.n_votes),
            "" if each.tie_rate is None else f"{each.tie_rate:.1%}",
            "" if each.positional_bias is None else f"{each.positional_bias:+.3f}",
            str(each.prompt_tokens + each.completion_tokens),
            "" if each.cost is None else f"{each.cost:.4g}",
            "" if each.latency is None else f"{each.latency:.2f}",
        )
        rows.append([Entry(cell) for cell in cells])
    out.print_rows(_HEADER, rows, n_labels=3)
    for each in found:
        without = {name: n for name, n in each.statuses.items() if name != "ok"}
        if without:
            listed = ", ".join(f"{n} {name}" for name, n in without.items())
            note(f"{each.judge}, {each.template}, {each.method}: samples without a vote: {listed}")
        if each.method == "sample" and each.n_ab != each.n_ba:
            note(
                f"{each.judge}, {each.template}: {each.n_ab} votes with A first, {each.n_ba} with "
                "B first"
            )


def require_export(path: Path, *, reads: Sequence[str]) -> None:
    """Check that votes may be written to a file, before the store is read."""
    if path.suffix.lower() not in TABLE_SUFFIXES:
        raise InputError(f"--export is {path}, expected a name in {', '.join(TABLE_SUFFIXES)}")
    require_file("--export", path, reads=reads)


def export_store(store: str, file: Path, *, methods: list[str], exchanges: bool = False) -> None:
    """Write the votes of a store to a file and say how many."""
    from btdagg.judge.methods import METHODS
    from btdagg.judge.store import VoteStore, export, votes_frame

    wanted = [method.strip() for method in methods]
    for method in wanted:
        if method not in ("sample", *METHODS):
            raise InputError(
                f"--method is {method!r}, expected one of sample, {', '.join(METHODS)}"
            )
    with VoteStore(store, create=False) as opened:
        frame = votes_frame(opened, methods=wanted, exchanges=exchanges)
    export(frame, file)
    missing = frame["vote"].null_count()
    out.print(
        f"wrote {file}: {frame.height - missing} votes, {missing} samples without one",
        soft_wrap=True,
    )
