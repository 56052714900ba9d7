"""A real SMTP server on loopback, small and strict."""

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage


@dataclass
class Mailbox:
    """What has come in, and what the server is like."""

    tls: ssl.SSLContext | None = None
    login: str | None = None
    refuses: str = ""
    port: int = 0
    hits: int = 0
    mails: list[EmailMessage] = field(default_factory=list)
    envelopes: list[tuple[str, list[str], bool]] = field(default_factory=list)
    """From, to, and whether it came by TLS."""
    open_logins: int = 0
    """How often somebody said who he is where all could hear it."""

    async def meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.hits += 1
        secure, known, sender, to = False, self.login is None, "", []
        writer.write(b"220 mail.example ready\r\n")
        while line := (await reader.readline()).decode().strip():
            verb, _, rest = line.partition(" ")
            answer = "250 fine"
            if verb == "EHLO":
                offers = ["mail.example"] + ["STARTTLS"] * (self.tls is not None and not secure) + ["AUTH PLAIN"]
                answer = "\r\n".join([*(f"250-{each}" for each in offers), "250 fine"])
            elif verb == "STARTTLS":
                writer.write(b"220 go on\r\n")
                await writer.start_tls(self.tls)  # type: ignore[arg-type]
                secure = True
                continue
            elif verb == "AUTH":
                self.open_logins += not secure
                given = base64.b64decode(rest.split(" ")[1]).decode().split("\0")[1:]
                known = ":".join(given) == self.login
                answer = "235 known" if known else "535 who are you"
            elif verb == "MAIL":
                sender, answer = rest, "250 fine" if known else "530 who are you"
            elif verb == "RCPT":
                answer = "550 unknown" if self.refuses and self.refuses in rest else "250 fine"
                to.append(rest)
            elif verb == "DATA":
                writer.write(b"354 go on\r\n")
                data = await reader.readuntil(b"\r\n.\r\n")
                self.mails.append(message_from_bytes(data[:-3], policy=policy.default))  # type: ignore[arg-type]
                self.envelopes.append((sender, to, secure))
            elif verb == "QUIT":
                writer.write(b"221 bye\r\n")
                break
            writer.write(f"{answer}\r\n".encode())


@asynccontextmanager
async def mailbox(**traits: object) -> AsyncIterator[Mailbox]:
    """Take mail on a port of loopback while this is entered."""
    box = Mailbox(**traits)  # type: ignore[arg-type]
    meeting: set[asyncio.Task[None]] = set()

    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        meeting.add(task)
        with suppress(OSError, asyncio.CancelledError):
            await box.meet(reader, writer)
        writer.close()
        with suppress(OSError, asyncio.CancelledError):
            await writer.wait_closed()

    listening = await asyncio.start_server(meet, "127.0.0.1", 0)
    box.port = listening.sockets[0].getsockname()[1]
    try:
        yield box
    finally:
        listening.close()
        for each in meeting:
            each.cancel()
        await asyncio.gather(*meeting, return_exceptions=True)
