"""The exceptions of catchment. A class exists where a caller acts differently; the rest is the message.

The tree says what each class means; the first paragraph of a class says what a person does about it. docs/errors.md is
built from both.

CatchmentError              an unexpected error: a bug in catchment
├── InvalidInput            the input is invalid; the message says what is allowed
│   └── BadSetting          a setting is invalid; the message gives its name, its value and what is allowed
├── NotFound                no such source, item, credential …
├── Conflict                it already exists, or another process is using it
├── StoreError              the database is unavailable or failed
│   ├── SchemaMismatch      needs `catchment migrate`, is newer than this program, or is not the expected database
│   └── LeaseLost           another process has taken over; unfinished work must not be written
├── VaultError              the master key is missing, or cannot decrypt a secret
├── Stopped                 a stop was requested; the work continues next time
├── HookFailed              a Python hook raised an exception; the event will be delivered again
└── PlatformError           the platform failed for one source
    ├── NetworkError        no connection, reset, cut body: tried again
    ├── TimedOut            too slow: tried again
    ├── ServerTrouble       5xx: tried again
    ├── SlowDown            429 or similar, or our own budget: the wait is obeyed; does not count as a failure
    │   └── SpendingCapReached  a spending cap allows no further call: no request until its day or month is over
    ├── CredentialsExhausted  no credential is usable at the moment; the message says when one will be
    ├── Unreadable          the answer is kept, but could not be parsed: our parser is outdated, or it is something else
    │   ├── NoFeed          a site answers, but announces no feed, and none is at the usual addresses
    │   ├── TooLarge        the answer was cut off at the size limit, and is not kept
    │   └── TooComplex      reading the answer would take too much time or memory
    ├── Missing             404, perhaps temporary: retried at growing intervals
    ├── Gone                410, banned or permanently deleted: recorded, and not requested again
    ├── Refused             403 and other refusals: needs your attention
    │   └── Disallowed      the site's robots.txt asks programs to stay away from this address
    ├── LoginNeeded         401: retrying does not help until you act
    ├── OutOfCredits        402 or a monthly cap: the account at a paid service is used up
    ├── AddressRefused      the address is not allowed (loopback, private, metadata, file://, redirect loops)
    └── StaleAnswer         200 with old data: a failure, not a success
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from catchment.messages import Message, message


class CatchmentError(Exception):
    """Please report it with the log lines from that time; `CATCHMENT_LOG_LEVEL=debug` logs more detail.

    Base of all our failures. `str()` is fit for people: no secret, no stack trace, ends with what helps. What varies in
    `what` and `helps` are parameters: `NotFound("there is no source {id}", id=7)`; so they can be translated.
    """

    code: ClassVar[str] = "INTERNAL"
    retryable: ClassVar[bool] = False
    exit_code: ClassVar[int] = 1
    is_logged = False
    """Whether it is in the log already: an outage is logged when it starts and when it ends, not at each failure."""

    def __init__(self, what: str, helps: str = "", **params: Any) -> None:
        self.what = what if isinstance(what, Message) else Message(what, params)
        self.helps = helps if isinstance(helps, Message) else Message(helps, params)
        self.message = message("error.helps", what=self.what, helps=self.helps) if helps else self.what
        super().__init__(str(self.message))


def internal_error(error: Exception) -> CatchmentError:
    """Returns what is recorded about a bug of ours, or of a platform's module, that one piece of work triggered."""
    return CatchmentError("internal error ({error_type})", "the log has the details", error_type=type(error).__name__)


class InvalidInput(CatchmentError):
    """Correct the input as the message says. Nothing was changed."""

    code, exit_code = "INVALID_INPUT", 2

    def __init__(self, what: str, helps: str = "", field: str | None = None, **params: Any) -> None:
        super().__init__(what, helps, **params)
        self.field = field


class BadSetting(InvalidInput):
    """Correct that setting; `catchment doctor` shows where each one comes from."""

    code = "BAD_SETTING"


class NotFound(CatchmentError):
    """Check the id or name; the `list` commands show what exists."""

    code, exit_code = "NOT_FOUND", 4


class Conflict(CatchmentError):
    """Usually nothing. The message says what already exists, or which process is using it."""

    code, exit_code = "CONFLICT", 5


class StoreError(CatchmentError):
    """Check that the database runs, has free disk space and is not locked by another program. Stored data is safe."""

    code, retryable, exit_code = "STORE_ERROR", True, 6


class SchemaMismatch(StoreError):
    """As the message says, run `catchment migrate`, or use a program and a database that match."""

    code, retryable = "SCHEMA_MISMATCH", False


class LeaseLost(StoreError):
    """Nothing: the other process will finish it."""

    code, retryable = "LEASE_LOST", True


class VaultError(CatchmentError):
    """Set COOKIE_MASTER_KEY to the key that encrypted the credentials, or add the credential again."""

    code, exit_code = "VAULT_ERROR", 7


class Stopped(CatchmentError):
    """Nothing: it counts against no source, and the source is still due."""

    code, retryable, exit_code = "STOPPED", True, 1


class HookFailed(CatchmentError):
    """Contact the hook's author. `catchment webhooks list` shows its progress; delivery is retried automatically."""

    code, retryable = "HOOK_FAILED", True


class PlatformError(CatchmentError):
    """Nothing: it is retried. If it persists, check the source.

    `status` is the HTTP status where one came. `is_contact` tells that the other end was reached although it did not
    answer (a refused or reset connection): then our own line is not to blame. `is_beyond_request` tells that more than
    this one request is refused: the host, the platform or the credential is. `is_credentials` tells that it is about
    the credential that was used: with another one it may go. `is_unsent` tells that no request was sent. `is_final`
    tells that another form of the request would be refused as well, and `is_passing` that the same request will be
    answered some day.
    """

    code, retryable, exit_code = "PLATFORM_ERROR", True, 3

    def __init__(
        self,
        what: str,
        helps: str = "",
        *,
        status: int | None = None,
        retry_at: datetime | None = None,
        **params: Any,
    ) -> None:
        super().__init__(what, helps, **params)
        self.status = status
        self.retry_at = retry_at
        self.is_contact = False
        self.is_beyond_request = False
        self.is_credentials = False
        self.is_unsent = False
        self.is_final = False
        self.is_passing = False


class NetworkError(PlatformError):
    """Nothing at first. If all sources fail, check your network, DNS and proxy."""

    code = "NETWORK_ERROR"


class TimedOut(PlatformError):
    """Nothing at first. For a source that is always slow, raise CATCHMENT_TIMEOUT_SECONDS."""

    code = "TIMEOUT_ERROR"


class ServerTrouble(PlatformError):
    """Nothing: it usually passes."""

    code = "SERVER_TROUBLE"


class SlowDown(PlatformError):
    """Nothing. If it happens often, give the source a longer interval."""

    code = "SLOW_DOWN"

    @property
    def is_own_limit(self) -> bool:
        """True if our own limits made the request wait (budget, politeness, cooldown); no server answered."""
        return self.status is None


class SpendingCapReached(SlowDown):
    """Raise the cap, or wait: `catchment spending` shows what was spent, and when collecting continues."""

    code = "SPENDING_CAP"


class CredentialsExhausted(PlatformError):
    """`catchment credentials list` shows the state of each: resume, renew or add one, or wait as the message says."""

    code, retryable = "COOKIE_EXHAUSTED", False


class Unreadable(PlatformError):
    """Open the address in a browser: the feed may have moved, or the site may be down for maintenance."""

    code, retryable = "UNREADABLE", False


class NoFeed(Unreadable):
    """Look on the site for the address of its feed; a page without one can be added as `website`."""

    code = "NO_FEED"


class TooLarge(Unreadable):
    """If the source is worth it, raise CATCHMENT_MAX_BYTES."""

    code = "TOO_LARGE"


class TooComplex(Unreadable):
    """Open the address in a browser: the site may be broken, or designed to waste a crawler's resources.

    Use another address of the same content, if there is one: a feed instead of a page, or a shorter list.
    """

    code = "TOO_COMPLEX"


class Missing(PlatformError):
    """Check the address: follow the new one, and remove this source."""

    code, retryable = "MISSING", False


class Gone(PlatformError):
    """The source is retired. Remove it, follow its new address, or resume it if it still exists."""

    code, retryable = "GONE", False


class Refused(PlatformError):
    """Check in a browser whether it is public; it may require a credential, or block programs."""

    code, retryable = "REFUSED", False


class Disallowed(Refused):
    """Follow a page that the site's robots.txt allows, or its feed; or ask the site's operator."""

    code = "DISALLOWED"


class LoginNeeded(PlatformError):
    """Add or renew the credential: `catchment credentials add PLATFORM NAME --replace`."""

    code, retryable = "LOGIN_NEEDED", False


class OutOfCredits(PlatformError):
    """Top up the account, or raise its cap, at the service. Until then, its sources wait and send no requests."""

    code, retryable = "OUT_OF_CREDITS", False


class AddressRefused(PlatformError):
    """If the source is in your own network, set CATCHMENT_ALLOW_PRIVATE_NETWORKS; otherwise remove it."""

    code, retryable = "ADDRESS_REFUSED", False


class StaleAnswer(PlatformError):
    """Nothing at first: it is requested again, and accepted if it stays the same. A cache in between may be stuck."""

    code = "STALE_ANSWER"
