"""Where a person can be told: an address with its secrets, which nothing shows."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import parse_qs, unquote, urlsplit

from rota import settings
from rota.errors import AddressRefused, Invalid
from rota.http.guard import read_place
from rota.signing import secret_key

SERVICES = frozenset(
    {"discord", "gchat", "ilert", "line", "opsgenie", "pagerduty", "pbul", "pover", "prowl", "signl4", "slack"}
) | frozenset({"spike", "splunk", "squadcast", "tgram", "threema", "twilio", "victorops", "vonage", "webex", "wxteams"})
"""The services of Apprise that are used: they have one host each, which their address cannot choose, and no files."""

REFUSED_OPTIONS = frozenset({"attach", "keyfile", "redirect", "template", "verify"})
"""Options of Apprise that read files of this machine, or lead elsewhere."""

OWN_HOSTS = {"gotify": "http", "gotifys": "https", "ntfy": "http", "ntfys": "https"}
MAIL_PORTS = {"smtp": 587, "smtps": 465}
MOST_TARGETS = 50
_ADDRESS = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9.-]{1,189}")
_ALLOWED = (
    "use mailto:, smtp://, smtps://, https://, http://, ntfy(s)://, gotify(s):// or one of Apprise's: "
    + ", ".join(f"{each}://" for each in sorted(SERVICES))
)
_MAIL_ALLOWED = "use smtp://USER:PASSWORD@HOST:PORT/?from=ADDRESS&to=ADDRESS, or smtps://"


@dataclass(frozen=True)
class Target:
    """Where a person can be told. `shown` is what may be shown; all else is secret."""

    scheme: str
    shown: str
    secret: str = field(repr=False)

    @classmethod
    def read(cls, text: "str | Target") -> "Target":
        """Read a target, or refuse it without showing it."""
        if isinstance(text, Target):
            return text
        scheme, colon, rest = text.partition(":") if isinstance(text, str) else ("", "", "")
        scheme = scheme.lower()
        if not colon or any(char <= " " or char == "\x7f" for char in rest):
            raise Invalid("target", "…", _ALLOWED, "is not a URL")
        if scheme == "mailto":
            return cls(scheme, f"mailto:{','.join(mail_addresses(unquote(rest)))}", text)
        if scheme in MAIL_PORTS:
            server = MailServer.read(text, "target")
            if not server.to:
                raise Invalid("target", server.shown, _MAIL_ALLOWED, "does not say to whom")
            return cls(scheme, server.shown, text)
        if scheme in OWN_HOSTS:
            place = _place(f"{OWN_HOSTS[scheme]}:{rest}", scheme)
            if not urlsplit(text).path.strip("/"):
                raise Invalid("target", f"{scheme}:…", f"use {scheme}://HOST/TOPIC-OR-TOKEN", "names nobody there")
            return cls(scheme, f"{scheme}{place[len(OWN_HOSTS[scheme]) :]}/…", text)
        if scheme in ("http", "https"):
            _webhook_secret(text)
            return cls(scheme, f"{_place(text, scheme)}/…", text)
        if scheme in SERVICES and rest.startswith("//"):
            _check_options(scheme, rest)
            return cls(scheme, f"{scheme}://…", text)
        raise Invalid("target", f"{scheme}:…", _ALLOWED, "is not a way to tell somebody")

    def webhook(self) -> tuple[str, str]:
        """Return the address of a webhook, and the secret that signs what it gets."""
        return self.secret.partition("#")[0], _webhook_secret(self.secret)


@dataclass(frozen=True)
class MailServer:
    """Who takes mail, from whom it comes, and to whom it goes."""

    host: str
    port: int
    tls: bool
    """From the first byte; else by STARTTLS."""
    plain: bool
    """Whether mail may go in the open where the server has no STARTTLS."""
    sender: str
    to: tuple[str, ...]
    user: str | None = field(repr=False)
    password: str | None = field(repr=False)

    @classmethod
    def read(cls, text: str, name: str) -> "MailServer":
        """Read smtp://USER:PASSWORD@HOST:PORT/?from=ADDRESS&to=ADDRESS."""
        try:
            parts = urlsplit(text)
            host, port, asked = parts.hostname, parts.port, parse_qs(parts.query, strict_parsing=bool(parts.query))
        except ValueError:
            raise Invalid(name, "…", _MAIL_ALLOWED, "cannot be read") from None
        if parts.scheme not in MAIL_PORTS or not host or set(asked) - {"from", "to", "tls"} or "from" not in asked:
            raise Invalid(name, "…", _MAIL_ALLOWED, "does not name a server and a sender")
        tls = asked.get("tls", ["required" if parts.password else "offered"])[-1]
        if tls not in ("required", "offered"):
            raise Invalid(name, tls, "use tls=required, or tls=offered: where the server has it")
        (sender,) = mail_addresses(asked["from"][-1])[:1]
        return cls(
            host,
            port or MAIL_PORTS[parts.scheme],
            tls=parts.scheme == "smtps",
            plain=tls == "offered",
            sender=sender,
            to=tuple(mail_addresses(",".join(asked["to"]))) if "to" in asked else (),
            user=None if parts.username is None else unquote(parts.username),
            password=None if parts.password is None else unquote(parts.password),
        )

    @property
    def shown(self) -> str:
        """What may be shown of it."""
        return f"{'smtps' if self.tls else 'smtp'}://{self.host}:{self.port} to {', '.join(self.to) or 'nobody'}"


def relay() -> MailServer:
    """Return the server that takes the mail of mailto: targets: `ROTA_SMTP`."""
    text = settings.smtp_url()
    if text is None:
        raise Invalid("ROTA_SMTP", None, _MAIL_ALLOWED.replace("&to=ADDRESS", ""), "does not say who takes mail")
    return MailServer.read(text, "ROTA_SMTP")


def read_targets(given: "str | Target | Iterable[str | Target] | None") -> list[Target]:
    """Read these targets, or those of `ROTA_NOTIFY`, each once."""
    several: Iterable[str | Target]
    if isinstance(given, str | Target):
        several = given.split() if isinstance(given, str) else [given]
    else:
        several = settings.notify() if given is None else given
    found = list(dict.fromkeys(Target.read(each) for each in several))
    if len(found) > MOST_TARGETS:
        raise Invalid("targets", len(found), f"use up to {MOST_TARGETS}", "are too many")
    return found


def mail_addresses(text: str) -> list[str]:
    """Read mail addresses with commas between."""
    found = [each.strip() for each in text.split(",")]
    for each in found:
        if not _ADDRESS.fullmatch(each):
            raise Invalid("address", each, "use addresses such as anna@example.org, with commas between")
    return found


def _place(url: str, scheme: str) -> str:
    try:
        return str(read_place(url))
    except AddressRefused as error:
        raise Invalid("target", f"{scheme}:…", error.allowed, error.problem) from None


def _check_options(scheme: str, rest: str) -> None:
    named = {each.partition("=")[0].lower() for each in re.split("[?&]", rest)[1:]}
    wrong = {each for each in named if each in REFUSED_OPTIONS or not re.fullmatch(r"[a-z_]*", each)}
    if wrong:
        refused = ", ".join(sorted(REFUSED_OPTIONS))
        raise Invalid(
            "target", f"{scheme}://…", f"leave out {refused}, and what is no plain name", "has such an option"
        )


def _webhook_secret(text: str) -> str:
    secret = text.partition("#")[2] or settings.webhook_secret()
    if secret is None:
        allowed = "write it behind the address: https://example.org/hook#whsec_…, or into ROTA_WEBHOOK_SECRET"
        raise Invalid("target", "http(s):…", allowed, "has no secret to sign with")
    secret_key(secret)
    return secret
