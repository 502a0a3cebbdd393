"""The settings, each defined once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from catchment import __version__
from catchment.settings.forms import (
    Form,
    address,
    choice,
    database,
    days,
    flag,
    folder,
    line,
    minutes,
    moving,
    number,
    size,
    tier,
    waits,
    web,
    whole,
)

T = TypeVar("T")


@dataclass(frozen=True)
class Setting:
    """The definition of one setting, or of a family of them: `FETCH_INTERVAL_<KIND>`."""

    name: str
    form: Form[Any]
    what: str
    default: Any = None
    default_words: str = ""
    """Where the default is not one value: what it is."""
    older: tuple[str, ...] = ()
    """Names that were used before, and still work where the name itself is not given."""
    is_secret: bool = False

    @property
    def family(self) -> str | None:
        """What the members of this family are: kind, platform or job."""
        match = re.search("<(.+)>", self.name)
        return match[1].lower() if match else None

    def member(self, name: str) -> str | None:
        """Which member of this family a variable is about."""
        before, _, after = re.sub("<.+>", "\0", self.name).partition("\0")
        match = re.fullmatch(f"{before}(.+){after}", name) if self.family else None
        if match is None:
            return None
        # Jobs are named with hyphens, which no variable can have.
        return match[1].lower().replace("_", "-") if self.family == "job" else match[1].lower()

    @property
    def is_anybodys(self) -> bool:
        """A family whose names begin with the member's: others may have such names for purposes of their own."""
        return self.name.startswith("<")

    def variable(self, member: str) -> str:
        """The variable that is about one member of this family."""
        return re.sub("<.+>", member.upper().replace("-", "_"), self.name)

    def owns(self, name: str) -> bool:
        return name in (self.name, *self.older) or self.member(name) is not None

    @property
    def may_hold_secret(self) -> bool:
        """It is a secret, or an address that may have a password in it."""
        return self.is_secret or self.name in ("CATCHMENT_DATABASE_URL", "CATCHMENT_REDIS_URL", "CATCHMENT_PROXY")

    def show(self, value: Any) -> str:
        if value is None and not self.family:
            return ""
        return "set" if self.is_secret else without_password(self.form.show(value))

    def shown_default(self) -> str:
        return self.default_words or self.show(self.default)


def without_password(text: str) -> str:
    """An address as it may be shown. Greedy: a password may hold an @ or a slash."""
    return re.sub(r"(password=)[^&\s]+", r"\1***", re.sub(r"//\S*@", "//***@", text))


def setting(name: str, form: Form[T], default: T | None, what: str, **more: Any) -> Any:
    return field(default=default, metadata={"setting": Setting(name, form, what, default, **more)})


def members(name: str, form: Form[Any], what: str) -> Any:
    return field(default_factory=dict, metadata={"setting": Setting(name, form, what)})


@dataclass(frozen=True, repr=False)
class Settings:
    """All settings of one process. Built by `read_settings` at the door; by hand in tests."""

    home: Path = field(
        metadata={
            "setting": Setting(
                "CATCHMENT_HOME",
                folder,
                "The folder for everything that is kept.",
                default_words="$XDG_DATA_HOME/catchment, else ~/.local/share/catchment; "
                "on macOS ~/Library/Application Support/catchment",
            )
        }
    )
    database_url: str = setting(
        "CATCHMENT_DATABASE_URL",
        database,
        None,
        "The database. SQLite needs nothing else; PostgreSQL serves many processes and machines.",
        default_words="the file catchment.db in CATCHMENT_HOME",
    )
    redis_url: str | None = setting(
        "CATCHMENT_REDIS_URL",
        address("redis", "rediss"),
        None,
        "Redis, where there is one: what is hot, and the budgets that all processes share, live there; while it is "
        "away, in the database. Needs the extra `redis`.",
    )
    host: str = setting("CATCHMENT_HOST", line, "127.0.0.1", "The address that `serve` listens on.")
    port: int = setting("CATCHMENT_PORT", whole(0, 65535), 8700, "The port that `serve` listens on; 0: any free one.")
    api_key: str | None = setting(
        "CATCHMENT_API_KEY", line, None, "A key for the API, given from outside.", is_secret=True
    )
    master_key: str | None = setting(
        "COOKIE_MASTER_KEY",
        line,
        None,
        "What credentials are encrypted with; `catchment credentials new-key` makes one. Several, separated by "
        "commas, while keys are changed: the first one encrypts, all of them decrypt.",
        is_secret=True,
    )

    cooling_minutes: int = setting(
        "XHS_COOLING_DURATION_MINUTES",
        minutes,
        30,
        "Minutes for which a credential of any platform rests after several errors in a row.",
    )
    most_errors_in_a_row: int = setting(
        "XHS_MAX_CONSECUTIVE_ERRORS",
        whole(1, 1000),
        3,
        "After how many errors in a row a credential of any platform rests. Only those count that are its own fault.",
    )
    most_errors_in_all: int = setting(
        "XHS_MAX_TOTAL_ERRORS",
        whole(1, 100_000),
        10,
        "After how many errors in all a credential of any platform is taken to be invalid.",
    )
    clean_days: int = setting(
        "CATCHMENT_CREDENTIAL_CLEAN_DAYS",
        days,
        7,
        "After how many days without an error a credential's errors in all are counted from 0 again.",
    )
    rest_hours: int = setting(
        "CATCHMENT_CREDENTIAL_REST_HOURS",
        whole(0, 8_760),
        24,
        "Hours after which a credential that was banned or found invalid is tried again, with one request; twice as "
        "many after each further fall. 0: not before a person resumes it.",
    )
    expiry_days: int = setting(
        "CATCHMENT_CREDENTIAL_EXPIRY_DAYS",
        whole(0, 365),
        7,
        "How many days before its end a credential that expires is warned of.",
    )

    tick_seconds: float = setting(
        "COLLECTOR_TICK",
        number(0.1, 86_400),
        60.0,
        "Seconds from one look for due sources to the next.",
        older=("COLLECTOR_INTERVAL",),
    )
    concurrency: int = setting("COLLECTOR_CONCURRENCY", whole(1, 256), 5, "How many sources are collected at once.")
    crawler_batch_size: int = setting(
        "CRAWLER_BATCH_SIZE",
        whole(1, 10_000),
        12,
        "How many communities of a kind are claimed at a time when they are due; the next batch when all of one are "
        "under way. What is asked for by name (`collect --source`, `--kind`, `--all`) is claimed as hands come free.",
    )
    crawler_concurrency: int = setting(
        "CRAWLER_MAX_CONCURRENCY",
        whole(1, 256),
        2,
        "How many communities of a kind are collected at once, within COLLECTOR_CONCURRENCY; other sources go on.",
    )
    crawler_post_limit: int = setting(
        "CRAWLER_POST_LIMIT",
        whole(1, 1_000),
        100,
        "How many posts of a community are asked for at first, and of the listing that is read beside the newest. Its "
        "own setting `limit`, and its tier's, go before it.",
    )
    crawler_sort: str = setting(
        "CRAWLER_SORT",
        choice("top", "new", "hot", "rising", "controversial"),
        "top",
        "The listing of a community that is read beside its newest posts; new: none. Its own setting `sort`, and its "
        "tier's, go before it.",
    )
    crawler_time_filter: str = setting(
        "CRAWLER_TIME_FILTER",
        choice("hour", "day", "week", "month", "year", "all"),
        "month",
        "How far back that listing looks, if it is top or controversial. A community's own setting `time_filter`, and "
        "its tier's, go before it.",
    )
    intervals: Mapping[str, int] = members(
        "FETCH_INTERVAL_<KIND>", minutes, "Minutes from one visit of a source of this kind to the next."
    )
    jobs: Mapping[str, int | None] = members(
        "CATCHMENT_JOB_<JOB>", moving, "Switches a job off, or sets every how many minutes it runs."
    )
    canaries: Mapping[str, int] = members(
        "CATCHMENT_CANARY_<PLATFORM>",
        whole(1, 2**31),
        "The number of a source that is known to be busy: its silence tells that the platform is down or blocks us. "
        "Without one: the busiest, where all sources of a platform lie on its own hosts.",
    )
    monitor_api_threshold: int = setting(
        "MONITOR_API_THRESHOLD",
        whole(1, 1_000_000),
        55,
        "More calls to a platform in one minute than that are an alert. Meant for a budget of 60 a minute, as Reddit's "
        "is; where a platform may be asked more often, it grows along.",
    )
    is_metrics_open: bool = setting(
        "CATCHMENT_OPEN_METRICS",
        flag,
        False,
        "Whether `/metrics` answers without a key, for a Prometheus that sends none.",
    )
    monitor_hit_threshold: float = setting(
        "MONITOR_CACHE_HIT_THRESHOLD",
        number(0, 1),
        0.7,
        "A smaller share of reads that the hot store could answer is an alert.",
    )
    monitor_stale_minutes: int = setting(
        "MONITOR_CRAWL_STALE_MINUTES",
        whole(1, 525_600),
        90,
        "Minutes without a visit that went well, although something is due, after which there is an alert.",
    )
    failures_before_probation: int = setting(
        "CATCHMENT_FAILURES_BEFORE_PROBATION",
        whole(1, 1000),
        5,
        "After how many failures in a row a source is put on probation.",
    )
    tier1: tuple[float, float, str, str, int] = setting(
        "CATCHMENT_TIER1",
        tier,
        (20.0, 2.0, "new", "week", 50),
        "Lively communities, as a row: from which average of valid posts a visit on, hours from one visit to the next, "
        "the listing that is read (beside `new`, where it is another one), how far back that looks, how many posts.",
    )
    tier2: tuple[float, float, str, str, int] = setting(
        "CATCHMENT_TIER2",
        tier,
        (10.0, 6.0, "top", "week", 80),
        "Communities in between, as a row like CATCHMENT_TIER1.",
    )
    tier3: tuple[float, float, str, str, int] = setting(
        "CATCHMENT_TIER3",
        tier,
        (0.0, 24.0, "top", "month", 100),
        "Quiet communities, as a row like CATCHMENT_TIER1; nobody is too quiet for it.",
    )
    tier_crawls: int = setting(
        "CATCHMENT_TIER_CRAWLS", whole(1, 100), 10, "Over how many visits the average is taken that tells the tier."
    )
    tier_least_crawls: int = setting(
        "CATCHMENT_TIER_LEAST_CRAWLS", whole(1, 100), 3, "With fewer visits a community stays in the tier it is in."
    )
    low_quality_below: float = setting(
        "CATCHMENT_LOW_QUALITY_BELOW",
        number(0, 1_000_000),
        50.0,
        "The low-quality round (`crawl-low-quality`) visits communities with a lower average of valid posts.",
    )
    low_quality_hours: float = setting(
        "CATCHMENT_LOW_QUALITY_HOURS",
        number(0, 8_760),
        8.0,
        "The low-quality round visits what nobody has for so many hours.",
    )
    low_quality_sources: int = setting(
        "CATCHMENT_LOW_QUALITY_SOURCES", whole(1, 100_000), 50, "How many it visits at most, the oldest visit first."
    )
    stop_seconds: float = setting(
        "CATCHMENT_STOP_SECONDS",
        number(0, 3600),
        30.0,
        "How long work under way may go on after a stop was asked for, in seconds.",
    )

    base_urls: Mapping[str, str] = members(
        "CATCHMENT_<PLATFORM>_BASE_URL",
        web,
        "Where a platform is asked, instead of its own hosts.",
    )
    rate_limits: Mapping[str, int] = members(
        "<PLATFORM>_RATE_LIMIT",
        whole(1, 1_000_000),
        "How many requests a platform is asked in its window at most (REDDIT_RATE_LIMIT: 60 for each key, unless it is "
        "given). One budget for the whole deployment.",
    )
    rate_windows: Mapping[str, float] = members(
        "<PLATFORM>_RATE_LIMIT_WINDOW_SECONDS",
        number(1, 86_400),
        "How long that window is, in seconds (REDDIT_RATE_LIMIT_WINDOW_SECONDS: 60).",
    )
    platform_concurrency: Mapping[str, int] = members(
        "<PLATFORM>_MAX_CONCURRENCY",
        whole(1, 256),
        "How many requests to a platform at once, for each process and key (REDDIT_MAX_CONCURRENCY: 10).",
    )
    platform_timeouts: Mapping[str, float] = members(
        "<PLATFORM>_REQUEST_TIMEOUT_SECONDS",
        number(0.1, 3600),
        "How long an answer of a platform may take, in seconds; else CATCHMENT_TIMEOUT_SECONDS.",
    )
    user_agents: Mapping[str, str] = members(
        "<PLATFORM>_USER_AGENT",
        line,
        "What we call ourselves to one platform; else CATCHMENT_USER_AGENT. Reddit wants to know who asks: "
        "REDDIT_USER_AGENT=linux:my-archive:1.0 (by /u/NAME); without either it is told in this form that no name is "
        "given.",
    )
    is_private_allowed: bool = setting(
        "CATCHMENT_ALLOW_PRIVATE_NETWORKS",
        flag,
        False,
        "Whether sources may lie on this machine and in private networks. Link-local and metadata addresses never may.",
    )
    user_agent: str = setting(
        "CATCHMENT_USER_AGENT",
        line,
        f"catchment/{__version__}",
        "What we call ourselves when asking. Good manners: add an address where you can be reached.",
        default_words="catchment/ and the version",
    )
    timeout_seconds: float = setting(
        "CATCHMENT_TIMEOUT_SECONDS", number(0.1, 3600), 30.0, "How long an answer may take, in seconds."
    )
    max_bytes: int = setting("CATCHMENT_MAX_BYTES", size, 20_000_000, "How large an answer may be, once unpacked.")
    retry_waits: tuple[float, ...] = setting(
        "CATCHMENT_RETRY_WAITS", waits, (1.0, 2.0, 4.0), "Seconds before each further attempt at a request."
    )
    proxy: str | None = setting(
        "CATCHMENT_PROXY",
        address("http", "https", "socks5", "socks5h"),
        None,
        "A proxy for all requests to platforms.",
    )
    host_concurrency: int = setting(
        "CATCHMENT_HOST_CONCURRENCY",
        whole(1, 256),
        4,
        "How many requests to one host at once, where the platform declares no budget.",
    )
    host_requests_per_second: float = setting(
        "CATCHMENT_HOST_REQUESTS_PER_SECOND",
        number(0, 10_000),
        5.0,
        "How many requests a second to one host, where the platform declares no budget; 0: no limit.",
    )

    text_limit: int = setting(
        "CATCHMENT_TEXT_LIMIT",
        whole(1_000, 100_000_000),
        1_000_000,
        "Characters of an item's text that are kept; a cut is marked.",
    )
    raw_answers_days: int = setting(
        "CATCHMENT_RAW_ANSWERS_DAYS",
        whole(0, 36_500),
        14,
        "Days for which raw answers are kept, to be read again by a better reader; 0: none are kept.",
    )
    retention_days: Mapping[str, int] = members(
        "CATCHMENT_RETENTION_DAYS_<KIND>",
        days,
        "Days for which items of sources of this kind are kept, by when they were posted; for ever unless it is "
        "given. What a source still shows stays.",
    )
    hot_hours: int = setting(
        "HOT_CACHE_TTL_HOURS",
        whole(1, 8_760),
        24,
        "Hours for which the newest of a community, and what a warm-up has cached of it, are kept hot.",
    )
    runs_days: int = setting(
        "CATCHMENT_RUNS_DAYS",
        whole(1, 36_500),
        90,
        "Days for which records of runs, alerts that are over, and what became of credentials are kept.",
    )
    attempts_days: int = setting(
        "CATCHMENT_ATTEMPTS_DAYS", whole(1, 36_500), 7, "Days for which counts of attempts are kept."
    )

    metrics_days: int = setting(
        "CATCHMENT_METRICS_DAYS",
        whole(1, 36_500),
        730,
        "Days for which the metrics of each day are kept; those of each hour go with the records of runs.",
    )
    events_days: int = setting(
        "CATCHMENT_EVENTS_DAYS",
        whole(1, 3_650),
        3,
        "Days for which an event is offered to a listener that does not take it; then it is given up, and counted.",
    )
    is_ready_told: bool = setting(
        "AUTO_SUMMARIZATION_ENABLED",
        flag,
        False,
        "Whether the end of a visit that brought something is told as an event (`items.ready`), for summaries and "
        "whatever else comes next.",
    )

    log_format: str = setting(
        "CATCHMENT_LOG_FORMAT",
        choice("auto", "people", "json"),
        "auto",
        "How log lines look; auto: for people on a terminal, JSON elsewhere.",
    )
    log_level: str = setting(
        "CATCHMENT_LOG_LEVEL",
        choice("debug", "info", "warning", "error"),
        "info",
        "From which severity on events are logged.",
    )
    clock: str | None = setting(
        "CATCHMENT_CLOCK",
        line,
        None,
        "For tests and the demo only: <start>,<rate>, a clock that starts elsewhere and runs faster.",
    )

    declared: Mapping[str, str] = field(default_factory=dict)
    """What was given of the settings that platforms declare: they make credentials, and are never shown."""
    warnings: tuple[str, ...] = ()
    """What is odd about the given settings, but does not stop us."""
    origins: Mapping[str, str] = field(default_factory=dict)
    """Where each setting that was given comes from, by its name."""

    def __post_init__(self) -> None:
        if self.database_url is None:
            object.__setattr__(self, "database_url", f"sqlite:///{self.home / 'catchment.db'}")

    def contradictions(self) -> list[str]:
        """What is allowed each by itself, and makes no sense together."""
        found = []
        if not self.tier1[0] > self.tier2[0] > self.tier3[0]:
            shown = ", ".join(f"{row[0]:g}" for row in (self.tier1, self.tier2, self.tier3))
            found.append(f"CATCHMENT_TIER1 to CATCHMENT_TIER3: the averages they begin with ({shown}) must fall")
        if self.tier_least_crawls > self.tier_crawls:
            found.append(
                "CATCHMENT_TIER_LEAST_CRAWLS is more than CATCHMENT_TIER_CRAWLS: no community would get a tier"
            )
        return found

    def differing(self) -> list[tuple[str, str, str]]:
        """Name, value and default of every setting that is not at its default; a secret's value is "set"."""
        ours = [row for attribute, setting in DEFINED.items() for row in self._differing(attribute, setting)]
        return ours + [(name, "set", "") for name in self.declared]

    def _differing(self, attribute: str, setting: Setting) -> Iterator[tuple[str, str, str]]:
        value = getattr(self, attribute)
        if setting.family:
            for member, one in value.items():
                yield setting.variable(member), setting.show(one), ""
        elif self._is_moved(setting, value):
            yield setting.name, setting.show(value), setting.shown_default()

    def _is_moved(self, setting: Setting, value: Any) -> bool:
        # A default that is put together from other things cannot be compared with; that a value was given, is known.
        return setting.name in self.origins if setting.default_words else value != setting.default

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value}" for name, value, _ in self.differing())
        return f"Settings({self.home}{'; ' if given else ''}{given})"


DEFINED: dict[str, Setting] = {f.name: f.metadata["setting"] for f in fields(Settings) if "setting" in f.metadata}
"""The definitions, by the attribute that each one fills."""
