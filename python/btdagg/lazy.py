"""Names of a package that are loaded on first use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module


def loader(
    package: str, names_by_module: Mapping[str, Iterable[str]], packages: Iterable[str] = ()
) -> Callable[[str], object]:
    """Return the ``__getattr__`` of a package whose modules have these names.

    `packages` are those within it that are loaded as soon as they are named.
    """
    later = {name: module for module, names in names_by_module.items() for name in names}

    def load(name: str) -> object:
        if name in packages:
            return import_module(f"{package}.{name}")
        if name not in later:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{later[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return load
