"""What a command of the command line prints."""


def one_line(status, out, err):
    """The message of a refusal: status 2, nothing on standard output, one line on the other."""
    assert status == 2, err
    assert out == ""
    assert err.startswith("btdagg: ")
    assert err.endswith("\n")
    assert err.count("\n") == 1
    return err.removeprefix("btdagg: ").removesuffix("\n")
