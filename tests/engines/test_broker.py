"""Which brokers are waited for, and which are refused."""

from __future__ import annotations

import socket
from pathlib import Path
from threading import Thread

import pytest

from catchment.engines.distributed.worker import check_broker
from catchment.errors import BadSetting
from catchment.settings import Settings
from tests.redis_server import RedisServer

TOO_MANY = b"-ERR max number of clients reached\r\n"
LOADING = b"-LOADING Redis is loading the dataset in memory\r\n"
DISK_FULL = b"-MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.\r\n"


def checked(tmp_path: Path, port: int, number: int = 1) -> None:
    check_broker(Settings(home=tmp_path, broker_url=f"redis://127.0.0.1:{port}/{number}"))


@pytest.mark.parametrize("answer", [b"", TOO_MANY, LOADING, DISK_FULL])
def test_a_broker_that_turns_us_away_for_a_while_is_waited_for(tmp_path: Path, answer: bytes) -> None:
    with answering(answer) as server:
        checked(tmp_path, server.getsockname()[1])


@pytest.mark.parametrize(
    "answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"-WRONGPASS invalid username-password pair\r\n"]
)
def test_what_refuses_us_for_good_is_refused(tmp_path: Path, answer: bytes) -> None:
    with answering(answer) as server, pytest.raises(BadSetting, match="refuses us"):
        checked(tmp_path, server.getsockname()[1])


def test_a_database_that_redis_does_not_have_is_refused(tmp_path: Path, redis_server: RedisServer) -> None:
    with pytest.raises(BadSetting, match="DB index"):
        checked(tmp_path, redis_server.port, 4711)


def answering(answer: bytes) -> socket.socket:
    """A server that answers everybody so, and closes the connection."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection:
                connection.recv(1000)
                connection.sendall(answer)

    Thread(target=serve, daemon=True).start()
    return server
