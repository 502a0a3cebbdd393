"""The exceptions of catchment. A class exists where a caller acts differently; the rest is the message.

The tree says what each class means; the first paragraph of a class says what a person does about it. docs/errors.md is
built from both.

CatchmentError              what nobody foresaw: a mistake of ours
├── InvalidInput            what a person or program gave is wrong; the text says what would be right
│   └── BadSetting          a setting's name, its value and what is allowed
├── NotFound                no such source, item, credential …
├── Conflict                it is there already, or somebody else has it
├── StoreError              the database cannot do it now
│   ├── SchemaMismatch      needs `catchment migrate`, or is newer than this program, or is not the one we knew
│   └── LeaseLost           somebody else has taken the work over; what is under way must not be written
├── VaultError              no master key, or a secret that this key does not open
├── Stopped                 a stop was asked for; the work goes on next time
├── HookFailed              a Python hook raised something; it gets the same event again
└── PlatformError           something at the other end, about one source
    ├── NetworkError        no connection, reset, cut body: tried again
    ├── TimedOut            too slow: tried again
    ├── ServerTrouble       5xx: tried again
    ├── SlowDown            429 or the like, or our own budget: wait as told; counts against nobody
    ├── CredentialsExhausted  there are credentials, and none of them is usable now: says when one will be
    ├── Unreadable          the answer came and is kept; our reader is behind, or it is not what was asked for
    │   ├── NoFeed          a site answers, but announces no feed, and none is at the usual addresses
    │   ├── TooLarge        the answer was cut off at the size limit, and is not kept
    │   └── TooComplex      reading the answer would take too much time or memory
    ├── Missing             404: perhaps for now; asked again with growing pauses
    ├── Gone                410, banned, deleted for good: a fact to record; not asked again
    ├── Refused             403 and other refusals: a person should look
    │   └── Disallowed      the site's robots.txt asks programs to stay away from this address
    ├── LoginNeeded         401: no attempt helps before a person acts
    ├── AddressRefused      the address guard said no (loopback, private, metadata, file://, redirect loops)
    └── StaleAnswer         200 with old data: a failure, not a success
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from catchment.messages import Message, message


class CatchmentError(Exception):
    """Please report it, with the log lines of that moment; `CATCHMENT_LOG_LEVEL=debug` tells more.

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


class InvalidInput(CatchmentError):
    """Correct what was given, as the message says; nothing was done."""

    code, exit_code = "INVALID_INPUT", 2

    def __init__(self, what: str, helps: str = "", field: str | None = None, **params: Any) -> None:
        super().__init__(what, helps, **params)
        self.field = field


class BadSetting(InvalidInput):
    """Correct that setting; `catchment doctor` shows where each one comes from."""

    code = "BAD_SETTING"


class NotFound(CatchmentError):
    """Check the number or name: the `list` commands show what there is."""

    code, exit_code = "NOT_FOUND", 4


class Conflict(CatchmentError):
    """Usually nothing; the message names who has it, or what is there already."""

    code, exit_code = "CONFLICT", 5


class StoreError(CatchmentError):
    """See that the database runs, has room on its disk and is held by no other program; nothing stored is lost."""

    code, retryable, exit_code = "STORE_ERROR", True, 6


class SchemaMismatch(StoreError):
    """Run `catchment migrate`, or use the program or the database that belong together, as the message says."""

    code, retryable = "SCHEMA_MISMATCH", False


class LeaseLost(StoreError):
    """Nothing: whoever has it now finishes it."""

    code, retryable = "LEASE_LOST", True


class VaultError(CatchmentError):
    """Set COOKIE_MASTER_KEY to the key that the credentials were locked with; or add the credential anew."""

    code, exit_code = "VAULT_ERROR", 7


class Stopped(CatchmentError):
    """Nothing: nobody is blamed, and the source is as due as before."""

    code, retryable, exit_code = "STOPPED", True, 1


class HookFailed(CatchmentError):
    """Ask who wrote the hook; `catchment webhooks list` shows how far it is, and it goes on by itself."""

    code, retryable = "HOOK_FAILED", True


class PlatformError(CatchmentError):
    """Nothing: it is asked again. Look at the source if it goes on.

    `status` is the HTTP status where one came. `is_contact` tells that the other end was reached although it did not
    answer (a refused or reset connection): then our own line is not to blame. `is_beyond_request` tells that more than
    this one request is refused: the host, the platform or the credential is. `is_credentials` tells that it is about
    the credential that was used: with another one it may go.
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


class NetworkError(PlatformError):
    """Nothing at first. If all sources have it, look at your own line, DNS and proxy."""

    code = "NETWORK_ERROR"


class TimedOut(PlatformError):
    """Nothing at first. For a source that is always slow, raise CATCHMENT_TIMEOUT_SECONDS."""

    code = "TIMEOUT_ERROR"


class ServerTrouble(PlatformError):
    """Nothing: it usually passes."""

    code = "SERVER_TROUBLE"


class SlowDown(PlatformError):
    """Nothing. If it comes often, give the source a longer interval."""

    code = "SLOW_DOWN"

    @property
    def is_own_limit(self) -> bool:
        """True if our own limits made the request wait (budget, politeness, cooldown); no server answered."""
        return self.status is None


class CredentialsExhausted(PlatformError):
    """`catchment credentials list` shows how each one stands: resume, renew or add one, or wait as the message says."""

    code, retryable = "COOKIE_EXHAUSTED", False


class Unreadable(PlatformError):
    """Open the address in a browser: the feed may have moved, or the site may be closed for repairs."""

    code, retryable = "UNREADABLE", False


class NoFeed(Unreadable):
    """Look on the site for the address of its feed; a page without one is followed as `website`."""

    code = "NO_FEED"


class TooLarge(Unreadable):
    """If the source is worth it, raise CATCHMENT_MAX_BYTES."""

    code = "TOO_LARGE"


class TooComplex(Unreadable):
    """Look at the address in a browser: the site may be broken, or made to keep its readers busy.

    Follow another address of the same content, if there is one: a feed in place of a page, a shorter list.
    """

    code = "TOO_COMPLEX"


class Missing(PlatformError):
    """Check the address: follow the new one, and remove this source."""

    code, retryable = "MISSING", False


class Gone(PlatformError):
    """The source is retired. Remove it, follow its new address, or resume it if you know better."""

    code, retryable = "GONE", False


class Refused(PlatformError):
    """See in a browser whether it is public; it may want a credential, or no programs at all."""

    code, retryable = "REFUSED", False


class Disallowed(Refused):
    """Follow a page that the site's robots.txt allows, or its feed; or ask the site's operator."""

    code = "DISALLOWED"


class LoginNeeded(PlatformError):
    """Add or renew the credential: `catchment credentials add PLATFORM NAME --replace`."""

    code, retryable = "LOGIN_NEEDED", False


class AddressRefused(PlatformError):
    """If the source lies in your own network, set CATCHMENT_ALLOW_PRIVATE_NETWORKS; otherwise remove it."""

    code, retryable = "ADDRESS_REFUSED", False


class StaleAnswer(PlatformError):
    """Nothing at first: it is asked again, and believed if it stays so. A cache on the way may be stuck."""

    code = "STALE_ANSWER"
