"""Decoders of records are made once, by one thread at a time."""

from __future__ import annotations

import subprocess
import sys

import msgspec
import pytest

from catchment.decoders import converted, json_decoder
from catchment.model import Request

FIRST_USE = """
import sys, threading
from catchment.decoders import converted, json_decoder
from catchment.model import Record

sys.setswitchinterval(1e-6)
for number in range(60):
    class Leaf(Record, frozen=True):
        number: int = 0
    class Node(Record, frozen=True):
        name: str = ""
        leaves: tuple[Leaf, ...] = ()
    start = threading.Barrier(4)
    def decode(decoded):
        start.wait()
        assert decoded() == Node("a", (Leaf(1),))
    text, value = b'{"name": "a", "leaves": [{"number": 1}]}', {"name": "a", "leaves": [{"number": 1}]}
    works = [lambda: json_decoder(Node).decode(text), lambda: converted(value, Node)] * 2
    threads = [threading.Thread(target=decode, args=(work,)) for work in works]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
"""


def test_threads_that_decode_a_record_for_the_first_time_at_once_do_not_crash_the_process() -> None:
    done = subprocess.run([sys.executable, "-c", FIRST_USE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_decoder_is_made_once() -> None:
    assert json_decoder(tuple[Request, ...]) is json_decoder(tuple[Request, ...])


def test_a_value_of_another_shape_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        converted({"path": 3}, Request)
