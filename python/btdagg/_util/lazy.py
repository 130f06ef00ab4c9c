"""polars under the name `pl`, which is imported once something is computed with it."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

__all__ = ["pl"]

if TYPE_CHECKING:
    import polars as pl
else:

    class _Polars(ModuleType):
        def __getattr__(self, name: str) -> Any:
            import polars

            value = getattr(polars, name)
            setattr(self, name, value)  # where it is found at once from now on
            return value

    pl = _Polars("polars")
