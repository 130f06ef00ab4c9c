"""What is found by its name: parts of btdagg itself, and functions of installed packages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from importlib import import_module
from inspect import signature
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from btdagg._util.errors import InputError, reworded

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_T = TypeVar("_T")

# A layer imports what stands below it; what it needs of those above it finds here.
PARTS: Mapping[str, str] = MappingProxyType(
    {
        "files of other tools": "btdagg.formats.reading",
        "a vote store": "btdagg.judge.store.store:read_store",
        "tables and figures": "btdagg.report.renderers",
    }
)
"""Modules of btdagg, and functions of them, by what they are for."""


def provided(name: str) -> Any:
    """Import what is for something: one of the `PARTS`."""
    return imported(PARTS[name])


def imported(place: str) -> Any:
    """Import a module, or what a module has under a name: ``module:name``."""
    module, _, name = place.partition(":")
    found = import_module(module)
    return getattr(found, name) if name else found


class Registry(Mapping[str, _T]):
    """Built-in things by name, in any case, and functions of packages' entry points."""

    # Packages are looked up, and imported, only for names that are not built in. `parameters` are
    # those of the function, in words; `adapted` makes what is registered. An `InputError` names a
    # faulty package.

    def __init__(
        self,
        group: str,
        built_in: Mapping[str, _T],
        parameters: str,
        adapted: Callable[[Callable[..., Any], str, str], _T],
    ) -> None:
        self.group, self.built_in = group, built_in
        self._parameters, self._adapted = parameters, adapted

    def __getitem__(self, name: str) -> _T:
        name = name.lower()
        if name in self.built_in:
            return self.built_in[name]
        point = self._added()[name]
        where = _where(point)
        try:
            function = point.load()
        except Exception as error:  # whatever a module does as it is imported
            raise InputError(f"{where} cannot be imported: {error!r}") from error
        expected = f"{where} is not a function of {self._parameters}"
        with reworded((TypeError, ValueError), expected):
            signature(function).bind(*self._parameters.split(", "))
        return self._adapted(function, name, where)

    def __iter__(self) -> Iterator[str]:
        yield from self.built_in
        yield from self._added()

    def __len__(self) -> int:
        return len(self.built_in) + len(self._added())

    def _added(self) -> dict[str, EntryPoint]:
        from importlib.metadata import entry_points  # which takes longer than btdagg to import

        points: dict[str, EntryPoint] = {}
        for point in entry_points(group=self.group):
            name = point.name.lower()
            if name in self.built_in:
                raise InputError(
                    f"{_where(point)} has a name that btdagg itself uses; uninstall that package"
                )
            if other := points.get(name):
                raise InputError(
                    f"{_where(point)} and {_where(other)} have the same name; uninstall one "
                    "of the packages"
                )
            points[name] = point
        return points


def _where(point: EntryPoint) -> str:
    package = getattr(point.dist, "name", "without a name")
    return f"package {package}: {point.name} = {point.value} of {point.group}"


def named_in_errors(
    function: Callable[..., Any], where: str, at: Callable[..., str] = lambda *_: ""
) -> Callable[..., Any]:
    """Return a function whose errors, but an `InputError`, say where (`at`) and whose they are."""

    @wraps(function)
    def named(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except InputError:
            raise
        except Exception as error:
            place = f"{at(*arguments)}{where}"
            raise InputError(f"{place}: {type(error).__name__}: {error}") from error

    return named
