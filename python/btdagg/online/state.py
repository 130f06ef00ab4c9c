"""What a tally holds as bytes: a zip of NumPy arrays, whose checksums show a damaged one."""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from btdagg._core import InputError
from btdagg.files import FileFormat
from btdagg.readable import readable

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FILE = FileFormat("btdagg.tally", "tally")


@readable
class TallyState(NamedTuple):
    """Parts of a tally; `parts` are ids, marks of reported items, planes and lanes."""

    rule: str | None
    model: str | None
    deduplicate: bool
    late: Literal["refuse", "drop"]
    n_late: int
    channels: list[tuple[str, str]]
    parts: tuple[Any, NDArray[np.bool_], NDArray[np.uint64], list[tuple[int, int]]] | None


def pack(state: TallyState) -> bytes:
    """Write a state; judges, orders and samples are put in order, so that equal ones are alike."""
    # Channels whose every vote was late hold nothing.
    used = set() if state.parts is None else {channel for channel, _ in state.parts[3]}
    channels = sorted(state.channels[channel] for channel in used)
    names = {name: n for n, name in enumerate(channels)}
    number = {channel: names[state.channels[channel]] for channel in used}
    header = _FILE.with_header({**state._asdict(), "channels": channels, "parts": None})
    arrays: dict[str, NDArray[Any]] = {}
    if state.parts is not None:
        ids, reported, planes, lanes = state.parts
        found = [(number[channel], block) for channel, block in lanes]
        order = sorted(range(len(found)), key=found.__getitem__)
        header["parts"] = [found[lane] for lane in order]
        arrays["reported"] = reported
        arrays["planes"] = planes.reshape(len(reported), len(lanes), 3)[:, order]
        if isinstance(ids, tuple):
            arrays["text"], arrays["ends"] = ids
        else:
            arrays["ids"] = ids
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    file = io.BytesIO()
    np.savez(file, **arrays)  # type: ignore[arg-type]  # its stub mistakes arrays for a flag
    return file.getvalue()


def unpack(data: bytes, source: str) -> TallyState:
    """Read what `pack` wrote.

    Raises
    ------
    InputError
        If it is truncated, damaged or of a later version.
    """
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        return _checked(_FILE.fields(json.loads(arrays["header"].tobytes())), arrays)
    except InputError as error:
        raise InputError(f"{source}: {error}") from None
    except (
        AttributeError,
        EOFError,
        KeyError,
        NotImplementedError,
        OSError,
        RuntimeError,
        TypeError,
        UnicodeDecodeError,
        ValueError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        raise _FILE.damaged(source, error) from None


def _checked(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> TallyState:
    channels = [(judge, order) for judge, order in header["channels"]]
    parts = None
    if header["parts"] is not None:
        lanes = [(channel, block) for channel, block in header["parts"]]
        if not all(0 <= c < len(channels) and 0 <= block < 64 for c, block in lanes):
            raise ValueError("lanes of unknown judges or samples")
        if len(set(lanes)) < len(lanes) or len(set(channels)) < len(channels):
            raise ValueError("a lane or judge that is there twice")
        reported, planes = arrays["reported"], arrays["planes"]
        if reported.dtype != np.bool_ or planes.dtype != np.uint64:
            raise ValueError("arrays of another type")
        if "ids" in arrays:
            ids: Any = arrays["ids"]
            if ids.dtype != np.int64:
                raise ValueError("ids of another type")
            n_items = len(ids)
        else:
            text, ends = ids = (arrays["text"], arrays["ends"])
            if text.dtype != np.uint8 or ends.dtype != np.int64:
                raise ValueError("texts of another type")
            edges = np.concatenate([[0], ends])
            if (np.diff(edges) < 0).any() or edges[-1] != len(text):
                raise ValueError("texts that overlap")
            text.tobytes().decode()
            if ((text[edges[edges < len(text)]] & 0xC0) == 0x80).any():
                raise ValueError("a text that ends within a letter")
            n_items = len(ends)
        if planes.shape != (n_items, len(lanes), 3):
            raise ValueError("as many votes as items are not there")
        parts = (ids, reported, np.ascontiguousarray(planes), lanes)
    return TallyState(
        header["rule"],
        header["model"],
        header["deduplicate"],
        header["late"],
        header["n_late"],
        channels,
        parts,
    )
