"""Files of models: those that a run fits, one or two per task, and those that a user names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from btdagg._util.files import read_whole
from btdagg.model.davidson import DavidsonModel
from btdagg.model.panel import PANEL_FILE, PanelModel

if TYPE_CHECKING:
    from btdagg._util.outputs import OutputFolder
    from btdagg.pipeline import Fitted


def model_or_panel(path: Path) -> DavidsonModel | PanelModel:
    """Load a model, or the model of a panel, whichever a file holds.

    Raises
    ------
    InputError
        If it holds neither.
    """
    content = read_whole(path)
    if f'"{PANEL_FILE.name}"'.encode() in content[:200]:
        return PanelModel.from_json(content, source=str(path))
    return DavidsonModel.from_json(content, source=str(path))


def names_of_files(tasks: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return file names for the model and the rule of each task, all different."""
    found: dict[str, tuple[str, str]] = {}
    taken: set[str] = set()
    for task in dict.fromkeys(tasks):
        end = next(end for end in _ends_of_names(task) if end.casefold() not in taken)
        taken.add(end.casefold())
        found[task] = (f"model{end}", f"rule{end}")
    return found


def save_fitted(
    fitted: Mapping[str, Fitted], folder: OutputFolder, tasks: Iterable[str]
) -> dict[str, dict[str, Any]]:
    """Write the model and, if there is one, the rule of each task; return their paths by task.

    `tasks` are those that were expected, so that file names do not depend on which could be fitted.
    """
    told = {}
    names = names_of_files([*tasks, *fitted])
    for task, one in fitted.items():
        model, rule = names[task]
        folder.write(model, one.model.to_json() + "\n")
        told[task] = {"file": str(folder.path / model), "n_labels": one.calibration.n_labels}
        if one.rule is not None:
            folder.write(rule, one.rule.to_json() + "\n")
            told[task]["rule"] = str(folder.path / rule)
    return told


def _ends_of_names(task: str) -> Iterator[str]:
    if not task:
        yield ".json"
    name = "".join(c if c.isalnum() or c in "-_." else "-" for c in task).lstrip(".") or "task"
    yield f"-{name}.json"
    yield from (f"-{name}-{number}.json" for number in count(2))
