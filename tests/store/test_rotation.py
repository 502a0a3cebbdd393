"""The key is changed while others collect: nobody is refused, nothing is lost, and what was given anew stays so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread

import pytest

from catchment.credentials.cipher import Cipher, rotate
from catchment.credentials.secret import Secret
from catchment.credentials.secret_store import SecretStore
from catchment.errors import VaultError
from catchment.events import webhooks
from catchment.store.credentials import SealedRow, Terms, tables
from tests.store.desk import Desk, opened, pool_of

OLD, NEW = "the old master key", "the new master key"
BOTH = f"{NEW},{OLD}"
COUNT = 120


def keep(desk: Desk, name: str, keys: str = OLD, secret: str | None = None) -> None:
    safe = SecretStore(desk.store.credentials, Cipher(keys))
    of_it = Secret(basic=f"{name}:{secret or f'secret of {name}'}")
    safe.add("reddit", name, of_it, desk.now, replace=True, terms=Terms(is_shared=True))


def secrets(desk: Desk, keys: str) -> dict[str, str | None]:
    safe = SecretStore(desk.store.credentials, Cipher(keys))
    return {row.credential.name: safe.secret(row.credential.name).basic for row in desk.store.credentials.page()}


@pytest.fixture
def full(desk: Desk) -> Desk:
    for number in range(COUNT):
        keep(desk, f"c{number}")
    box = Cipher(OLD)
    webhooks.add(desk.store.webhooks, box, "n8n", "https://n8n.example/a-secret-path", desk.now)
    return desk


def at_once(*actions: Callable[[Event], None]) -> list[BaseException]:
    """All of them, until the last one is done; gives what they raised."""
    done, raised = Event(), list[BaseException]()

    def run(action: Callable[[Event], None]) -> None:
        try:
            action(done)
        except BaseException as error:  # noqa: BLE001 — told to the test, which knows what may happen
            raised.append(error)

    *others, last = [Thread(target=run, args=(action,)) for action in actions]
    for thread in (*others, last):
        thread.start()
    last.join()
    done.set()
    for thread in others:
        thread.join()
    return raised


def test_everything_that_is_sealed_is_known_of() -> None:
    assert tables() == ["credentials", "webhooks"]


def test_who_knows_both_keys_goes_on_while_it_is_changed(full: Desk) -> None:
    def collect(done: Event) -> None:
        pool = pool_of(full, BOTH)
        while not done.is_set():
            for number in range(COUNT):
                use = pool.take("reddit", f"c{number}")
                assert use is not None
                assert use.secret.basic == f"c{number}:secret of c{number}"
                pool.close()

    def change(done: Event) -> None:
        assert rotate(full.store.encrypted, Cipher(BOTH)).resealed == COUNT + 1

    assert at_once(collect, collect, change) == []
    assert secrets(full, NEW) == {f"c{number}": f"c{number}:secret of c{number}" for number in range(COUNT)}
    with pytest.raises(VaultError, match="restart with that key"):
        secrets(full, OLD)


def test_what_is_given_anew_meanwhile_stays_as_it_was_given(full: Desk, database_url: str, tmp_path: Path) -> None:
    another = Desk(opened(database_url, tmp_path))

    def give_anew(done: Event) -> None:
        for number in range(0, COUNT, 7):
            keep(another, f"c{number}", OLD, "new")

    def change(done: Event) -> None:
        # Whoever still knows the old key alone may lock with it to the end: then a second round finds the rest.
        rotate(full.store.encrypted, Cipher(BOTH))

    assert at_once(change, give_anew) == []
    rotate(full.store.encrypted, Cipher(BOTH))
    another.close()
    found = secrets(full, NEW)
    assert {name for name, basic in found.items() if basic == f"{name}:new"} == {
        f"c{number}" for number in range(0, COUNT, 7)
    }
    assert len(found) == COUNT


def test_whoever_is_interrupted_begins_again_and_does_the_rest(full: Desk) -> None:
    class Killed(Exception):
        pass

    def killed(count: int) -> None:
        raise Killed

    with pytest.raises(Killed):
        rotate(full.store.encrypted, Cipher(BOTH), killed)
    left = full.store.encrypted.count(Cipher(NEW).key_id)
    assert 0 < left < COUNT + 1
    assert rotate(full.store.encrypted, Cipher(BOTH)).resealed == left
    assert len(secrets(full, NEW)) == COUNT


def test_what_lies_there_no_more_is_not_written_over(full: Desk) -> None:
    (row, *_) = full.store.encrypted.others("credentials", "none", 0, 1)
    stale = SealedRow(row.table, row.id, row.name, row.key_id, b"as it was once")
    assert full.store.encrypted.exchange([(stale, row.replace(sealed=b"wrong"))]) == 0
    assert secrets(full, OLD)["c0"] == "c0:secret of c0"
