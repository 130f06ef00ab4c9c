"""What a tally holds as bytes: a zip of NumPy arrays, whose checksums show a damaged one."""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from btdagg._core import InputError
from btdagg._util.files import FileFormat
from btdagg._util.readable import readable

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
        if not all(0 <= channel < len(channels) for channel, _ in lanes):
            raise ValueError("lanes of unknown judges")
        if len(set(channels)) < len(channels):
            raise ValueError("a judge that is there twice")
        reported, planes = arrays["reported"], arrays["planes"]
        if planes.shape != (len(reported), len(lanes), 3):
            raise ValueError("as many votes as items are not there")
        ids: Any = arrays.get("ids", arrays.get("text"))
        if "text" in arrays:
            ids = (ids, arrays["ends"])
            if (arrays["ends"][-1] if len(reported) else 0) != len(ids[0]):
                raise ValueError("texts that are no items'")
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
