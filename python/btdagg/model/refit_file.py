"""Refits as a file, to use for decisions elsewhere."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from btdagg._core import InputError
from btdagg._util.files import FileFormat, read_whole, replace_file
from btdagg._util.readable import readable
from btdagg.model.davidson import MODEL_FILE, DavidsonModel
from btdagg.model.intervals import Stability, as_level
from btdagg.model.stability import stability

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

REFITS_FILE = FileFormat("btdagg.refits", "refits")


@readable
class Refits(NamedTuple):
    """Refits of a model, as `Bootstrap.save` wrote them.

    Attributes
    ----------
    model : DavidsonModel
        The model that was refitted.
    parameters : (n_refits, 3) array of float64
        beta, eta0 (the log of nu) and gamma of each refit.
    level : float
        Nominal coverage of the intervals.
    """

    model: DavidsonModel
    parameters: NDArray[np.float64]
    level: float

    def stability(
        self, counts: ArrayLike, *, level: float | None = None, n_threads: int = 1
    ) -> Stability:
        """Return for each item whether its decision is stable; see `Bootstrap.stability`."""
        level = self.level if level is None else level
        return stability(self.model, self.parameters, counts, level=level, n_threads=n_threads)


def save_refits(path: str | os.PathLike[str], refits: Refits) -> None:
    """Write refits as JSON; floats keep every bit. A file that is there is replaced whole.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    written = {
        "model": MODEL_FILE.with_header(refits.model.as_dict()),
        "level": refits.level,
        "parameters": refits.parameters.tolist(),
    }
    replace_file(path, REFITS_FILE.dumps(written) + "\n")


def load_refits(path: str | os.PathLike[str], model: DavidsonModel | None = None) -> Refits:
    """Read refits that `Bootstrap.save` wrote.

    Parameters
    ----------
    path : path
        The file.
    model : DavidsonModel, optional
        The model that the refits must belong to.

    Raises
    ------
    InputError
        If the file cannot be read, has no refits, has those of another model, or is of a later
        version.
    """
    refits = REFITS_FILE.loads(read_whole(path), str(path), _refits_of)
    if model is not None and refits.model != model:
        raise InputError(f"{path}: refits of another model than the one that decides")
    return refits


def _refits_of(found: dict[str, Any]) -> Refits:
    model = MODEL_FILE.value(found.get("model"), "model", DavidsonModel.from_dict)
    try:
        parameters = np.asarray(found.get("parameters"), dtype=np.float64)
    except (TypeError, ValueError):
        parameters = np.empty(0)
    if parameters.ndim != 2 or parameters.shape[1] != 3 or not len(parameters):
        raise InputError("parameters are no list of beta, eta0, gamma")
    if not np.isfinite(parameters).all():
        row = int(np.flatnonzero(~np.isfinite(parameters).all(axis=1))[0])
        raise InputError(
            f"parameters[{row}] is {parameters[row].tolist()}, expected finite numbers"
        )
    level: Any = found.get("level")
    return Refits(model, parameters, as_level(level))
