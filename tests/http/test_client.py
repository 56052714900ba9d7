"""The guarded client from outside: what it calls, what it refuses, and how much it takes."""

import asyncio
import gzip
import resource
import ssl
import zlib
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from tests.http.servers import LOOPBACK, Asked, reply, serving

import rota
from rota.http import Client, exchange, fetch

PUBLIC = "93.184.215.14"


def naming(*answers: list[str]) -> Callable[[str, int], Awaitable[list[str]]]:
    """A resolver that gives these answers, one after the other, then the last one for ever."""
    left = list(answers)

    async def resolve(_: str, __: int) -> list[str]:
        return left.pop(0) if len(left) > 1 else left[0]

    return resolve


def local(**more: object) -> Client:
    """A client that may call the servers of these tests."""
    return Client(networks=LOOPBACK, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f.1",
        "0x7f000001",
        "0177.0.0.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[64:ff9b:1::7f00:1]",
        "[2002:7f00:1::]",
        "[2001:0:7f00:1::80ff:fffe]",
        "[fe80::1%25lo]",
        "[fec0::1]",
        "[fd00::1]",
        "[ff02::1]",
        "169.254.169.254",
        "100.64.0.1",
        "10.0.0.1",
        "192.168.1.1",
        "192.0.0.8",
        "224.0.0.1",
        "255.255.255.255",
        "0.0.0.0",  # noqa: S104 (nobody binds it)
        "0",
        "localhost",
        "localhost.",
        "user@127.0.0.1",
        "example.org@127.0.0.1",
        "user:secret@localhost",
        "127.0.0.1%2f@127.0.0.1",
        "127。0。0。1",
        "①②⑦.0.0.1",
        "127.0.0.1%00.example.org",
        "exa mple.org",
        "a..b",
        "",
    ],
)
async def test_an_address_inside_is_refused_and_never_called(host: str) -> None:
    async with serving() as canary:
        with pytest.raises(rota.AddressRefused) as refused:
            await fetch(f"http://{host}:{canary.port}/")
        assert canary.hits == 0
    assert "url: " in str(refused.value)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("port", [22, 25, 53, 110, 6379, 5432, 3306, 11211, 9200, 27017, 2375, 0, 65_536])
async def test_ports_of_other_services_are_refused(port: int) -> None:
    with pytest.raises(rota.AddressRefused, match="url: "):
        await Client(networks=["0.0.0.0/0"], resolve=naming([PUBLIC])).check(f"http://example.org:{port}/")


@pytest.mark.parametrize("url", ["http://example.org", "https://example.org:8443/x?y", "http://a.example.org:8080"])
async def test_public_addresses_may_be_called(url: str) -> None:
    await Client(resolve=naming([PUBLIC, "2606:2800:21f:cb07:6820:80da:af6b:8b2c", "64:ff9b::808:808"])).check(url)


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "/etc/passwd",
        "etc/passwd",
        "ftp://example.org/",
        "gopher://127.0.0.1:6379/_PING",
        "data:text/plain,hello",
        "HTTP+UNIX://%2ftmp%2fx",
        "//example.org/",
        "http:example.org",
        "http:///example.org",
        "http://example.org\\@127.0.0.1/",
        "http://exam\nple.org/",
        "http://example.org/" + "x" * 8_000,
        "javascript:alert(1)",
        "",
        None,
        7,
    ],
)
async def test_only_http_is_spoken(url: str) -> None:
    with pytest.raises(rota.AddressRefused) as refused:
        await fetch(url)
    assert "http:// or https://" in str(refused.value)
    assert "passwd" not in str(refused.value)


async def test_a_name_is_looked_up_once_and_the_checked_address_is_called() -> None:
    """A name that is harmless when it is checked and another machine when it is called would get in otherwise."""
    async with serving() as canary:
        client = Client(networks=["127.0.0.2/32"], resolve=naming(["127.0.0.2"], ["127.0.0.1"]))
        with pytest.raises(rota.FetchFailed, match="unreachable"):
            await client.fetch(f"http://rebound.example:{canary.port}/")
        with pytest.raises(rota.AddressRefused):
            await client.fetch(f"http://rebound.example:{canary.port}/")
        assert canary.hits == 0


@pytest.mark.parametrize(
    "answers", [["127.0.0.1"], [PUBLIC, "127.0.0.1"], ["127.0.0.1", PUBLIC], [PUBLIC, "::1"], ["not-an-address"]]
)
async def test_a_name_with_one_answer_inside_is_refused(answers: list[str]) -> None:
    async with serving() as canary:
        with pytest.raises(rota.AddressRefused, match="is not public"):
            await Client(resolve=naming(answers)).fetch(f"http://mixed.example:{canary.port}/")
        assert canary.hits == 0


async def test_a_name_without_an_address_is_unresolved() -> None:
    with pytest.raises(rota.FetchFailed, match="unresolved"):
        await Client(resolve=naming([])).fetch("http://nowhere.example/")


async def test_the_name_goes_along_to_the_address() -> None:
    async with serving() as server:
        client = local(resolve=naming(["127.0.0.1"]))
        found = await client.fetch(f"http://shop.example:{server.port}/a?b=c")
    assert (found.status, found.body, found.ok) == (200, b"hello", True)
    assert found.url == f"http://shop.example:{server.port}/a?b=c"
    assert server.asked[0].headers["host"] == f"shop.example:{server.port}"
    assert server.asked[0].target == "/a?b=c"


@pytest.fixture
def shop_tls(monkeypatch: pytest.MonkeyPatch) -> Iterator[ssl.SSLContext]:
    """What a server for shop.example speaks, to clients who trust it."""
    file = Path(__file__).parent / "shop.example.pem"
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    exchange._tls.cache_clear()
    spoken = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    spoken.load_cert_chain(file)
    yield spoken
    exchange._tls.cache_clear()


async def test_tls_is_for_the_name_and_not_for_the_address(shop_tls: ssl.SSLContext) -> None:
    named: list[str | None] = []
    shop_tls.sni_callback = lambda _, name, __: named.append(name)
    async with serving(tls=shop_tls) as server:
        client = local(resolve=naming(["127.0.0.1"]))
        assert (await client.fetch(f"https://shop.example:{server.port}/")).status == 200
        with pytest.raises(rota.FetchFailed, match=r"unreachable: .*CERTIFICATE_VERIFY_FAILED"):
            await client.fetch(f"https://bank.example:{server.port}/")
        with pytest.raises(rota.FetchFailed, match=r"unreachable: .*CERTIFICATE_VERIFY_FAILED"):
            await client.fetch(f"https://127.0.0.1:{server.port}/")
    assert named == ["shop.example", "bank.example", None]
    assert len(server.asked) == 1


async def test_the_second_address_is_tried_where_nobody_listens_on_the_first() -> None:
    async with serving() as server:
        found = await local(resolve=naming(["127.9.9.9", "127.0.0.1"])).fetch(f"http://two.example:{server.port}/")
    assert found.status == 200


@pytest.mark.parametrize(("networks", "called"), [("127.0.0.0/8", True), ("10.0.0.0/8,::1/128", False)])
async def test_the_operator_allows_networks(networks: str, called: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_ALLOW_NETWORKS", networks)
    async with serving() as server:
        if called:
            assert (await fetch(server.url)).status == 200
        else:
            with pytest.raises(rota.AddressRefused):
                await fetch(server.url)
        assert server.hits == called


async def test_a_network_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_ALLOW_NETWORKS", "10.0.0.0/8,home")
    with pytest.raises(rota.Invalid, match="ROTA_ALLOW_NETWORKS"):
        await fetch("http://example.org/")


async def test_a_redirect_inside_is_refused_and_never_called() -> None:
    async with serving() as canary:
        for target in (f"http://127.1:{canary.port}/", f"http://[::1]:{canary.port}/", f"//127.0.0.2:{canary.port}/"):
            async with serving(reply(status="302 Found", Location=target)) as first:
                client = Client(networks=["127.0.0.1/32"], resolve=naming(["127.0.0.1"]))
                with pytest.raises(rota.AddressRefused):
                    await client.fetch(f"http://first.example:{first.port}/")
                assert first.hits == 1
        for target in ("file:///etc/passwd", "ftp://example.org/x", "http://"):
            async with serving(reply(status="302 Found", Location=target)) as first:
                with pytest.raises((rota.AddressRefused, rota.FetchFailed)):
                    await local().fetch(first.url)
        assert canary.hits == 0


async def test_redirects_are_followed_ten_times() -> None:
    async def onwards(asked: Asked, writer: asyncio.StreamWriter) -> None:
        left = int(asked.target[1:])
        await (reply(status="301 Moved", Location=f"/{left - 1}") if left else reply(b"end"))(asked, writer)

    async with serving(onwards) as server:
        found = await local().fetch(f"{server.url}/10")
        assert (found.body, found.url) == (b"end", f"{server.url}/0")
        assert [(each.url, each.status) for each in found.hops][:1] == [(f"{server.url}/10", 301)]
        assert len(found.hops) == 10
        with pytest.raises(rota.FetchFailed, match="too many redirects"):
            await local().fetch(f"{server.url}/11")
        itself = await local(redirects=0).fetch(f"{server.url}/3")
        assert (itself.status, itself.headers["location"], itself.hops) == (301, "/2", ())


async def test_secrets_do_not_go_along_to_another_host() -> None:
    secrets = {"Authorization": "Bearer s3cret", "Cookie": "a=s3cret", "X-Api-Key": "s3cret"}
    async with serving() as other, serving(reply(status="302 Found", Location="/here")) as same:
        target = f"http://other.example:{other.port}/"
        async with serving(reply(status="302 Found", Location=target)) as first:
            client = local(resolve=naming(["127.0.0.1"]))
            await client.fetch(f"http://first.example:{first.port}/", headers=secrets | {"Accept": "text/plain"})
            assert {name: first.asked[0].headers[name.lower()] for name in secrets} == secrets
        assert "s3cret" not in str(other.asked[0].headers)
        assert other.asked[0].headers["accept"] == "text/plain"
        with pytest.raises(rota.FetchFailed, match="too many redirects"):
            await client.fetch(f"http://same.example:{same.port}/", headers=secrets)
        assert {each.headers["authorization"] for each in same.asked} == {"Bearer s3cret"}


@pytest.mark.parametrize(("status", "method", "body"), [(303, "GET", b""), (302, "GET", b""), (307, "POST", b"x")])
async def test_a_redirect_changes_the_method_as_browsers_do(status: int, method: str, body: bytes) -> None:
    async with serving() as end, serving(reply(status=f"{status} On", Location=end.url)) as first:
        await local().fetch(first.url, method="POST", body=b"x")
    assert (end.asked[0].method, end.asked[0].body) == (method, body)


async def test_user_and_password_become_a_header_and_are_shown_nowhere() -> None:
    async with serving() as server:
        found = await local().fetch(f"http://me:s3cret@127.0.0.1:{server.port}/")
    assert server.asked[0].headers["authorization"] == "Basic bWU6czNjcmV0"
    assert "s3cret" not in found.url
    with pytest.raises(rota.FetchFailed) as failed:
        await local().fetch(f"http://me:s3cret@127.0.0.1:{server.port}/s3cret?token=s3cret")
    assert failed.value.reason == "unreachable"
    assert "s3cret" not in f"{failed.value} {failed.value!r} {vars(failed.value)}"


# How much, and for how long


def peak() -> int:
    """The most memory that this process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def bomb(size: int) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    parts = [packer.compress(bytes(1_000_000)) for _ in range(size // 1_000_000)]
    return b"".join([*parts, packer.flush()])


async def test_what_is_compressed_counts_as_it_is_unpacked_and_memory_stays_flat() -> None:
    packed = bomb(300_000_000)
    assert len(packed) < 1_000_000
    async with serving(reply(packed, Content_Encoding="gzip")) as server:
        await local().fetch(server.url, method="HEAD")
        before = peak()
        with pytest.raises(rota.FetchFailed, match="too large: it is over 10,000,000 bytes"):
            await local().fetch(server.url)
    assert peak() - before < 60_000_000
    twice = gzip.compress(packed)
    async with serving(reply(twice, Content_Encoding="gzip, gzip")) as server:
        with pytest.raises(rota.FetchFailed, match="too large"):
            await local().fetch(server.url)
    assert peak() - before < 60_000_000


async def test_what_fits_is_unpacked() -> None:
    async with serving(reply(gzip.compress(b"x" * 1_000), Content_Encoding="gzip")) as server:
        assert (await local(most_bytes=1_000).fetch(server.url)).body == b"x" * 1_000
        with pytest.raises(rota.FetchFailed, match="too large"):
            await local(most_bytes=999).fetch(server.url)


async def test_an_endless_answer_is_cut_off() -> None:
    async def endless(_: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(bytes(100_000))
            await writer.drain()

    async with serving(endless) as server:
        with pytest.raises(rota.FetchFailed, match="too large"):
            await local(most_bytes=1_000_000).fetch(server.url)
        await server.ended.wait()


async def test_an_answer_that_says_it_is_too_large_is_not_read() -> None:
    async def promise(_: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n")
        await writer.drain()
        await asyncio.Event().wait()

    async with serving(promise) as server:
        with pytest.raises(rota.FetchFailed, match="too large"):
            await local().fetch(server.url)


@pytest.mark.parametrize("start", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\n\r\n"])
async def test_an_answer_that_trickles_is_cut_off_in_time(start: bytes) -> None:
    """Each byte comes soon after the one before, so that no pause between two is long."""

    async def trickle(_: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(start)
        while not writer.is_closing():
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.01)

    async with serving(trickle) as server:
        with pytest.raises(rota.FetchFailed, match=r"timed out: it took longer than 0\.1 s"):
            await local(timeout="100ms").fetch(server.url)
        await server.ended.wait()


@pytest.mark.parametrize("size", [70_000, 10_000_000])
async def test_headers_have_a_size(size: int) -> None:
    async with serving(reply(X_Long="x" * size)) as server:
        with pytest.raises(rota.FetchFailed, match=r"too large|broken answer"):
            await local().fetch(server.url)


async def test_an_answer_of_another_kind_is_refused() -> None:
    client = local(content_types=["application/rss+xml", "text/*"])
    async with serving(reply(Content_Type="image/png")) as server:
        with pytest.raises(rota.FetchFailed, match="wrong content type: it is image/png"):
            await client.fetch(server.url)
    async with serving(reply(Content_Type="Text/XML; charset=utf-8")) as server:
        assert (await client.fetch(server.url)).headers["CONTENT-type"] == "Text/XML; charset=utf-8"


async def test_what_is_no_http_is_a_broken_answer() -> None:
    async def nonsense(_: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example ESMTP\x1b[2J\r\n\r\n")

    async with serving(nonsense) as server:
        with pytest.raises(rota.FetchFailed, match="broken answer") as failed:
            await local().fetch(server.url)
    assert "\x1b" not in str(failed.value)


@pytest.mark.parametrize(
    "headers",
    [{"Host": "x"}, {"Content-Length": "1"}, {"A b": "x"}, {"A": "x\r\nB: y"}, {"A": "é"}, {"transfer-encoding": "x"}],
)
async def test_headers_cannot_smuggle(headers: dict[str, str]) -> None:
    with pytest.raises(rota.Invalid, match="headers"):
        await fetch("http://example.org", headers=headers)


async def test_a_method_that_is_none_is_refused() -> None:
    with pytest.raises(rota.Invalid, match="method: 'CONNECT' is not allowed; use GET"):
        await fetch("http://example.org", method="CONNECT")


# Through a proxy


async def test_a_proxy_is_asked_and_looks_names_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(reply(b"by proxy")) as proxy, serving() as near:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("NO_PROXY", "near.example")
        client = local(resolve=naming(["127.0.0.1"]))
        assert (await client.fetch("http://far.example/x")).body == b"by proxy"
        assert proxy.asked[0].target == "http://far.example/x"
        assert (await client.fetch(f"http://near.example:{near.port}/")).body == b"hello"
        assert (proxy.hits, near.hits) == (1, 1)


@pytest.mark.parametrize("host", ["127.1", "169.254.169.254", "[::1]", "localhost", "a.localhost", "2130706433"])
async def test_a_proxy_is_not_asked_for_what_is_inside(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        with pytest.raises(rota.AddressRefused):
            await fetch(f"http://{host}/")
        assert proxy.hits == 0
