"""The table of settings: each is defined once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from catchment import __version__
from catchment.settings.formats import (
    ValueFormat,
    address,
    choice,
    choices,
    database,
    days,
    dollars,
    flag,
    folder,
    line,
    minutes,
    moving,
    number,
    prices,
    size,
    strong_key,
    tier,
    user_names,
    waits,
    web,
    whole,
)

T = TypeVar("T")
_SCRAPER_INTERVAL = 30
QUEUES = ("analysis_queue", "maintenance_queue", "cleanup_queue", "crawler_queue", "monitoring_queue")
"""The queues of the distributed engine."""
_MAY_HOLD_PASSWORD = (
    *("CATCHMENT_DATABASE_URL", "CATCHMENT_REDIS_URL", "CATCHMENT_PROXY"),
    *("CELERY_BROKER_URL", "CELERY_RESULT_BACKEND"),
)


@dataclass(frozen=True)
class Setting:
    """The definition of one setting, or of a family: `FETCH_INTERVAL_<KIND>`."""

    name: str
    format: ValueFormat[Any]
    what: str
    default: Any = None
    default_words: str = ""
    """Describes the default where it is not a single value."""
    older: tuple[str, ...] = ()
    """Former names, which still work where the current name is not given."""
    is_secret: bool = False
    is_live: bool = False
    """Whether engines notice a change in a file while they run."""

    @cached_property
    def family(self) -> str | None:
        """What the members of this family are: kind, platform or job."""
        match = re.search("<(.+)>", self.name)
        return match[1].lower() if match else None

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        """The names of this family's variables."""
        return re.compile(re.sub("<.+>", "(.+)", self.name))

    def member(self, name: str) -> str | None:
        """The member of this family that a variable sets; None if it sets none."""
        match = self._pattern.fullmatch(name) if self.family else None
        if match is None:
            return None
        # Job names contain hyphens, which variables cannot.
        return match[1].lower().replace("_", "-") if self.family == "job" else match[1].lower()

    @property
    def is_anybodys(self) -> bool:
        """A family whose names begin with the member's name: other programs may use such names, too."""
        return self.name.startswith("<")

    def variable(self, member: str) -> str:
        """The variable for one member of this family."""
        return re.sub("<.+>", member.upper().replace("-", "_"), self.name)

    def owns(self, name: str) -> bool:
        return name in (self.name, *self.older) or self.member(name) is not None

    @property
    def may_hold_secret(self) -> bool:
        """Whether it is a secret, or a URL that may contain a password."""
        return self.is_secret or self.name in _MAY_HOLD_PASSWORD

    def show(self, value: Any) -> str:
        if value is None and not self.family:
            return ""
        return "set" if self.is_secret else without_password(self.format.show(value))

    def shown_default(self) -> str:
        return self.default_words or self.show(self.default)


def without_password(text: str) -> str:
    """A URL in the form in which it may be shown. Greedy: a password may contain an @ or a slash."""
    return re.sub(r"(password=)[^&\s]+", r"\1***", re.sub(r"//\S*@", "//***@", text))


def setting(name: str, format: ValueFormat[T], default: T | None, what: str, **more: Any) -> Any:
    return field(default=default, metadata={"setting": Setting(name, format, what, default, **more)})


def members(name: str, format: ValueFormat[Any], what: str, **more: Any) -> Any:
    return field(default_factory=dict, metadata={"setting": Setting(name, format, what, **more)})


@dataclass(frozen=True, repr=False)
class Settings:
    """All settings of one process. Built by `read_settings` at start; by hand in tests."""

    home: Path = field(
        metadata={
            "setting": Setting(
                "CATCHMENT_HOME",
                folder,
                "The data folder.",
                default_words="$XDG_DATA_HOME/catchment, else ~/.local/share/catchment; "
                "on macOS ~/Library/Application Support/catchment",
            )
        }
    )
    database_url: str = setting(
        "CATCHMENT_DATABASE_URL",
        database,
        None,
        "The database. SQLite needs no setup; PostgreSQL serves several processes and machines.",
        default_words="the file catchment.db in CATCHMENT_HOME",
    )
    redis_url: str | None = setting(
        "CATCHMENT_REDIS_URL",
        address("redis", "rediss"),
        None,
        "Redis, if available: it holds the cache and the request budgets that all processes share; while it "
        "is unavailable, the database does. Needs the extra `redis`.",
    )
    broker_url: str | None = setting(
        "CELERY_BROKER_URL",
        address("redis", "rediss"),
        None,
        "The message broker of the distributed engine, a database of a Redis server, such as "
        "redis://localhost:6379/1. If set, `catchment beat` and `catchment worker` run the jobs, and `serve` does not. "
        "Needs the extra `distributed`.",
    )
    result_backend: str | None = setting(
        "CELERY_RESULT_BACKEND",
        address("redis", "rediss"),
        None,
        "Where the distributed engine stores the results of manually called tasks, for an hour.",
        default_words="database 2 of the broker's Redis server",
    )
    worker_count: int = setting(
        "CELERY_WORKER_COUNT",
        whole(1, 256),
        4,
        "Number of child processes of a `catchment worker`; each runs one task at a time.",
    )
    queue_names: tuple[str, ...] = setting(
        "CELERY_QUEUE_NAMES",
        choices(*QUEUES),
        QUEUES,
        "The queues from which a `catchment worker` takes tasks. Every queue needs a worker that consumes it.",
    )
    host: str = setting("CATCHMENT_HOST", line, "127.0.0.1", "The address that `serve` listens on.")
    port: int = setting("CATCHMENT_PORT", whole(0, 65535), 8700, "The port that `serve` listens on; 0: any free port.")
    api_key: str | None = setting(
        "CATCHMENT_API_KEY",
        strong_key,
        None,
        "An API key of your own choice, long and random. `catchment keys add NAME` creates stored keys instead.",
        is_secret=True,
    )
    master_key: str | None = setting(
        "COOKIE_MASTER_KEY",
        line,
        None,
        "The master key that encrypts credentials; `catchment credentials new-key` creates one. If not set, a "
        "key is created in the data folder (`master-key`) when it is first needed. During a key change, give "
        "several, separated by commas: the first one encrypts, all of them decrypt.",
        is_secret=True,
    )

    cooling_minutes: int = setting(
        "XHS_COOLING_DURATION_MINUTES",
        minutes,
        30,
        "Minutes of cooldown for a credential of any platform after several errors in a row.",
    )
    most_errors_in_a_row: int = setting(
        "XHS_MAX_CONSECUTIVE_ERRORS",
        whole(1, 1000),
        3,
        "Number of errors in a row after which a credential of any platform cools down. Only errors caused by "
        "the credential count.",
    )
    most_errors_in_all: int = setting(
        "XHS_MAX_TOTAL_ERRORS",
        whole(1, 100_000),
        10,
        "Total number of errors after which a credential of any platform counts as invalid.",
    )
    clean_days: int = setting(
        "CATCHMENT_CREDENTIAL_CLEAN_DAYS",
        days,
        7,
        "Days without an error after which a credential's total starts again from 0.",
    )
    rest_hours: int = setting(
        "CATCHMENT_CREDENTIAL_REST_HOURS",
        whole(0, 8_760),
        24,
        "Hours after which a banned or invalid credential is tried again with one request; doubled after each "
        "further failure. 0: only after you resume it.",
    )
    expiry_days: int = setting(
        "CATCHMENT_CREDENTIAL_EXPIRY_DAYS",
        whole(0, 365),
        7,
        "Days before a credential expires at which an alert is opened.",
    )

    tick_seconds: float = setting(
        "COLLECTOR_TICK",
        number(0.1, 86_400),
        60.0,
        "Seconds between two checks for due sources.",
        older=("COLLECTOR_INTERVAL",),
        is_live=True,
    )
    concurrency: int = setting(
        "COLLECTOR_CONCURRENCY", whole(1, 256), 5, "Number of sources collected at the same time."
    )
    crawler_batch_size: int = setting(
        "CRAWLER_BATCH_SIZE",
        whole(1, 10_000),
        12,
        "Number of due communities of a kind that are claimed at a time; the next batch is claimed once all of the "
        "previous one have started. Sources that are requested (`collect --source`, `--kind`, `--all`) are claimed as "
        "workers become free. With CELERY_BROKER_URL: also how many due sources one task collects.",
        is_live=True,
    )
    crawler_concurrency: int = setting(
        "CRAWLER_MAX_CONCURRENCY",
        whole(1, 256),
        2,
        "Number of communities of a kind that are collected at the same time, within COLLECTOR_CONCURRENCY; "
        "other sources are not affected.",
    )
    crawler_post_limit: int = setting(
        "CRAWLER_POST_LIMIT",
        whole(1, 1_000),
        100,
        "Number of posts to request first from each listing of a community. The community's own `limit` and its tier "
        "override it.",
    )
    crawler_sort: str = setting(
        "CRAWLER_SORT",
        choice("top", "new", "hot", "rising", "controversial"),
        "top",
        "The listing of a community to read besides its newest posts; new: none. The community's own `sort` "
        "and its tier override it.",
    )
    crawler_time_filter: str = setting(
        "CRAWLER_TIME_FILTER",
        choice("hour", "day", "week", "month", "year", "all"),
        "month",
        "The period of that listing, if it is top or controversial. The community's own `time_filter` and its "
        "tier override it.",
    )
    is_scraper_enabled: bool = setting(
        "SCRAPER_ENABLED",
        flag,
        True,
        "Whether X users are collected on schedule. `collect --source` and tasks work in either case.",
    )
    scraper_interval: int = setting(
        "SCRAPER_INTERVAL",
        minutes,
        _SCRAPER_INTERVAL,
        "Minutes between two collections of an X user; FETCH_INTERVAL_TWITTER_FEED overrides it.",
    )
    scraper_usernames: tuple[str, ...] = setting(
        "SCRAPER_USERNAMES",
        user_names,
        (),
        "X users that are added as sources when collecting starts; existing sources stay unchanged.",
    )
    scraper_limit: int = setting(
        "SCRAPER_LIMIT",
        whole(1, 1_000),
        100,
        "Number of posts to read in the first collection of an X user. The source's own `limit` overrides it.",
    )
    intervals: Mapping[str, int] = members(
        "FETCH_INTERVAL_<KIND>", minutes, "Minutes between two collections of a source of this kind.", is_live=True
    )
    jobs: Mapping[str, int | None] = members(
        "CATCHMENT_JOB_<JOB>", moving, "Switches a job off, or sets its interval in minutes.", is_live=True
    )
    canaries: Mapping[str, int] = members(
        "CATCHMENT_CANARY_<PLATFORM>",
        whole(1, 2**31),
        "The ID of a source that is known to be busy: if it is silent, the platform is down or blocks us. If "
        "not set, the busiest source, for platforms with hosts of their own.",
    )
    monitor_api_threshold: int = setting(
        "MONITOR_API_THRESHOLD",
        whole(1, 1_000_000),
        55,
        "Requests to a platform per minute above which an alert opens. Meant for a budget of 60 per minute, "
        "like Reddit's; it is scaled for larger budgets.",
    )
    is_metrics_open: bool = setting(
        "CATCHMENT_OPEN_METRICS",
        flag,
        False,
        "Whether `/metrics` can be read without an API key.",
    )
    monitor_hit_threshold: float = setting(
        "MONITOR_CACHE_HIT_THRESHOLD",
        number(0, 1),
        0.7,
        "Cache hit rate below which an alert opens.",
    )
    monitor_stale_minutes: int = setting(
        "MONITOR_CRAWL_STALE_MINUTES",
        whole(1, 525_600),
        90,
        "Minutes by which a successful collection may be overdue before an alert opens and /health reports a problem.",
    )
    failures_before_probation: int = setting(
        "CATCHMENT_FAILURES_BEFORE_PROBATION",
        whole(1, 1000),
        5,
        "Number of failures in a row after which a source is put on probation.",
    )
    tier1: tuple[float, float, str, str, int] = setting(
        "CATCHMENT_TIER1",
        tier,
        (20.0, 2.0, "new", "week", 50),
        "Tier 1 (active communities), as five values: the minimum average of valid posts per collection, hours "
        "between collections, the listing to read (besides `new`), its period, the number of posts.",
    )
    tier2: tuple[float, float, str, str, int] = setting(
        "CATCHMENT_TIER2",
        tier,
        (10.0, 6.0, "top", "week", 80),
        "Tier 2 (communities of medium activity), in the format of CATCHMENT_TIER1.",
    )
    tier3: tuple[float, float, str, str, int] = setting(
        "CATCHMENT_TIER3",
        tier,
        (0.0, 24.0, "top", "month", 100),
        "Tier 3 (all other communities), in the format of CATCHMENT_TIER1.",
    )
    tier_crawls: int = setting(
        "CATCHMENT_TIER_CRAWLS",
        whole(1, 100),
        10,
        "Number of collections over which the average for the tier is taken.",
    )
    tier_least_crawls: int = setting(
        "CATCHMENT_TIER_LEAST_CRAWLS", whole(1, 100), 3, "With fewer collections than this, a community keeps its tier."
    )
    low_quality_below: float = setting(
        "CATCHMENT_LOW_QUALITY_BELOW",
        number(0, 1_000_000),
        50.0,
        "The job `crawl-low-quality` collects communities whose average of valid posts is lower than this.",
    )
    low_quality_hours: float = setting(
        "CATCHMENT_LOW_QUALITY_HOURS",
        number(0, 8_760),
        8.0,
        "The job `crawl-low-quality` collects communities that have not been collected for this many hours.",
    )
    low_quality_sources: int = setting(
        "CATCHMENT_LOW_QUALITY_SOURCES",
        whole(1, 100_000),
        50,
        "Maximum number of communities that the job `crawl-low-quality` collects; those not collected for longest come "
        "first.",
    )
    stop_seconds: float = setting(
        "CATCHMENT_STOP_SECONDS",
        number(0, 3600),
        30.0,
        "Seconds for which work in progress, transfers included, may continue after a stop was requested.",
    )

    base_urls: Mapping[str, str] = members(
        "CATCHMENT_<PLATFORM>_BASE_URL",
        web,
        "Base URL of a platform, instead of its own hosts.",
    )
    rate_limits: Mapping[str, int] = members(
        "<PLATFORM>_RATE_LIMIT",
        whole(1, 1_000_000),
        "Maximum number of requests to a platform per window (REDDIT_RATE_LIMIT: 60 per credential by "
        "default). One budget for the whole deployment.",
    )
    rate_windows: Mapping[str, float] = members(
        "<PLATFORM>_RATE_LIMIT_WINDOW_SECONDS",
        number(1, 86_400),
        "Length of that window in seconds (REDDIT_RATE_LIMIT_WINDOW_SECONDS: 60).",
    )
    platform_concurrency: Mapping[str, int] = members(
        "<PLATFORM>_MAX_CONCURRENCY",
        whole(1, 256),
        "Number of concurrent requests to a platform, per process and credential (REDDIT_MAX_CONCURRENCY: 10).",
    )
    platform_timeouts: Mapping[str, float] = members(
        "<PLATFORM>_REQUEST_TIMEOUT_SECONDS",
        number(0.1, 3600),
        "Timeout for a platform in seconds; if not set, CATCHMENT_TIMEOUT_SECONDS.",
    )
    user_agents: Mapping[str, str] = members(
        "<PLATFORM>_USER_AGENT",
        line,
        "User agent for one platform; if not set, CATCHMENT_USER_AGENT. Reddit wants to know who sends "
        "requests: REDDIT_USER_AGENT=linux:my-archive:1.0 (by /u/NAME); if neither is set, a default in "
        "this format without a name is sent.",
    )
    prices: Mapping[str, Mapping[str, int]] = members(
        "CATCHMENT_<PLATFORM>_PRICES",
        prices,
        "Prices of a paid service in US dollars: per item, per call, per profile, per call that reads a list (instead "
        "of its items), and the minimum per call. Prices that are not given stay as the platform declares them: see "
        "docs/operator.md.",
    )
    daily_caps: Mapping[str, int] = members(
        "CATCHMENT_<PLATFORM>_DAILY_CAP",
        dollars,
        "Maximum cost of a paid service per day (UTC) in US dollars, for all processes together. A call that could "
        "exceed it is not made; sources wait for the next day, and missing items are recorded as a gap.",
    )
    monthly_caps: Mapping[str, int] = members(
        "CATCHMENT_<PLATFORM>_MONTHLY_CAP",
        dollars,
        "Maximum cost of a paid service per month (UTC) in US dollars.",
    )
    is_private_allowed: bool = setting(
        "CATCHMENT_ALLOW_PRIVATE_NETWORKS",
        flag,
        False,
        "Whether sources may be on this machine or in private networks. Link-local and cloud metadata addresses are "
        "never allowed.",
    )
    user_agent: str = setting(
        "CATCHMENT_USER_AGENT",
        line,
        f"catchment/{__version__}",
        "User agent. Please add an address where you can be reached.",
        default_words="catchment/ and the version",
    )
    timeout_seconds: float = setting(
        "CATCHMENT_TIMEOUT_SECONDS",
        number(0.1, 3600),
        30.0,
        "Timeout in seconds. A transfer is aborted earlier if it is slower than 30 bytes per second for 20 seconds.",
    )
    max_bytes: int = setting("CATCHMENT_MAX_BYTES", size, 20_000_000, "Maximum size of an answer after decompression.")
    retry_waits: tuple[float, ...] = setting(
        "CATCHMENT_RETRY_WAITS", waits, (1.0, 2.0, 4.0), "Seconds to wait before each retry of a request."
    )
    proxy: str | None = setting(
        "CATCHMENT_PROXY",
        address("http", "https", "socks5", "socks5h"),
        None,
        "Proxy for all requests to platforms. Names are resolved on this machine; the proxy must allow "
        "CONNECT to the resolved addresses on ports 80 and 443.",
    )
    host_concurrency: int = setting(
        "CATCHMENT_HOST_CONCURRENCY",
        whole(1, 256),
        4,
        "Number of concurrent requests to one host, for platforms without a budget.",
    )
    host_requests_per_second: float = setting(
        "CATCHMENT_HOST_REQUESTS_PER_SECOND",
        number(0, 10_000),
        5.0,
        "Requests per second to one host, for platforms without a budget; 0: no limit.",
    )

    text_limit: int = setting(
        "CATCHMENT_TEXT_LIMIT",
        whole(1_000, 100_000_000),
        1_000_000,
        "Maximum number of characters stored of an item's text; a cut text is marked.",
    )
    raw_answers_days: int = setting(
        "CATCHMENT_RAW_ANSWERS_DAYS",
        whole(0, 36_500),
        14,
        "Days for which raw answers are stored, so that a newer parser can read them again; 0: none are stored.",
    )
    retention_days: Mapping[str, int] = members(
        "CATCHMENT_RETENTION_DAYS_<KIND>",
        days,
        "Days for which items of sources of this kind are kept, counted from when they were posted; forever "
        "if not set. Items that a source still shows are kept.",
    )
    hot_hours: int = setting(
        "HOT_CACHE_TTL_HOURS",
        whole(1, 8_760),
        24,
        "Hours for which the newest items of a community stay in the cache.",
    )
    runs_days: int = setting(
        "CATCHMENT_RUNS_DAYS",
        whole(1, 36_500),
        90,
        "Days for which records of runs, closed alerts and the history of credentials are kept.",
    )
    attempts_days: int = setting(
        "CATCHMENT_ATTEMPTS_DAYS", whole(1, 36_500), 7, "Days for which request counts are kept."
    )

    metrics_days: int = setting(
        "CATCHMENT_METRICS_DAYS",
        whole(1, 36_500),
        730,
        "Days for which daily metrics are kept; hourly metrics are kept as long as records of runs.",
    )
    events_days: int = setting(
        "CATCHMENT_EVENTS_DAYS",
        whole(1, 3_650),
        3,
        "Days for which delivery of an event is retried; then it is dropped and counted.",
    )
    is_ready_told: bool = setting(
        "AUTO_SUMMARIZATION_ENABLED",
        flag,
        False,
        "Whether a collection with new items sends an event (`items.ready`), for summaries and other processing.",
    )

    task_minutes: int = setting(
        "CATCHMENT_TASK_MINUTES",
        whole(1, 10_080),
        60,
        "Time limit for a task in minutes, counted from when it starts.",
    )

    log_format: str = setting(
        "CATCHMENT_LOG_FORMAT",
        choice("auto", "people", "json"),
        "auto",
        "Format of log lines; auto: readable on a terminal, JSON elsewhere.",
    )
    log_level: str = setting(
        "CATCHMENT_LOG_LEVEL",
        choice("debug", "info", "warning", "error"),
        "info",
        "Lowest level that is logged.",
    )
    clock: str | None = setting(
        "CATCHMENT_CLOCK",
        line,
        None,
        "For tests and the demo only: <start>,<rate>, a simulated clock: start time and speed factor.",
    )

    declared: Mapping[str, str] = field(default_factory=dict)
    """Values given for settings that platforms declare: they become credentials and are never shown."""
    warnings: tuple[str, ...] = ()
    """Problems with the given settings that do not prevent a start."""
    origins: Mapping[str, str] = field(default_factory=dict)
    """Where each given setting comes from, by its name."""
    files: tuple[Path, ...] = ()
    """The files that settings are read from, whether they exist or not."""
    read_again: Callable[[], Settings] | None = field(default=None, compare=False)
    """Reads the settings again, with the same environment; None: they were created in code."""

    def __post_init__(self) -> None:
        if self.scraper_interval != _SCRAPER_INTERVAL:
            object.__setattr__(self, "intervals", {"twitter_feed": self.scraper_interval, **self.intervals})
        if self.database_url is None:
            object.__setattr__(self, "database_url", f"sqlite:///{self.home / 'catchment.db'}")

    @property
    def results_url(self) -> str | None:
        """Where results of tasks are stored; None without a broker."""
        if self.result_backend is not None or self.broker_url is None:
            return self.result_backend
        return urlsplit(self.broker_url)._replace(path="/2").geturl()

    def with_live_values_of(self, other: Settings) -> Settings:
        """These settings, and those that may change while a process runs as `other` has them."""
        return replace(self, **{name: getattr(other, name) for name, setting in DEFINED.items() if setting.is_live})

    def contradictions(self) -> list[str]:
        """Problems with values that are each allowed, but make no sense together."""
        problems = []
        if not self.tier1[0] > self.tier2[0] > self.tier3[0]:
            shown = ", ".join(f"{row[0]:g}" for row in (self.tier1, self.tier2, self.tier3))
            problems.append(f"CATCHMENT_TIER1 to CATCHMENT_TIER3: the averages they begin with ({shown}) must fall")
        if self.tier_least_crawls > self.tier_crawls:
            problems.append(
                "CATCHMENT_TIER_LEAST_CRAWLS is more than CATCHMENT_TIER_CRAWLS: no community would get a tier"
            )
        return problems

    def differing(self) -> list[tuple[str, str, str]]:
        """Name, value and default of every setting that is not at its default; a secret's value is shown as "set"."""
        ours = [row for attribute, setting in DEFINED.items() for row in self._differing(attribute, setting)]
        return ours + [(name, "set", "") for name in self.declared]

    def _differing(self, attribute: str, setting: Setting) -> Iterator[tuple[str, str, str]]:
        value = getattr(self, attribute)
        if setting.family:
            for member, member_value in value.items():
                yield setting.variable(member), setting.show(member_value), ""
        elif self._is_moved(setting, value):
            yield setting.name, setting.show(value), setting.shown_default()

    def _is_moved(self, setting: Setting, value: Any) -> bool:
        # A default that is derived from other values cannot be compared; but whether a value was given is known.
        return setting.name in self.origins if setting.default_words else value != setting.default

    def __repr__(self) -> str:
        changed = ", ".join(f"{name}={value}" for name, value, _ in self.differing())
        return f"Settings({self.home}{'; ' if changed else ''}{changed})"


DEFINED: dict[str, Setting] = {f.name: f.metadata["setting"] for f in fields(Settings) if "setting" in f.metadata}
"""The definitions, by the attribute that each one sets."""
