"""Credentials in the database: chosen by several at once, counted, their life written down, told of where needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest

from catchment.credentials.cipher import Cipher
from catchment.credentials.lifecycle import LifecycleRules
from catchment.credentials.manager import CredentialManager, CredentialView, credential_view
from catchment.credentials.pool import CredentialPool
from catchment.credentials.secret import Secret
from catchment.credentials.secret_store import EnvironmentCredential, SecretStore
from catchment.errors import (
    CredentialsExhausted,
    LoginNeeded,
    NotFound,
    VaultError,
)
from catchment.store.credentials import Terms
from tests.store.desk import MASTER_KEY, USUAL_RULES, Desk, opened, pool_of
from tests.store.processes import hands

REFUSED = LoginNeeded("a login is required, or the credential was not accepted (HTTP 401)")


def keep(desk: Desk, name: str, platform: str = "reddit", key: str = MASTER_KEY, **terms: Any) -> None:
    safe = SecretStore(desk.store.credentials, Cipher(key))
    secret = Secret(basic=f"{name}:secret of {name}")
    safe.add(platform, name, secret, desk.now, terms=Terms(**({"is_shared": True} | terms)))


def keeper_of(
    desk: Desk, rules: LifecycleRules = USUAL_RULES, lent: Sequence[EnvironmentCredential] = ()
) -> CredentialManager:
    safe = SecretStore(desk.store.credentials, Cipher(MASTER_KEY), lent)
    return CredentialManager(desk.store.credentials, safe, rules, desk.clock)


def standing(desk: Desk) -> dict[str, CredentialView]:
    return {row.credential.name: credential_view(row, USUAL_RULES, desk.now) for row in desk.store.credentials.page()}


def story(desk: Desk, name: str) -> list[tuple[str | None, str | None]]:
    """From which state to which, the oldest first."""
    return [(change.from_state, change.to_state) for change in reversed(desk.store.credentials.changes(name))]


def alerts(desk: Desk) -> dict[str, str]:
    return {alert.subject: alert.severity for alert in desk.store.alerts.open()}


def taken(pool: CredentialPool, times: int = 1, **more: Any) -> list[str | None]:
    uses = [pool.take("reddit", **more) for _ in range(times)]
    return [use.name if use else None for use in uses]


def fail(desk: Desk, pool: CredentialPool, times: int, name: str | None = None) -> None:
    for _ in range(times):
        desk.clock.advance(1)
        use = pool.take("reddit", name)
        assert use is not None
        pool.failed(use, REFUSED)


# ── taking ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_empty_pool_has_nobody_to_give(desk: Desk) -> None:
    keep(desk, "of another", "x")
    keep(desk, "reserved", is_shared=False)
    assert taken(pool_of(desk)) == [None]
    assert desk.store.credentials.platforms() == {"x"}


def test_an_empty_pool_is_not_asked_anew_by_every_request_and_is_noticed_when_it_fills(desk: Desk) -> None:
    pool, writes = pool_of(desk), []
    write = desk.store.database.write
    desk.store.database.write = lambda action: (writes.append(1), write(action))[1]  # type: ignore[method-assign]
    assert (taken(pool, 50), len(writes)) == ([None] * 50, 1)
    keep(desk, "mine")
    desk.clock.advance(11)
    assert taken(pool) == ["mine"]


def test_the_use_is_counted_and_what_was_set_apart_and_not_used_is_given_back(desk: Desk) -> None:
    keep(desk, "mine")
    pool = pool_of(desk)
    taken(pool, 12)
    assert standing(desk)["mine"].used_today == 15
    pool.close()
    assert (standing(desk)["mine"].used_today, standing(desk)["mine"].use_count) == (12, 12)


def test_the_load_is_shared_out_and_priority_goes_first(desk: Desk) -> None:
    for name in ("a", "b", "c"):
        keep(desk, name)
    keep(desk, "last", priority=-1)
    pool = pool_of(desk)
    uses = Counter(taken(pool, 600))
    assert set(uses) == {"a", "b", "c"}
    assert max(uses.values()) - min(uses.values()) <= 16


def test_a_daily_limit_is_never_exceeded_and_ends_at_midnight(desk: Desk) -> None:
    keep(desk, "mine", daily_limit=10)
    pool = pool_of(desk)
    assert taken(pool, 10) == ["mine"] * 10
    with pytest.raises(CredentialsExhausted) as caught:
        pool.take("reddit")
    assert caught.value.retry_at == desk.now.replace(hour=0) + timedelta(days=1)
    assert "2026-01-02 00:00 UTC" in str(caught.value)
    desk.clock.advance(86400)
    assert taken(pool) == ["mine"]


@pytest.mark.parametrize("limit", [7, 40, None])
@pytest.mark.process
def test_several_processes_share_a_pool_and_keep_its_limits(
    desk: Desk, database_url: str, tmp_path: Path, limit: int | None
) -> None:
    for name in ("a", "b"):
        keep(desk, name, daily_limit=limit)
    uses: Counter[str] = Counter()
    with hands(2, "credentials", database_url, tmp_path, 30) as several:
        for process in several:
            assert process.hear() == "ready"
        for process in several:
            process.go()
        for process in several:
            uses.update(process.hear())
            process.end()
    assert sum(uses.values()) == 60
    assert {name: view.used_today for name, view in standing(desk).items()} == {"a": uses["a"], "b": uses["b"]}
    if limit is None:
        assert abs(uses["a"] - uses["b"]) <= 32
    else:
        assert max(uses["a"], uses["b"]) <= limit
        # What one process had set apart when it ended may have been refused to the other.
        assert uses["none"] <= 60 - min(60, 2 * limit) + 15


def test_threads_that_begin_together_take_one_block_not_one_each(desk: Desk) -> None:
    keep(desk, "mine")
    pool, together, names = pool_of(desk), Barrier(8), []

    def action() -> None:
        together.wait()
        names.extend(taken(pool, 5))

    threads = [Thread(target=action) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pool.close()
    assert (names, standing(desk)["mine"].used_today) == (["mine"] * 40, 40)


def test_requests_in_a_row_cost_a_transaction_for_every_sixteen(database_url: str, tmp_path: Path) -> None:
    desk = Desk(opened(database_url, tmp_path))
    for name in ("a", "b"):
        keep(desk, name)
    pool, writes = pool_of(desk), []
    write = desk.store.database.write
    desk.store.database.write = lambda action: (writes.append(1), write(action))[1]  # type: ignore[method-assign]
    for _ in range(16 * 20):
        use = pool.take("reddit")
        assert use is not None
        pool.succeeded(use)
    assert len(writes) <= 25
    desk.close()


def test_those_to_avoid_are_left_out_and_that_is_no_exhaustion(desk: Desk) -> None:
    keep(desk, "a", priority=1)
    keep(desk, "b")
    pool = pool_of(desk)
    assert (taken(pool), taken(pool, avoid={"a"}), taken(pool, avoid={"a", "b"})) == (["a"], ["b"], [None])
    assert alerts(desk) == {}


def test_one_that_this_process_cannot_open_does_not_keep_it_from_the_others(desk: Desk) -> None:
    keep(desk, "locked", priority=9, key="another master key")
    pool = pool_of(desk)
    with pytest.raises(VaultError, match="encrypted with key"):
        pool.take("reddit")
    keep(desk, "mine")
    assert taken(pool) == ["mine"]
    assert standing(desk)["locked"].used_today == 0


# ── its life ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_change_is_written_down_with_its_reason(desk: Desk) -> None:
    keep(desk, "mine")
    pool, keeper = pool_of(desk), keeper_of(desk)
    fail(desk, pool, 3)
    desk.clock.advance(1800)
    use = pool.take("reddit")
    assert use is not None
    fail(desk, pool, 3)
    fail(desk, pool, 1, "mine")
    desk.clock.advance(86400)
    use = pool.take("reddit")
    assert use is not None
    pool.succeeded(use)
    keeper.pause("mine", "on leave")
    keeper.resume("mine")
    keeper.remove("mine")
    assert story(desk, "mine") == [
        (None, "active"),
        ("active", "cooling"),
        ("cooling", "active"),
        ("active", "cooling"),
        ("cooling", "banned"),
        ("banned", "probation"),
        ("probation", "active"),
        ("active", "paused"),
        ("paused", "active"),
        ("active", None),
    ]
    reasons = [change.reason for change in reversed(desk.store.credentials.changes("mine"))]
    assert reasons[1] == "3 errors in a row: a login is required, or the credential was not accepted (HTTP 401)"
    assert reasons[7:] == ["on leave", "resumed by a user", "removed"]


def test_a_success_is_noted_where_it_is_news(desk: Desk) -> None:
    keep(desk, "mine")
    pool = pool_of(desk)
    fail(desk, pool, 2)
    use = pool.take("reddit")
    assert use is not None
    pool.succeeded(use)
    assert (standing(desk)["mine"].errors_in_a_row, standing(desk)["mine"].errors_in_all) == (0, 2)
    fail(desk, pool, 2)
    assert standing(desk)["mine"].state == "active"


def test_what_another_process_did_not_know_bans_nobody(desk: Desk) -> None:
    keep(desk, "mine")
    first, other = pool_of(desk), pool_of(desk)
    taken(other, 2)
    unaware = other.take("reddit")
    assert unaware is not None
    desk.clock.advance(1)
    fail(desk, first, 3)
    other.failed(unaware, REFUSED)
    assert standing(desk)["mine"].state == "cooling"


def test_a_source_that_names_a_credential_asks_with_it_whatever_the_pool_thinks(desk: Desk) -> None:
    keep(desk, "mine")
    pool = pool_of(desk)
    fail(desk, pool, 3, "mine")
    with pytest.raises(CredentialsExhausted):
        pool.take("reddit")
    assert taken(pool, name="mine") == ["mine"]
    keeper_of(desk).pause("mine", "on leave")
    desk.clock.advance(11)
    with pytest.raises(CredentialsExhausted, match="the credential 'mine' is paused: on leave"):
        pool.take("reddit", "mine")
    with pytest.raises(NotFound):
        pool.take("reddit", "nobody's")


def test_a_pause_reaches_other_processes_within_seconds(desk: Desk) -> None:
    keep(desk, "mine")
    pool = pool_of(desk)
    taken(pool, 2)
    keeper_of(desk).pause("mine", "on leave")
    desk.clock.advance(11)
    with pytest.raises(CredentialsExhausted):
        pool.take("reddit")


def test_a_new_secret_begins_a_new_life_under_the_old_name(desk: Desk) -> None:
    keep(desk, "mine", priority=3)
    fail(desk, pool_of(desk), 3)
    SecretStore(desk.store.credentials, Cipher(MASTER_KEY)).add(
        "reddit", "mine", Secret(basic="new:secret"), desk.now, replace=True, terms=Terms(is_shared=True)
    )
    now = standing(desk)["mine"]
    assert (now.state, now.errors_in_all, now.last_error, now.priority) == ("active", 0, None, 3)
    assert story(desk, "mine")[-1] == ("cooling", "active")


def test_one_removed_while_it_is_used_troubles_nobody(desk: Desk) -> None:
    keep(desk, "mine")
    pool = pool_of(desk)
    taken(pool, 2)
    use = pool.take("reddit")
    assert use is not None
    keeper_of(desk).remove("mine")
    pool.failed(use, REFUSED)
    pool.close()
    assert standing(desk) == {}


# ── who is told ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_exhausted_pool_is_an_alert_of_the_highest_sort_that_closes_by_itself(desk: Desk) -> None:
    keep(desk, "mine")
    pool, keeper = pool_of(desk), keeper_of(desk)
    fail(desk, pool, 3)
    assert alerts(desk) == {"pool reddit exhausted": "P0"}
    with pytest.raises(CredentialsExhausted) as caught:
        pool.take("reddit")
    assert (caught.value.code, caught.value.retryable) == ("COOKIE_EXHAUSTED", False)
    assert "no credential of reddit is usable: mine is cooling down until 2026-01-01 00:30 UTC" in str(caught.value)
    assert "the next one is usable from 2026-01-01 00:30 UTC" in str(caught.value)
    desk.clock.advance(1800)
    keeper.apply_elapsed_time()
    assert alerts(desk) == {}


@pytest.mark.parametrize(
    "action",
    [
        lambda desk: keep(desk, "spare"),
        lambda desk: keeper_of(desk).resume("mine"),
        lambda desk: keeper_of(desk).remove("mine"),
    ],
)
def test_what_a_person_does_about_it_closes_it(desk: Desk, action: Callable[[Desk], None]) -> None:
    keep(desk, "mine")
    fail(desk, pool_of(desk), 3)
    action(desk)
    keeper_of(desk).apply_elapsed_time()
    assert alerts(desk) == {}


def test_one_that_fell_is_told_of_until_it_is_accepted_again(desk: Desk) -> None:
    keep(desk, "mine")
    keep(desk, "spare", priority=-1)
    pool = pool_of(desk)
    fail(desk, pool, 4, "mine")
    assert alerts(desk) == {"credential mine refused": "P1"}
    desk.clock.advance(86400)
    keeper_of(desk).apply_elapsed_time()
    assert alerts(desk) == {"credential mine refused": "P1"}
    use = pool.take("reddit")
    assert use is not None
    assert use.name == "mine"
    pool.succeeded(use)
    assert alerts(desk) == {}


def test_an_end_that_is_known_is_told_of_in_advance(desk: Desk) -> None:
    keep(desk, "mine", expires_at=desk.now + timedelta(days=10))
    keeper, pool = keeper_of(desk), pool_of(desk)
    keeper.apply_elapsed_time()
    assert alerts(desk) == {}
    desk.clock.advance(3 * 86400)
    keeper.apply_elapsed_time()
    assert alerts(desk) == {"credential mine expiring": "P2"}
    assert taken(pool) == ["mine"]
    desk.clock.advance(7 * 86400)
    with pytest.raises(CredentialsExhausted, match="mine is expired on 2026-01-11 00:00 UTC"):
        pool.take("reddit")
    assert alerts(desk) == {"credential mine expiring": "P2", "pool reddit exhausted": "P0"}


# ── what stands in the environment ────────────────────────────────────────────────────────────────────────────────


def lent(secret: str = "lent secret") -> list[EnvironmentCredential]:
    return [EnvironmentCredential("reddit", "reddit-environment", Secret(basic=f"id:{secret}"))]


def test_one_of_the_environment_is_part_of_the_pool_and_never_written_down(desk: Desk) -> None:
    pool = pool_of(desk, lent=lent())
    use = pool.take("reddit")
    assert use is not None
    assert (use.name, use.secret.basic) == ("reddit-environment", "id:lent secret")
    assert desk.store.credentials.sealed("reddit-environment")[1] == b""
    assert standing(desk)["reddit-environment"].is_from_environment
    assert keeper_of(desk, lent=lent()).platforms() == {"reddit"}


def test_it_is_nobody_to_a_process_that_does_not_have_it(desk: Desk) -> None:
    taken(pool_of(desk, lent=lent()))
    assert taken(pool_of(desk)) == [None]
    assert keeper_of(desk).platforms() == frozenset()
    with pytest.raises(VaultError, match="comes from the environment of another process"):
        pool_of(desk).take("reddit", "reddit-environment")


def test_another_secret_in_the_environment_begins_a_new_life(desk: Desk) -> None:
    fail(desk, pool_of(desk, lent=lent()), 3)
    assert taken(pool_of(desk, lent=lent("another")))
    assert story(desk, "reddit-environment") == [(None, "active"), ("active", "cooling"), ("cooling", "active")]


def test_its_name_cannot_be_taken(desk: Desk) -> None:
    with pytest.raises(Exception, match="-environment"):
        keep(desk, "reddit-environment")


def test_the_last_use_of_an_api_key_is_noted_at_most_once_a_minute(desk: Desk) -> None:
    keys = desk.store.api_keys
    keys.add("n8n", "long and random", desk.now)
    noted = []
    for seconds in (0, 30, 31):
        desk.clock.advance(seconds)
        assert keys.is_known("long and random", desk.now)
        noted.append(keys.page()[0].last_used_at)
    assert noted[0] == noted[1] != noted[2]
    assert not keys.is_known("another", desk.now)
