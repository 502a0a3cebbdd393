"""What can go wrong, as a small family. A class exists where somebody acts differently; the rest is the message.

CatchmentError
├── InvalidInput            what a person or program gave is wrong; the text says what would be right
│   └── BadSetting          a setting's name, its value and what is allowed
├── NotFound                no such source, item, credential …
├── Conflict                it is there already, or somebody else has it
├── StoreError              the database cannot do it now
│   ├── SchemaMismatch      needs `catchment migrate`, or is newer than this program, or is not the one we knew
│   └── LeaseLost           somebody else has taken the work over; what is under way must not be written
├── VaultError              no master key, or a secret that this key does not open
├── Stopped                 a stop was asked for; the work goes on next time
└── PlatformError           something at the other end, about one source
    ├── NetworkError        no connection, reset, cut body: tried again
    ├── TimedOut            too slow: tried again
    ├── ServerTrouble       5xx: tried again
    ├── SlowDown            429 or the like: wait as told; counts against nobody
    ├── Unreadable          the answer came and is kept; our reader is behind, or it is not what was asked for
    │   └── TooLarge        the answer was cut off at the size limit, and is not kept
    ├── Missing             404: perhaps for now; asked again with growing pauses
    ├── Gone                410, banned, deleted for good: a fact to record; not asked again
    ├── Refused             403 and other refusals: a person should look
    ├── LoginNeeded         401: no attempt helps before a person acts
    ├── AddressRefused      the address guard said no (loopback, private, metadata, file://, redirect loops)
    └── StaleAnswer         200 with old data: a failure, not a success
"""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar


class CatchmentError(Exception):
    """Base of all our failures. `str()` is fit for people: no secret, no stack trace, ends with what helps."""

    code: ClassVar[str] = "INTERNAL"
    retryable: ClassVar[bool] = False
    exit_code: ClassVar[int] = 1

    def __init__(self, what: str, helps: str = "") -> None:
        super().__init__(f"{what} — {helps}" if helps else what)
        self.what = what
        self.helps = helps


class InvalidInput(CatchmentError):
    code, exit_code = "INVALID_INPUT", 2

    def __init__(self, what: str, helps: str = "", field: str | None = None) -> None:
        super().__init__(what, helps)
        self.field = field


class BadSetting(InvalidInput):
    code = "BAD_SETTING"


class NotFound(CatchmentError):
    code, exit_code = "NOT_FOUND", 4


class Conflict(CatchmentError):
    code, exit_code = "CONFLICT", 5


class StoreError(CatchmentError):
    code, retryable, exit_code = "STORE_ERROR", True, 6


class SchemaMismatch(StoreError):
    code, retryable = "SCHEMA_MISMATCH", False


class LeaseLost(StoreError):
    code, retryable = "LEASE_LOST", True


class VaultError(CatchmentError):
    code, exit_code = "VAULT_ERROR", 7


class Stopped(CatchmentError):
    code, retryable, exit_code = "STOPPED", True, 1


class PlatformError(CatchmentError):
    """Something at the other end. `status` is the HTTP status where one came.

    `is_contact` tells that the other end was reached although it did not answer (a refused or reset connection): then
    our own line is not to blame.
    """

    code, retryable, exit_code = "PLATFORM_ERROR", True, 3

    def __init__(
        self, what: str, helps: str = "", *, status: int | None = None, retry_at: datetime | None = None
    ) -> None:
        super().__init__(what, helps)
        self.status = status
        self.retry_at = retry_at
        self.is_contact = False


class NetworkError(PlatformError):
    code = "NETWORK_ERROR"


class TimedOut(PlatformError):
    code = "TIMEOUT_ERROR"


class ServerTrouble(PlatformError):
    code = "SERVER_TROUBLE"


class SlowDown(PlatformError):
    code = "SLOW_DOWN"


class Unreadable(PlatformError):
    code, retryable = "UNREADABLE", False


class TooLarge(Unreadable):
    code = "TOO_LARGE"


class Missing(PlatformError):
    code, retryable = "MISSING", False


class Gone(PlatformError):
    code, retryable = "GONE", False


class Refused(PlatformError):
    code, retryable = "REFUSED", False


class LoginNeeded(PlatformError):
    code, retryable = "LOGIN_NEEDED", False


class AddressRefused(PlatformError):
    code, retryable = "ADDRESS_REFUSED", False


class StaleAnswer(PlatformError):
    code = "STALE_ANSWER"
