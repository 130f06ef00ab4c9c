"""Bad input by the fields of its error: sentences stand in tests/project/messages.txt alone."""

from contextlib import contextmanager

import pytest

from btdagg import InputError
from btdagg._util.errors import shown

_ANY = object()


@contextmanager
def refused(argument=None, *, row=None, column=None, got=_ANY, expected="", **more):
    """An `InputError` that has these fields, and of a `source` its last part.

    `expected` is the part of `error.expected` that depends on the input, such as names of
    covariates.
    """
    with pytest.raises(InputError) as caught:
        yield caught
    error = caught.value
    where = {"argument": argument, "row": row, "column": column, **more}
    found = {name: getattr(error, name) for name in where}
    if "source" in more:
        found["source"] = error.source and error.source.rpartition("/")[2]
    assert found == where, f"{found}: {error}"
    assert error.expected, f"a sentence of its own: {error}"
    assert expected in error.expected, error
    assert got is _ANY or shown(error.got) == shown(got), error
