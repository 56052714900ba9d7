"""The private servers that `scripts/services` gives to tests."""

import socket
from urllib.parse import urlsplit

import pytest
from tests.servers import Servers, psql

breaks_servers = pytest.mark.xdist_group("servers to break")


def test_postgres_answers_a_query(postgres_url: str) -> None:
    assert psql(postgres_url, "SELECT 6 * 7") == "42"


def test_redis_answers_a_ping(redis_url: str) -> None:
    password = urlsplit(redis_url).password
    with connection(redis_url) as link:
        if password:
            link.sendall(f"AUTH {password}\r\n".encode())
            assert link.recv(100) == b"+OK\r\n"
        link.sendall(b"PING\r\n")
        assert link.recv(100) == b"+PONG\r\n"


def test_rabbitmq_answers_a_handshake(rabbitmq_url: str) -> None:
    with connection(rabbitmq_url) as link:
        link.sendall(b"AMQP\x00\x00\x09\x01")
        frame = link.recv(11)
    method, start = b"\x01", b"\x00\x0a\x00\x0a"
    assert frame.startswith(method)
    assert frame.endswith(start)


@pytest.mark.parametrize("turn", ["first", "second"])
def test_each_test_has_a_database_that_is_empty(postgres_database: str, turn: str) -> None:
    assert psql(postgres_database, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == "0"
    psql(postgres_database, "CREATE TABLE trace (turn text)")


@breaks_servers
def test_a_crashed_postgres_keeps_its_rows(servers_to_break: Servers) -> None:
    url = servers_to_break.url("postgres")
    psql(url, "CREATE TABLE kept (word text)")
    psql(url, "INSERT INTO kept VALUES ('still here')")

    servers_to_break.crash("postgres")
    assert not listens(url)

    servers_to_break.up("postgres")
    assert psql(url, "SELECT word FROM kept") == "still here"


@breaks_servers
def test_two_sets_of_servers_stand_side_by_side(servers: Servers, servers_to_break: Servers) -> None:
    ours, others = servers.url("redis"), servers_to_break.url("redis")
    assert urlsplit(ours).port != urlsplit(others).port
    assert listens(ours)
    assert listens(others)


@breaks_servers
def test_a_server_that_runs_is_not_started_again(servers_to_break: Servers) -> None:
    assert servers_to_break.url("redis") == servers_to_break.url("redis")


def test_stopped_servers_leave_nothing_behind() -> None:
    servers = Servers.new()
    url = servers.url("redis")

    servers.stop()

    assert not listens(url)
    assert not servers.directory.exists()


def connection(url: str) -> socket.socket:
    address = urlsplit(url)
    return socket.create_connection((address.hostname, address.port), timeout=10)


def listens(url: str) -> bool:
    try:
        connection(url).close()
    except ConnectionRefusedError:
        return False
    return True
