"""The pool of connections, with connections that only know whether they are closed."""

from __future__ import annotations

import pytest

from catchment.store.connections import Pool


class Connection:
    closed = False

    def close(self) -> None:
        self.closed = True


def test_a_connection_is_used_again() -> None:
    pool = Pool(Connection, 2, is_remote=False)
    with pool.connection() as first:
        pass
    with pool.connection() as again:
        assert again is first


def test_no_more_connections_are_kept_than_the_pool_is_large() -> None:
    pool = Pool(Connection, 1, is_remote=False)
    with pool.connection() as first, pool.connection() as second:
        pass
    assert (second.closed, first.closed) == (False, True)


def test_a_connection_that_comes_back_to_a_closed_pool_is_closed() -> None:
    pool = Pool(Connection, 2, is_remote=False)
    with pool.connection() as connection:
        pool.close()
        assert not connection.closed
    assert connection.closed


class Remote(Connection):
    """Counts how often it is asked whether it still answers."""

    autocommit = False

    def __init__(self) -> None:
        self.questions = 0

    def execute(self, _: str) -> None:
        self.questions += 1


@pytest.mark.parametrize(("trusted_seconds", "questions"), [(0.0, 3), (3600.0, 0)])
def test_a_connection_to_a_server_is_asked_whether_it_answers_unless_it_was_just_used(
    trusted_seconds: float, questions: int
) -> None:
    pool = Pool(Remote, 2, is_remote=True, trusted_seconds=trusted_seconds)
    for _ in range(4):
        with pool.connection() as connection:
            pass
    assert connection.questions == questions
