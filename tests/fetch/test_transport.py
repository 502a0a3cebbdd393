"""Handles and connections: one for each thread of each process, used again, closed when nobody needs them."""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import Barrier, Semaphore, Thread

import pytest

from tests.hostile import Connection, Seen, reply


def in_threads(count: int, action: Callable[[], object]) -> None:
    threads = [Thread(target=action) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_a_connection_is_used_again(door, server):
    url = server.on("/", reply())
    for _ in range(5):
        door.ask(url)
    assert (len(server.seen), server.connections) == (5, 1)


def test_each_thread_has_its_own_connection(door, server):
    url, together = server.on("/", reply()), Barrier(3)

    def action() -> None:
        together.wait()
        for _ in range(4):
            door.ask(url)

    in_threads(3, action)
    assert (len(server.seen), server.connections, len(door.attempts)) == (12, 3, 12)


class HangUps:
    """Answers, then notes when the other side hangs up."""

    def __init__(self) -> None:
        self.noted = Semaphore(0)

    def __call__(self, connection: Connection, seen: Seen) -> bool:
        reply()(connection, seen)
        if connection.socket.recv(1) == b"":
            self.noted.release()
        return False


def test_the_end_of_a_thread_closes_its_connection(door, server):
    hang_ups = HangUps()
    url = server.on("/", hang_ups)
    in_threads(1, lambda: door.ask(url))
    assert hang_ups.noted.acquire(timeout=600)


def test_closing_closes_the_connections_of_all_threads(door, server):
    hang_ups, asked, closed = HangUps(), Barrier(3), Barrier(3)
    url = server.on("/", hang_ups)

    def action() -> None:
        door.ask(url)
        asked.wait()
        closed.wait()

    threads = [Thread(target=action) for _ in range(2)]
    for thread in threads:
        thread.start()
    asked.wait()
    door.fetch.close()
    assert [hang_ups.noted.acquire(timeout=600) for _ in threads] == [True, True]
    closed.wait()
    for thread in threads:
        thread.join()


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.process
def test_a_child_process_leaves_its_parents_connection_alone(door, server):
    url = server.on("/", reply())
    door.ask(url)
    child = os.fork()
    if child == 0:
        # Nothing of pytest may run in the child: it reports by its exit code alone.
        code = 1
        try:
            code = 0 if door.ask(url).status == 200 else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    door.ask(url)
    assert [seen.connection for seen in server.seen] == [1, 2, 1]
