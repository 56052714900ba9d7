"""Telling people: by mail, webhook and service, from outside; and what is never shown."""

import json
import logging
import ssl
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import apprise
import pytest
from tests.http.servers import reply, serving
from tests.notify.mailbox import mailbox

import rota
from rota.notify import Target, new_secret, send, sign, verify
from rota.notify.targets import REFUSED_OPTIONS, SERVICES

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"  # noqa: S105 (of the test vectors of Standard Webhooks)
PEM = Path(__file__).parent.parent / "http" / "shop.example.pem"


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ROTA_NOTIFY", "ROTA_SMTP", "ROTA_WEBHOOK_SECRET", "ROTA_ALLOW_NETWORKS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def near(monkeypatch: pytest.MonkeyPatch) -> None:
    """The operator allows this machine."""
    monkeypatch.setenv("ROTA_ALLOW_NETWORKS", "127.0.0.0/8")


# Signatures


def test_a_signature_is_that_of_standard_webhooks() -> None:
    at = datetime.fromtimestamp(1614265330, UTC)
    headers = sign(SECRET, '{"test": 2432232314}', id="msg_p5jXN8AQM9LWM0D4loKWxJek", at=at)
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    assert verify(SECRET, headers, '{"test": 2432232314}', at=at) == "msg_p5jXN8AQM9LWM0D4loKWxJek"


def test_a_signature_holds_for_five_minutes_and_for_any_known_secret() -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    other = new_secret()
    headers = {name.title(): value for name, value in sign(other, b"x", at=at).items()}
    headers["Webhook-Signature"] = f"v1a,zzz v1,nonsense {headers['Webhook-Signature']}"
    for moment in (at - timedelta(minutes=5), at, at + timedelta(minutes=5)):
        assert verify([SECRET, other], headers, b"x", at=moment).startswith("msg_")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"body": b"y"}, "not that of this body"),
        ({"secret": new_secret()}, "not that of this body"),
        ({"at": datetime(2026, 1, 1, 0, 5, 1, tzinfo=UTC)}, "five minutes"),
        ({"at": datetime(2025, 12, 31, 23, 54, 59, tzinfo=UTC)}, "five minutes"),
        ({"webhook-id": "msg_2"}, "not that of this body"),
        ({"webhook-timestamp": "1767225601"}, "not that of this body"),
        ({"webhook-timestamp": "now"}, "missing or unreadable"),
        ({"webhook-id": ""}, "missing or unreadable"),
        ({"webhook-signature": ""}, "missing or unreadable"),
        ({"webhook-signature": "v1,"}, "not that of this body"),
        ({"webhook-signature": "v1,é"}, "not that of this body"),
    ],
)
def test_what_was_changed_or_is_old_does_not_hold(change: dict[str, object], reason: str) -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    given: dict[str, object] = {"secret": SECRET, "body": b"x", "at": at}
    headers = sign(SECRET, b"x", id="msg_1", at=at)
    for name, value in change.items():
        (headers if name in headers else given)[name] = value  # type: ignore[index]
    with pytest.raises(rota.BadSignature, match=reason):
        verify(given["secret"], headers, given["body"], at=given["at"])  # type: ignore[arg-type]


@pytest.mark.parametrize("secret", ["", "whsec_", "hunter2", "whsec_c2hvcnQ=", "whsec_%%%", "whsec_é"])
def test_a_secret_that_is_none_is_refused_and_not_shown(secret: str) -> None:
    with pytest.raises(rota.Invalid) as refused:
        sign(secret, b"x")
    assert "hunter2" not in str(refused.value)


# Webhooks, ntfy, Gotify


@pytest.mark.usefixtures("near")
async def test_a_webhook_gets_a_signed_message() -> None:
    async with serving(reply(b"", status="204 No Content")) as server:
        (told,) = await send("Late", "feed-42 is late", to=f"{server.url}/hook?k=1#{SECRET}", id="msg_7")
    assert told.shown == f"{server.url}/…"
    (asked,) = server.asked
    assert (asked.method, asked.target, asked.headers["content-type"]) == ("POST", "/hook?k=1", "application/json")
    assert verify(SECRET, asked.headers, asked.body) == "msg_7"
    said = json.loads(asked.body)
    assert (said["type"], said["data"]) == ("rota.message", {"title": "Late", "text": "feed-42 is late"})


@pytest.mark.usefixtures("near")
async def test_targets_come_from_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await send("nobody is there") == []
    async with serving() as one, serving() as other:
        monkeypatch.setenv("ROTA_WEBHOOK_SECRET", SECRET)
        monkeypatch.setenv("ROTA_NOTIFY", f"{one.url}/a  {other.url}/b {one.url}/a")
        assert len(await send("Late")) == 2
    assert (one.hits, other.hits) == (1, 1)


@pytest.mark.usefixtures("near")
async def test_everybody_is_tried_and_those_who_failed_can_be_told_again() -> None:
    async with serving() as good, serving(reply(status="500 No")) as bad, serving() as inside:
        away = reply(status="307 Away", Location=inside.url)
        async with serving(away) as moved:
            to = [f"{each.url}/s3cret?s3cret#{SECRET}" for each in (bad, good, moved)]
            with pytest.raises(rota.NotifyFailed, match="2 of 3 could not be told") as failed:
                await send("Late", to=to)
            assert [each.shown for each in failed.value.failed] == [f"{bad.url}/…", f"{moved.url}/…"]
            assert "not taken: status 500" in str(failed.value)
            assert (good.hits, inside.hits) == (1, 0)
            shown = f"{failed.value} {failed.value!r}"
            assert "s3cret" not in shown
            assert SECRET not in shown
            with pytest.raises(rota.NotifyFailed):
                await send("Late", to=failed.value.failed)
        assert (good.hits, bad.hits) == (1, 2)


@pytest.mark.usefixtures("near")
async def test_ntfy_and_gotify_of_ones_own_are_told() -> None:
    async with serving() as server:
        await send("Läte", "x", to=[f"ntfy://me:pw@127.0.0.1:{server.port}/alerts"])
        await send("Läte", to=[f"gotify://127.0.0.1:{server.port}/sub/T0k"])
    ntfy, gotify = server.asked
    assert (ntfy.target, ntfy.headers["authorization"]) == ("/", "Basic bWU6cHc=")
    assert json.loads(ntfy.body) == {"topic": "alerts", "title": "Läte", "message": "x"}
    assert (gotify.target, gotify.headers["x-gotify-key"]) == ("/sub/message", "T0k")
    assert json.loads(gotify.body) == {"title": "Läte", "message": "Läte"}


@pytest.mark.parametrize("scheme", ["http", "ntfy", "gotify", "smtp"])
async def test_nobody_inside_is_told(scheme: str) -> None:
    async with serving() as web, mailbox() as mail:
        port = mail.port if scheme == "smtp" else web.port
        tail = "/?from=a@example.org&to=b@example.org" if scheme == "smtp" else "/x"
        fragment = f"#{SECRET}" if scheme == "http" else ""
        with pytest.raises(rota.NotifyFailed, match="is not public"):
            await send("Late", to=f"{scheme}://localhost:{port}{tail}{fragment}")
        assert (web.hits, mail.hits) == (0, 0)


# Mail


async def test_mail_goes_through_the_operators_own_server(monkeypatch: pytest.MonkeyPatch) -> None:
    async with mailbox() as box:
        monkeypatch.setenv("ROTA_SMTP", f"smtp://127.0.0.1:{box.port}/?from=rota@example.org")
        await send(
            "Läte\nBcc: x@example.org", "feed-42\nis läte", to="mailto:anna@example.org,bob@example.org", id="m1"
        )
    (mail,) = box.mails
    assert mail["Subject"] == "Läte Bcc: x@example.org"
    assert (mail["From"], mail["To"]) == ("rota@example.org", "anna@example.org, bob@example.org")
    assert (mail["Message-ID"], mail["Auto-Submitted"]) == ("<m1@example.org>", "auto-generated")
    assert mail.get_content() == "feed-42\nis läte\n"
    assert [len(to) for _, to, _ in box.envelopes] == [2]


@pytest.fixture
def shop_tls(monkeypatch: pytest.MonkeyPatch) -> Iterator[ssl.SSLContext]:
    """What a server for shop.example speaks; whoever trusts the system trusts it."""
    monkeypatch.setenv("SSL_CERT_FILE", str(PEM))
    spoken = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    spoken.load_cert_chain(PEM)
    return spoken


@pytest.mark.usefixtures("near")
async def test_a_password_travels_by_tls_alone(shop_tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch) -> None:
    async def here(*_: object) -> list[str]:
        return ["127.0.0.1"]

    monkeypatch.setattr("rota.http.guard.addresses_of", here)
    words = "/?from=rota@example.org&to=anna@example.org"
    async with mailbox(tls=shop_tls, login="me:s3cret") as box, mailbox(login="me:s3cret") as plain:
        await send("Late", to=f"smtp://me:s3cret@shop.example:{box.port}{words}")
        assert [secure for _, _, secure in box.envelopes] == [True]
        for server, host in ((plain, "shop.example"), (box, "bank.example")):
            with pytest.raises(rota.NotifyFailed) as failed:
                await send("Late", to=f"smtp://me:s3cret@{host}:{server.port}{words}")
            assert "s3cret" not in f"{failed.value} {failed.value!r}"
        with pytest.raises(rota.NotifyFailed, match="does not know the user or the password") as failed:
            await send("Late", to=f"smtp://me:wr0ng@shop.example:{box.port}{words}")
        assert "wr0ng" not in f"{failed.value} {failed.value!r}"
        assert (box.open_logins, plain.open_logins, len(box.mails)) == (0, 0, 1)


async def test_mail_that_is_refused_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    async with mailbox(refuses="anna") as box:
        monkeypatch.setenv("ROTA_SMTP", f"smtp://127.0.0.1:{box.port}/?from=rota@example.org")
        with pytest.raises(rota.NotifyFailed, match="not taken: it refused 1 addresses"):
            await send("Late", to="mailto:anna@example.org")
    with pytest.raises(rota.NotifyFailed, match="unreachable"):
        await send("Late", to="mailto:anna@example.org")


async def test_mail_without_a_server_says_which_setting() -> None:
    with pytest.raises(rota.NotifyFailed, match="ROTA_SMTP"):
        await send("Late", to="mailto:anna@example.org")


@pytest.mark.usefixtures("near")
@pytest.mark.parametrize("port", [22, 6379])
async def test_mail_is_not_spoken_to_other_services(port: int) -> None:
    with pytest.raises(rota.NotifyFailed, match="has a port that is not called"):
        await send("Late", to=f"smtp://127.0.0.1:{port}/?from=a@example.org&to=b@example.org")


# Services of Apprise


def test_a_service_cannot_choose_its_host_and_reads_no_file() -> None:
    known = apprise.manager_plugins.NotificationManager()
    for scheme in SERVICES:
        plugin = known[scheme]
        assert not any("{host}" in each for each in plugin.templates), scheme
        files = {each for each in plugin.template_args if "file" in each or "template" in each}
        assert files <= REFUSED_OPTIONS, scheme


async def test_a_service_that_is_not_whole_is_refused_and_its_secret_is_logged_nowhere(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.DEBUG), pytest.raises(rota.NotifyFailed, match="does not have all its parts"):
        await send("Late", to="tgram://s3cret/")
    assert "s3cret" not in caplog.text


def test_without_the_extra_it_says_what_to_install() -> None:
    code = """
import asyncio, sys
sys.modules["apprise"] = sys.modules["aiosmtplib"] = None
import rota
async def main():
    for target in ("slack://a/b/c", "smtp://example.org/?from=a@example.org&to=b@example.org"):
        try:
            await rota.notify.send("x", to=target)
        except rota.NotifyFailed as error:
            print(error)
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.count("pip install 'rota[notify]'") == 2


# Targets


@pytest.mark.parametrize(
    "text",
    [
        "json://127.0.0.1/s3cret",
        "xml://s3cret",
        "form://s3cret",
        "dbus://s3cret",
        "gnome://s3cret",
        "syslog://s3cret",
        "file:///s3cret",
        "apprise://host/s3cret",
        "s3cret",
        "",
        "mailto:s3cret",
        "mailto:a@example.org?bcc=s3cret@x",
        "smtp://s3cret",
        "smtp://me:s3cret@host/",
        "smtp://me:s3cret@host/?from=a@example.org",
        "smtp://me:s3cret@host:x/?from=a@example.org",
        "https://example.org/s3cret",
        "https://example.org/s3cret#s3cret",
        "http://127.1/s3cret",
        "ntfy://example.org",
        "ntfy://127.1/s3cret",
        "tgram:s3cret",
        "slack://s3cret/b/c?template=/etc/passwd",
        "slack://s3cret/b/c/?format=text&Redirect=yes",
        "discord://s3cret/b?%74emplate=x",
        "discord://s3cret/b?+x=y",
        "https://example.org/ s3cret",
    ],
)
def test_what_is_no_target_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(rota.Invalid) as refused:
        Target.read(text)
    if not text.startswith("mailto"):
        assert "s3cret" not in f"{refused.value} {refused.value!r}"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("mailto:anna@example.org", "mailto:anna@example.org"),
        ("SMTPS://me:s3cret@host/?from=a@example.org&to=b@example.org", "smtps://host:465 to b@example.org"),
        (f"https://me:s3cret@example.org:8443/s3cret#{SECRET}", "https://example.org:8443/…"),
        ("tgram://s3cret/chat", "tgram://…"),
        ("ntfys://me:s3cret@example.org/s3cret", "ntfys://example.org/…"),
    ],
)
def test_a_target_shows_no_secret(text: str, shown: str) -> None:
    target = Target.read(text)
    assert target.shown == shown
    assert "s3cret" not in repr(target)
    assert SECRET not in repr(target)


@pytest.mark.parametrize(("title", "text"), [("", "x"), (" ", "x"), (None, "x"), ("x", None)])
async def test_a_message_has_a_title_and_text(title: str, text: str) -> None:
    with pytest.raises(rota.Invalid, match=r"title|text"):
        await send(title, text)
