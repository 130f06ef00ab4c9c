"""Bad input by the fields of its error: sentences stand in tests/project/messages.txt alone."""

from contextlib import contextmanager

import pytest

from btdagg import InputError
from btdagg._util.errors import shown

_ANY = object()


@contextmanager
def refused(argument=None, *, got=_ANY, expected="", **fields):
    """An `InputError` of an argument, or of a place: row, column, and the last part of a source.

    `expected` is a part of what was expected that is made of the input, as names of covariates.
    """
    with pytest.raises(InputError) as caught:
        yield caught
    error = caught.value
    where = {"argument": argument, **fields}
    found = {name: getattr(error, name) for name in where}
    if "source" in fields:
        found["source"] = error.source and error.source.rpartition("/")[2]
    assert found == where, error
    assert got is _ANY or shown(error.got) == shown(got), error
    assert expected in (error.expected or ""), error
