"""The pool of connections, with connections that only know whether they are closed."""

from __future__ import annotations

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
