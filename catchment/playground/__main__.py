"""`python -m catchment.playground`: serve a world on 127.0.0.1, print its address, run until SIGTERM."""

from __future__ import annotations

import argparse
import signal
import socket
import sys
from datetime import UTC, datetime
from pathlib import Path
from threading import Event

import msgspec

from catchment.clock import clock_from
from catchment.playground.faults import Cue, FaultPlan
from catchment.playground.server import Playground
from catchment.playground.world import World


def main() -> None:
    options = _options().parse_args()
    clock = clock_from(options.clock, options.home)
    start = options.start or clock.now().replace(hour=0, minute=0, second=0, microsecond=0)
    script = msgspec.json.decode(options.script.read_bytes(), type=list[Cue]) if options.script else []
    playground = Playground(
        World(options.seed, start, options.places, options.days, busy=options.busy, others=dict(options.others)),
        clock,
        FaultPlan(options.seed, options.fault_rate, script, options.outage_rate),
        log=options.log,
        port=options.port,
        slow_seconds=options.slow_seconds,
        listener=None if options.listener is None else socket.socket(fileno=options.listener),
    )
    stop = Event()
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signal_number, lambda *_: stop.set())
    with playground:
        sys.stdout.write(f"{playground.url}\n")
        sys.stdout.flush()
        stop.wait()


def _options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(prog="python -m catchment.playground", description=__doc__)
    options.add_argument("--seed", type=int, default=7)
    options.add_argument("--places", type=int, default=200)
    options.add_argument(
        "--others",
        metavar="FORM=COUNT",
        type=_form,
        nargs="*",
        default=[],
        help="in addition to feeds: hackernews=1 website=5 …",
    )
    options.add_argument("--days", type=float, default=7.0, help="how long the world posts after its start")
    options.add_argument("--start", type=_moment, help="when it starts (ISO 8601); by default today at midnight UTC")
    options.add_argument("--busy", type=float, default=1.0, help="factor for the number of posts")
    options.add_argument("--port", type=int, default=0, help="0: any free port")
    options.add_argument(
        "--listener", type=int, metavar="FD", help="an inherited socket that listens already, used instead of --port"
    )
    options.add_argument("--clock", metavar="START,RATE", help="like CATCHMENT_CLOCK; by default the machine's clock")
    options.add_argument("--home", type=Path, default=Path("."), help="folder of the clock's anchor file")
    options.add_argument("--fault-rate", type=float, default=0.0, help="share of requests that get a fault")
    options.add_argument(
        "--outage-rate", type=float, help="share of a host's hours; by default a twentieth of --fault-rate"
    )
    options.add_argument("--script", type=Path, help="a JSON list of cues: faults for certain requests")
    options.add_argument("--slow-seconds", type=float, default=0.2, help="duration of slow answers, in real time")
    options.add_argument("--log", type=Path, help="log file, with a line for every request")
    return options


def _form(text: str) -> tuple[str, int]:
    form, _, count = text.partition("=")
    return form, int(count or 1)


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


if __name__ == "__main__":
    main()
