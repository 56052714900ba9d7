"""Telling by mail, through an SMTP server."""

import asyncio
import socket
from email.message import EmailMessage
from email.utils import format_datetime

from rota import clock
from rota.errors import AddressRefused, FetchFailed, MissingExtra
from rota.http.addresses import SERVICE_PORTS
from rota.http.guard import Guard
from rota.notify.targets import MailServer, Target, mail_addresses, relay

try:
    import aiosmtplib
except ImportError:
    raise MissingExtra("notify", "telling by mail") from None

SECONDS = 30.0
_PORTS = frozenset({25, 465, 587, 2525})


async def tell_by_mail(target: Target, name: str, title: str, text: str) -> None:
    """Send one mail to all addresses of a target."""
    if target.scheme == "mailto":
        server, to = relay(), tuple(mail_addresses(target.shown.removeprefix("mailto:")))
    else:
        server = MailServer.read(target.secret, "target")
        to = server.to
    mail = EmailMessage()
    mail["Subject"], mail["From"], mail["To"] = title, server.sender, ", ".join(to)
    mail["Date"], mail["Message-ID"] = format_datetime(clock.now()), f"<{name}@{server.sender.partition('@')[2]}>"
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(text or title)
    try:
        async with asyncio.timeout(SECONDS):
            await _deliver(server, to, mail, trusted=target.scheme == "mailto")
    except TimeoutError:
        raise FetchFailed(server.host, "timed out", f"it took longer than {SECONDS:g} s") from None
    except aiosmtplib.SMTPRecipientsRefused as error:
        raise FetchFailed(server.host, "not taken", f"it refused {len(error.recipients)} addresses") from None
    except aiosmtplib.SMTPAuthenticationError:
        raise FetchFailed(server.host, "not taken", "it does not know the user or the password") from None
    except aiosmtplib.SMTPResponseException as error:
        raise FetchFailed(server.host, "not taken", f"{error.code} {error.message}") from None
    except (aiosmtplib.SMTPException, OSError) as error:
        raise FetchFailed(server.host, "unreachable", str(error)) from None


async def _deliver(server: MailServer, to: tuple[str, ...], mail: EmailMessage, *, trusted: bool) -> None:
    """Hand a mail over. The operator's own server may be anywhere; any other is guarded as a web server is."""
    line = None if trusted else await _connected(server)
    smtp = aiosmtplib.SMTP(
        hostname=server.host,
        port=server.port if line is None else None,
        sock=line,
        username=server.user,
        password=server.password,
        use_tls=server.tls,
        start_tls=None if server.plain or server.tls else True,
        local_hostname="localhost",
        timeout=SECONDS,
    )
    async with smtp:
        await smtp.send_message(mail, sender=server.sender, recipients=list(to))


async def _connected(server: MailServer) -> socket.socket:
    """Return a connection to an address that was checked."""
    if server.port not in _PORTS and (server.port < 1024 or server.port in SERVICE_PORTS):
        allowed = "25, 465, 587, 2525 and ports over 1023 may be called, but for those of other services"
        raise AddressRefused("target", f"{server.host}:{server.port}", allowed, "has a port that is not called")
    (address, *_) = await Guard(None, None).addresses(server.host, server.port)
    line = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    line.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(line, (address, server.port))
    except BaseException:
        line.close()
        raise
    return line
