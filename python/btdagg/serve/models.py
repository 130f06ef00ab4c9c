"""The model in use and the file that it comes from."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from btdagg.files import digest_of
from btdagg.model import DavidsonModel
from btdagg.serve.provenance_check import ProvenanceCheck


class ServedModel(NamedTuple):
    """A model, the digest by which answers say that they are of it, and what it is used for.

    The model itself knows nothing of what it was fitted to: the check does.
    """

    model: DavidsonModel
    digest: str
    provenance_check: ProvenanceCheck


class ModelFile:
    """A model file that is read again when it changes; what cannot be read changes nothing.

    A request takes `current` once and keeps it, so a reload never splits an answer.

    Raises
    ------
    InputError
        If the file holds no model to begin with.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._stamp = _stamp(path)
        self.current = _load(path)

    def reload(self) -> bool:
        """Read the file again; say whether the model is another.

        Raises
        ------
        InputError
            If it holds no model. The one in use stays.
        """
        with self._lock:
            # Before the reading: a change in between is seen the next time.
            self._stamp = _stamp(self.path)
            found = _load(self.path)
            changed = found.digest != self.current.digest
            if changed:
                self.current = found
            return changed

    def is_stale(self) -> bool:
        """Whether the file is not the one that was last looked at."""
        return _stamp(self.path) != self._stamp


def _load(path: Path) -> ServedModel:
    model = DavidsonModel.load(path)
    check = ProvenanceCheck(model.provenance)
    return ServedModel(replace(model, provenance=None), digest_of(model), check)


def _stamp(path: Path) -> tuple[int, ...]:
    try:
        found = os.stat(path)
    except OSError:
        return ()
    return found.st_ino, found.st_size, found.st_mtime_ns
