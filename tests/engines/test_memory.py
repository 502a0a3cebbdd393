"""Many threads take their memory from few heaps."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

HEAPS = """
import ctypes, sys
from threading import Barrier, Thread
from catchment.engines.embedded import share_memory

libc = ctypes.CDLL(None)
libc.malloc.restype = libc.open_memstream.restype = ctypes.c_void_p
if "shared" in sys.argv:
    share_memory()
together = Barrier(9)

def hold():
    libc.malloc(100)
    together.wait()
    together.wait()

for _ in range(8):
    Thread(target=hold).start()
together.wait()
text, size = ctypes.c_char_p(), ctypes.c_size_t()
stream = ctypes.c_void_p(libc.open_memstream(ctypes.byref(text), ctypes.byref(size)))
libc.malloc_info(0, stream)
libc.fclose(stream)
print(text.value.count(b"<heap nr="))
together.wait()
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has several heaps")
@pytest.mark.parametrize(("how", "few"), [("shared", True), ("by itself", False)])
@pytest.mark.process
def test_threads_share_two_heaps_instead_of_having_each_their_own(how: str, few: bool) -> None:
    said = subprocess.run([sys.executable, "-c", HEAPS, how], capture_output=True, text=True, check=True)
    assert (int(said.stdout) <= 2) is few, said.stdout
