"""`security-audit`: whether a secret stands anywhere in plain."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from catchment.cli import doors, showing
from catchment.cli.given import AsJson

if TYPE_CHECKING:
    from catchment.vault.auditing import Audit


def security_audit(
    log: Annotated[
        list[Path] | None,
        typer.Option(metavar="PATH", exists=True, help="Logs to search, too: a file or a folder. May be repeated."),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Look for secrets that stand anywhere in plain.

    The vault is opened, and what is in it is looked for in the database, in Redis if CATCHMENT_REDIS_URL names one, in
    all files of CATCHMENT_HOME, in files of settings, and in the logs that are given. In our own writing (requests,
    errors, records of runs, logs) whatever has the shape of a secret is found as well; in what others post it is not.
    Nothing that is found is shown. Exits with 1 if there is something, or if something could not be searched.
    """
    with doors.opened_shop("security-audit") as shop:
        from catchment.vault.auditing import audit

        total = shop.store.auditing.size()
        with showing.bar("searched", total, is_shown=showing.is_watched() and not as_json) as bar:
            done = audit(
                shop.store,
                shop.settings,
                Path.cwd(),
                redis=shop.redis,
                lent=shop.safe.lent.values(),
                logs=[file for path in log or () for file in _files(path)],
                told=bar.move,
            )
    if as_json:
        showing.document({"passed": done.passed} | {name: getattr(done, name) for name in done.__struct_fields__})
    else:
        _show(done)
    return 0 if done.passed else 1


def _files(path: Path) -> Iterator[Path]:
    yield from [path] if path.is_file() else sorted(one for one in path.rglob("*") if one.is_file())


def _show(done: Audit) -> None:
    if done.findings:
        showing.table(
            ("where", "found", "#times", "for example"),
            ((one.where, one.what, one.count, one.examples) for one in done.findings),
        )
    searched = f"{showing.counted(done.rows, 'row')} and {showing.counted(done.files, 'file')}"
    looked = f"{searched} searched for {showing.counted(done.secrets, 'known secret')}"
    showing.say(f"{'passed' if done.passed else 'not passed'}: {looked}")
