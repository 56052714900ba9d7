"""What a worker and the processes of its tasks say to each other: JSON, each message behind its length."""

import asyncio
import json
import struct
from typing import Any, BinaryIO

_LENGTH = struct.Struct(">I")


def packed(message: object) -> bytes:
    """Write a message."""
    data = json.dumps(message).encode()
    return _LENGTH.pack(len(data)) + data


async def hear(stream: asyncio.StreamReader) -> Any:
    """Read a message without waiting in the event loop; EOFError where nobody is there any more."""
    (length,) = _LENGTH.unpack(await stream.readexactly(_LENGTH.size))
    return json.loads(await stream.readexactly(length))


def read(file: BinaryIO) -> Any:
    """Read a message; EOFError where nobody is there any more."""
    (length,) = _LENGTH.unpack(_exactly(file, _LENGTH.size))
    return json.loads(_exactly(file, length))


def _exactly(file: BinaryIO, length: int) -> bytes:
    data = file.read(length)
    if len(data) < length:
        raise EOFError
    return data
