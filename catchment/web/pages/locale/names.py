"""Names and sentences that pages look up by a code: states, outcomes, jobs, alerts, errors."""

from __future__ import annotations

from catchment.jobs import JOBS

NAMES: dict[str, dict[str, str]] = {
    "nav": {
        "read": "Read",
        "run": "Run",
        "items": "Items",
        "search": "Search",
        "overview": "Overview",
        "credentials": "Credentials",
        "spending": "Spending",
        "watches": "Watches",
        "notifications": "Notifications",
        "settings": "Settings",
        "runs": "Runs",
        "tasks": "Tasks",
        "gaps": "Gaps",
        "audits": "Audits",
        "alerts": "Alerts",
        "sources": "Sources",
    },
    "theme": {"auto": "System", "light": "Light", "dark": "Dark"},
    "error": {
        "INTERNAL": "Internal error in catchment. Please report it with the log lines from that time.",
        "INVALID_INPUT": "The input is not valid.",
        "BAD_SETTING": "A setting has a value that is not allowed.",
        "NOT_FOUND": "Not found.",
        "CONFLICT": "It exists already, or another process is using it.",
        "STORE_ERROR": "The database failed. Check that it is running and has free disk space. Stored data is safe.",
        "SCHEMA_MISMATCH": "The database belongs to another version of catchment. Run `catchment migrate`.",
        "LEASE_LOST": "Another process took over this work and will finish it.",
        "VAULT_ERROR": (
            "A credential cannot be decrypted. Set COOKIE_MASTER_KEY to the key it was encrypted with, or add the "
            "credential again."
        ),
        "STOPPED": "Stopped before it was finished; it continues with the next collection.",
        "HOOK_FAILED": "A hook raised an error. The event will be delivered to it again.",
        "PLATFORM_ERROR": "The site did not answer as expected. catchment will try again.",
        "NETWORK_ERROR": (
            "Could not connect; catchment will try again. If all sources fail like this, check this machine's network, "
            "DNS and proxy."
        ),
        "TIMEOUT_ERROR": (
            "The site took too long to answer; catchment will try again. For a site that is always slow, raise "
            "CATCHMENT_TIMEOUT_SECONDS."
        ),
        "SERVER_TROUBLE": "The site reports a server error. This usually passes; catchment will try again.",
        "SLOW_DOWN": (
            "Requests are limited at the moment, by the site or by our own budget. Collecting continues automatically; "
            "if this happens often, give the source a longer interval."
        ),
        "UNREADABLE": (
            "The answer could not be read. Open the address in a browser: it may have moved, or be down for "
            "maintenance."
        ),
        "NO_FEED": "The site works, but offers no feed. Look for the address of its feed, or add it as a web page.",
        "TOO_COMPLEX": (
            "The answer is too complex to parse. Use another address of the same content: a feed, or a shorter list."
        ),
        "TOO_LARGE": "The answer is larger than the limit. To allow it, raise CATCHMENT_MAX_BYTES.",
        "MISSING": (
            "There is nothing at this address (404). If it has moved, add the new address and remove this source."
        ),
        "GONE": "It is gone for good (410). Remove it, or add its new address.",
        "REFUSED": (
            "The site refused the request. Check in a browser whether it is public; it may require a credential or "
            "block programs."
        ),
        "DISALLOWED": "The site's robots.txt does not allow programs here. Add its feed, or another page.",
        "LOGIN_NEEDED": (
            "The site requires a login. Add or replace the credential: `catchment credentials add PLATFORM NAME "
            "--replace`."
        ),
        "SPENDING_CAP": "A spending cap allows no further request at the moment. Raise it, or wait.",
        "OUT_OF_CREDITS": "The account has no credits left. Top it up, or wait until its allowance is renewed.",
        "COOKIE_EXHAUSTED": (
            "No credential of this platform is usable at the moment. Resume one, or add another: `catchment "
            "credentials add`."
        ),
        "ADDRESS_REFUSED": (
            "Requests to this address are not allowed. If it is in your own network, set "
            "CATCHMENT_ALLOW_PRIVATE_NETWORKS."
        ),
        "STALE_ANSWER": (
            "The site sent an old answer, perhaps from a cache. catchment will try again, and accept it if it stays "
            "the same."
        ),
        "HELD": "Another process was collecting this source at that moment, so this collection was skipped.",
        "CUT_OFF": (
            "The process ended before this collection did. What was stored is kept; the source will be collected again."
        ),
        "NOT_VISITED": "The run ended before this source's turn; it is still due.",
        "TOO_MANY_TRIES": "Too many wrong API keys. Try again later.",
        "UNAUTHORIZED": "API key missing or unknown.",
    },
    "unsaved": {
        "PLATFORM_ERROR": "The site did not answer as expected. Try again later.",
        "NETWORK_ERROR": (
            "Could not connect to this host. Check the spelling of the address, and whether this machine is online."
        ),
        "TIMEOUT_ERROR": (
            "The site took too long to answer. Try again later; for a slow site, raise CATCHMENT_TIMEOUT_SECONDS."
        ),
        "SERVER_TROUBLE": "The site reports a server error. Try again later.",
        "SLOW_DOWN": "The site asks us to wait. Try again later, or add the source without testing it.",
        "UNREADABLE": (
            "The content of this address cannot be read as this kind of source. Open it in a browser to see what it is."
        ),
        "MISSING": "There is nothing at this address (404). Check its spelling, or open it in a browser.",
        "GONE": "The site says that this address is gone for good (410). Look for another address.",
        "STALE_ANSWER": "The site sent an old answer. Try again later.",
    },
    "credential": {
        "active": "active",
        "cooling": "cooling down",
        "banned": "banned",
        "invalid": "invalid",
        "probation": "on probation",
        "paused": "paused",
    },
    "done": {
        "credential_paused": "Paused. It is not used until you resume it.",
        "credential_resumed": "Resumed. If it was refused before, the next request decides.",
        "watched": "Watch saved. It applies to new items.",
        "unwatched": "Watch deleted. The items stay.",
        "watch_paused": "Paused. It matches nothing until you resume it.",
        "watch_resumed": "Resumed. It applies to new items.",
        "task_cancelled": "Cancelled. It ends when the targets in progress are done.",
        "notification_added": "Added. It receives events from now on; send a test message to check it.",
        "notification_tested": "The test message was accepted.",
        "notification_paused": "Paused. Events are kept for a few days until you resume it.",
        "notification_resumed": "Resumed. It continues where it stopped.",
        "notification_removed": "Removed, with its address.",
        "session_ended": "Signed out.",
        "interval_set": "Interval saved.",
        "images_on": "Images of this source will be loaded.",
        "images_off": "Images of this source are no longer loaded.",
        "paused": "Paused. It is not collected until you resume it.",
        "resumed": "Resumed. It will be collected again.",
        "asked": "Collection started. This page updates itself.",
        "removed": "Source removed. Its items stay.",
        "changed": "Saved. Takes effect with the next collection.",
        "followed": "Source added. Its first collection has started, and this page updates itself.",
        "known": "This source had already been added.",
    },
    "task": {"pending": "pending", "running": "running", "completed": "completed", "failed": "failed"},
    "session_opened": {"link": "signed in with a link", "key": "signed in with a key"},
    "origin": {"environment": "the environment"},
    "interval_from": {"database": "set here", "settings": "from the settings", "default": "default"},
    "home": {"database": "the database", "redis": "Redis"},
    "job": {"repair-gaps": "Repair gaps", "collect": "Collection from the command line"},
    "sort": {
        "entry": "entry",
        "post": "post",
        "comment": "comment",
        "story": "story",
        "poll": "poll",
        "job": "job",
        "page": "page",
        "link": "link",
        "repository": "repository",
        "thread": "thread",
        "floor": "floor",
        "tweet": "tweet",
    },
    "medium": {"image": "image", "video": "video", "audio": "audio", "file": "file"},
    "shown": {"edited": "edited items", "deleted": "deleted items", "present": "not deleted"},
    "deleted_by": {
        "author": "Deleted by its author. The stored text is kept.",
        "moderator": "Removed by a moderator. The stored text is kept.",
    },
    "deletion": {
        "author": "deleted by its author",
        "moderator": "removed by a moderator",
        "source": "deleted at the source",
    },
    "why_fewer": {
        "pending": "More of them are waiting to be fetched.",
        "off": "Comments are not collected for this source: its setting `comments` is off.",
        "never": "Replies are not collected from this kind of source.",
        "too_long": "The thread is too long: its replies are not read.",
        "unseen": "The others were removed, are hidden, or were never shown to catchment.",
    },
    "counter": {"score": "score", "reply_count": "replies", "view_count": "views"},
    "relation": {
        "replied_to": "in reply to",
        "quoted": "quotes",
        "retweeted": "reposts",
        "crossposted": "crossposted from",
        "discussed_at": "discussed at",
        "via": "via",
    },
    "started_by": {"request": "a request", "schedule": "the schedule"},
    "cause": {
        "window": "All entries of the feed were replaced between two collections. A shorter interval helps.",
        "reach": "The platform shows no older posts. A shorter interval helps.",
        "cap": "Our own page limit ended the collection.",
        "money": "A spending cap ended the collection.",
        "repeats": "The platform's pages repeat themselves.",
        "incomplete": "The platform announced a further page, and it was empty. Perhaps nothing is missing.",
    },
    "closed": {
        "gap.shown_again": "The missing items were found after all.",
        "gap.repaired": "The missing period was read completely.",
    },
    "severity": {"P0": "urgent", "P1": "today", "P2": "not urgent"},
    "alert": {
        "source failing": "keeps failing",
        "host unreachable": "does not answer",
        "platform unreachable": "does not answer",
        "network offline": "This machine seems to be offline",
        "source retired": "is gone and no longer collected",
        "source silent": "has shown nothing new for a long time",
        "platform silent": "shows nothing new anywhere",
        "platform calls": "is close to its request limit",
        "platform budget": "has too small a budget for its sources",
        "wrong keys": "Someone is guessing API keys",
        "redis away": "Redis is unavailable",
        "broker away": "The message broker is unavailable",
        "queue unconsumed": "has no worker",
        "beat missing": "No beat is running",
        "platform visits": "has a low success rate",
        "hot hits": "The cache has a low hit rate",
        "collecting stalled": "Collecting has stalled",
        "warm-up": "first collections make no progress",
        "listener failing": "does not accept its events",
        "pool exhausted": "has no usable credential",
        "credential refused": "was refused",
        "credential used up": "has no credit left",
        "credential expiring": "expires soon or has expired",
        "service spending": "is near or at its spending cap",
        "task failing": "has tasks that fail",
    },
    "alert_helps": {
        "source failing": (
            "The page of the source says why and what to do. It is retried automatically, less and less often."
        ),
        "host unreachable": "Check in a browser whether it works. Its sources are retried automatically.",
        "platform unreachable": "Check in a browser whether it works. Its sources are retried automatically.",
        "network offline": "Check the network, DNS and proxy of this machine. All sources are retried within minutes.",
        "source retired": "If it has a new address, add that and remove this source. If it still exists, resume it.",
        "source silent": "Open it in a browser: it may have moved, or serve different content to programs.",
        "platform silent": "The platform is down or blocks us. Check in a browser whether it works.",
        "platform calls": "Use fewer sources, longer intervals, or add a credential.",
        "platform budget": "Use fewer sources, longer intervals, or add a credential. The overview shows the forecast.",
        "wrong keys": (
            "Many wrong API keys or sign-in links were tried; further attempts have to wait. If it is one of your own "
            "programs, give it a valid key; otherwise block that address."
        ),
        "redis away": "The database is used instead. Check that Redis is running, or unset CATCHMENT_REDIS_URL.",
        "broker away": "Check that Redis is running and CELERY_BROKER_URL is correct. Nothing is lost meanwhile.",
        "queue unconsumed": "Start a `catchment worker` that takes tasks from this queue (CELERY_QUEUE_NAMES).",
        "beat missing": "Start `catchment beat`. Until then, workers get nothing to do.",
        "platform visits": "Failing sources are at the top of the list of sources, each with its reason.",
        "hot hits": "Possible causes: Redis is unavailable, HOT_CACHE_TTL_HOURS is too short, or collecting is late.",
        "collecting stalled": "Check the network, and whether sites refuse requests. The latest runs say more.",
        "warm-up": "The request budget of the platform may be used up; see the overview.",
        "listener failing": "Check that the receiver is running; `catchment webhooks list` shows its state.",
        "pool exhausted": "Resume one, or add another: `catchment credentials add`.",
        "credential used up": (
            "Top up its account, or wait until its allowance is renewed. It is tried again automatically; other "
            "credentials are used meanwhile."
        ),
        "credential refused": "Test it: `catchment credentials test`. If it no longer works, replace it.",
        "credential expiring": "Replace it: `catchment credentials add … --replace`.",
        "task failing": "The tasks page shows why. The alert closes when a task for this kind succeeds.",
        "service spending": "The spending page shows what costs most. Raise the cap, or wait for the next period.",
    },
    "state": {"active": "active", "paused": "paused", "retired": "retired"},
    "why": {
        "punctual": "on time",
        "due": "due now",
        "first": "not collected yet",
        "visiting": "collecting",
        "paused": "paused",
        "retired": "retired",
        "no_platform": "no platform",
        "nobody": "late",
        "budget": "late",
        "crowded": "late",
        "stuck": "late",
        "told": "asked to wait",
        "deferred": "deferred",
        "unscheduled": "on request only",
        "no_money": "waiting: spending cap reached",
        "probation": "on probation",
        "failing": "failing",
        "silent": "silent",
    },
    "late": {
        "punctual": "It is collected on schedule; next collection {at}.",
        "due": "It is due now and will be collected in the next run.",
        "first": "It has not been collected yet; its first collection starts within a minute.",
        "visiting": "It is being collected right now ({work}).",
        "paused": "It is paused ({reason}) and is not collected until you resume it.",
        "retired": "It is retired ({reason}). If it still exists, resume it.",
        "no_platform": (
            "It is not collected: no platform is installed for its kind. Collecting starts once a package for it is "
            "installed."
        ),
        "nobody": "It was due {at}, but no process is collecting. Start `catchment serve`.",
        "budget": (
            "It was due {at}, but {platform} is not used until {until}: its request budget is used up, or it asked us "
            "to wait. Collecting then continues automatically."
        ),
        "crowded": (
            "It was due {at}, but {count} sources are waiting, more than can be collected at once. Longer intervals or "
            "a higher COLLECTOR_CONCURRENCY help."
        ),
        "stuck": "It was due {at} and has not been collected. The job “Collect due sources” on the overview says more.",
        "told": "Its server asked us to wait. Next collection {at}.",
        "deferred": "Deferred: our own limits for this platform or host allow no request yet. Next collection {at}.",
        "unscheduled": "SCRAPER_ENABLED=false: it is collected on request only, not on schedule.",
        "no_money": (
            "Deferred: the spending cap of its service allows no further request until {until}. It is tried again "
            "{at}, in case the cap was raised."
        ),
        "probation": (
            "It has failed {failures} times in a row and is retried at growing intervals; next collection {at}."
        ),
        "failing": "The last collection failed. It is retried automatically; next collection {at}.",
        "silent": (
            "It is collected on schedule but has shown nothing new since {new}; by its usual rhythm something was "
            "expected by {exact}. Check it in a browser."
        ),
    },
    "due": {
        "due.first": "it has not been collected yet",
        "due.own_interval": "its own interval",
        "due.probation": "it keeps failing and is retried less and less often",
        "due.told_to_wait": "its server asked us to wait",
        "due.not_stored": "our database could not store it; it is retried soon",
        "due.deferred": "our own limits allow no request yet",
        "due.cap_of_day": "the daily spending cap is reached; it is retried in case the cap is raised",
        "due.cap_of_month": "the monthly spending cap is reached; it is retried in case the cap is raised",
        "due.no_connection": "nothing could be reached; it is retried soon",
        "due.no_answer": "its host does not answer; it is retried soon",
        "due.less_often": "the source asks to be collected less often",
        "due.added": "it has just been added",
        "due.requested": "its collection was requested",
    },
    "state_reason": {
        "paused_by_user": "by a user",
        "source.paused_in_list": "in the list that it came from",
    },
    "weekday": {"0": "Mon", "1": "Tue", "2": "Wed", "3": "Thu", "4": "Fri", "5": "Sat", "6": "Sun"},
    "standing": {
        "verified": "verified complete",
        "repaired": "was missing, now repaired",
        "unproven": "not verified",
        "suspect": "possibly incomplete",
        "unreachable": "missing or unreachable",
    },
    "outcome": {
        "succeeded": "succeeded",
        "unchanged": "no changes",
        "failed": "failed",
        "deferred": "deferred",
        "skipped": "skipped",
        "under_way": "in progress",
    },
    "priority": {"high": "high", "medium": "medium", "low": "low"},
    "truth": {"true": "yes", "false": "no"},
    "filter": {
        "platform": "Platform",
        "kind": "Kind",
        "source": "Source",
        "category": "Category",
        "author": "Author",
        "tag": "Tag",
        "since": "From",
        "until": "To",
        "state": "State",
    },
    "state_count": {"active": "{count} active", "paused": "{count} paused", "retired": "{count} retired"},
    "audit_result": {
        "missing": "missing",
        "ignored": "given up",
        "repaired": "repaired",
        "still_missing": "still missing",
        "partial": "repaired in part",
        "failed": "failed",
        "skipped": "skipped",
        "deferred": "deferred",
        "interrupted": "interrupted",
    },
    "error_category": {"http": "HTTP", "parse": "unreadable answer", "db": "database", "unknown": "other cause"},
    "board_trigger": {"schedule_12h": "by schedule", "manual": "by request"},
    "read_reason": {
        "new": "new thread",
        "last_reply_changed": "last reply changed",
        "pages_pending": "pages were pending",
    },
    "posts": {"threads": "Threads", "all": "All posts"},
    "items_order": {"posted": "By posting time", "replied": "By last reply"},
    "search_order": {"best": "Most relevant", "newest": "Newest"},
    "items_title": {"posted": "Items", "replied": "Items by last reply"},
}
NAMES["job"] |= {job.name: job.why for job in JOBS}
