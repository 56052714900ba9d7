"""The standard streams, where they are closed, full, or read by nobody."""

import contextlib
import errno
import os
import sys
import traceback

from rota.cli.output import safe

_OUTPUT = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF, errno.EPIPE)


def complete() -> None:
    """Put something in the place of streams that are closed; else the next file that is opened gets their number.

    The output cannot be written, as before; errors are for nobody.
    """
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")


def complain(text: str) -> None:
    """Write a line to standard error, if that can be; text from outside cannot make it two, or drive the terminal."""
    with contextlib.suppress(OSError):
        sys.stderr.write(f"rota: {safe(text)}\n")
        sys.stderr.flush()


def trace() -> None:
    """Write where an error comes from to standard error, if that can be."""
    with contextlib.suppress(OSError):
        traceback.print_exc()


def is_about_output(error: OSError) -> bool:
    """Tell an output that cannot be written from a file that somebody named."""
    return error.errno in _OUTPUT and error.filename is None


def discard_output() -> None:
    """Forget what could not be written, so that it is not tried again at the end."""
    with contextlib.suppress(OSError, ValueError):  # it may be no file at all
        number = sys.stdout.fileno()
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, number)
        os.close(nothing)
