"""Settings: where they come from, what is refused, what is warned of, and that no secret shows."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catchment.errors import BadSetting
from catchment.logs import redact
from catchment.settings import (
    DEFINED,
    Settings,
    default_home,
    read_settings,
)
from catchment.settings.table import Setting
from tools.docs import PAGES, REPOSITORY

KINDS = ("rss", "github_trending")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def read(folder: Path, **environ: str) -> Settings:
    return read_settings({"HOME": str(folder), **environ}, folder, kinds=KINDS)


def refused(folder: Path, **environ: str) -> str:
    with pytest.raises(BadSetting) as caught:
        read(folder, **environ)
    return str(caught.value)


# ── where values come from ─────────────────────────────────────────────────────────────────────────────────────────


def test_without_anything_given_every_setting_has_its_default(folder: Path) -> None:
    settings = read(folder)
    assert (settings.host, settings.port, settings.tick_seconds, settings.concurrency) == ("127.0.0.1", 8700, 60, 5)
    assert (settings.max_bytes, settings.retry_waits, settings.timeout_seconds) == (20_000_000, (1, 2, 4), 30)
    assert (settings.raw_answers_days, settings.runs_days, settings.attempts_days) == (14, 90, 7)
    assert (settings.intervals, settings.base_urls, settings.jobs) == ({}, {}, {})
    assert (settings.api_key, settings.master_key, settings.redis_url, settings.proxy) == (None, None, None, None)
    assert settings.differing() == []
    assert settings.warnings == ()


def test_the_environment_goes_before_dotenv_and_dotenv_before_toml(folder: Path) -> None:
    (folder / "catchment.toml").write_text("catchment_port = 1\n[catchment]\nhost = 'toml'\nlog_level = 'error'\n")
    (folder / ".env").write_text("CATCHMENT_PORT=2\nCATCHMENT_HOST=dotenv\n")
    settings = read(folder, CATCHMENT_PORT="3")
    assert (settings.port, settings.host, settings.log_level) == (3, "dotenv", "error")
    assert settings.origins == {
        "CATCHMENT_PORT": "environment",
        "CATCHMENT_HOST": ".env",
        "CATCHMENT_LOG_LEVEL": "catchment.toml",
    }


def test_the_toml_file_in_the_home_is_read_after_the_one_in_the_working_folder(folder: Path) -> None:
    home = folder / "home"
    home.mkdir()
    (home / "catchment.toml").write_text("CATCHMENT_PORT = 1\nCATCHMENT_HOST = 'home'\nCATCHMENT_HOME = '/elsewhere'\n")
    (folder / "catchment.toml").write_text("CATCHMENT_PORT = 2\nCATCHMENT_HOME = 'home'\n")
    settings = read(folder)
    assert (settings.port, settings.host, settings.home) == (2, "home", home)


def test_an_empty_value_counts_as_none(folder: Path) -> None:
    (folder / ".env").write_text("CATCHMENT_PORT=9\n")
    assert read(folder, CATCHMENT_PORT="", CATCHMENT_API_KEY=" ").port == 9
    assert read(folder, CATCHMENT_API_KEY=" ").api_key is None


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("CATCHMENT_USER_AGENT=plain", "plain"),
        ("export CATCHMENT_USER_AGENT=plain", "plain"),
        ("CATCHMENT_USER_AGENT = spaced out  ", "spaced out"),
        ("CATCHMENT_USER_AGENT=word # and a comment", "word"),
        ("CATCHMENT_USER_AGENT=with#inside", "with#inside"),
        ("CATCHMENT_USER_AGENT='a # b' # comment", "a # b"),
        (r"""CATCHMENT_USER_AGENT="say \"hi\" \\ there" """, r'say "hi" \ there'),
        (r"CATCHMENT_USER_AGENT='no \n escapes'", r"no \n escapes"),
        ("CATCHMENT_USER_AGENT=a=b", "a=b"),
        ("catchment_user_agent=small letters", "small letters"),
        ("CATCHMENT_USER_AGENT=蓄水池", "蓄水池"),
    ],
)
def test_a_line_of_dotenv_is_understood_as_people_write_it(folder: Path, line: str, value: str) -> None:
    (folder / ".env").write_text(f"\ufeff# first a comment\n\n{line}\n", encoding="utf-8")
    settings = read(folder)
    assert (settings.user_agent, settings.warnings) == (value, ())


def test_a_broken_line_of_dotenv_is_warned_of_by_number_and_never_shown(folder: Path) -> None:
    (folder / ".env").write_text("OTHER_TOOL=1\nsesame open\nCATCHMENT_API_KEY='sesame\n")
    assert read(folder).warnings == (
        ".env, line 2: not of the form NAME=VALUE; left out",
        ".env, line 3: not of the form NAME=VALUE; left out",
    )


def test_toml_tables_are_joined_to_their_keys(folder: Path) -> None:
    (folder / "catchment.toml").write_text(
        "[catchment]\nallow_private_networks = true\nretry_waits = [1, 2.5]\n"
        "[catchment.reddit]\nbase_url = 'http://127.0.0.1:1/'\n[catchment.job]\ncollect-due = 'off'\n"
        "[fetch_interval]\nrss = 30\n[collector]\ntick = 2.5\n"
    )
    settings = read(folder)
    assert settings.is_private_allowed
    assert settings.retry_waits == (1, 2.5)
    assert settings.base_urls == {"reddit": "http://127.0.0.1:1"}
    assert settings.jobs == {"collect-due": None}
    assert settings.intervals == {"rss": 30}
    assert settings.tick_seconds == 2.5


@pytest.mark.parametrize("text", ["port = ", "[catchment]\nport = 2026-01-01", "[[catchment]]\nport = 1"])
def test_a_toml_file_that_cannot_be_understood_is_refused_by_name(folder: Path, text: str) -> None:
    (folder / "catchment.toml").write_text(text)
    assert "catchment.toml" in refused(folder)


def test_a_file_that_is_not_utf8_is_refused_by_name(folder: Path) -> None:
    (folder / ".env").write_bytes("CATCHMENT_USER_AGENT=蓄水池".encode("gbk"))
    assert ".env cannot be read" in refused(folder)


# ── single settings ────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_home_follows_the_rule_of_the_platform() -> None:
    assert default_home({"HOME": "/h"}, "linux") == Path("/h/.local/share/catchment")
    assert default_home({"HOME": "/h", "XDG_DATA_HOME": "/d"}, "linux") == Path("/d/catchment")
    assert default_home({"HOME": "/h"}, "darwin") == Path("/h/Library/Application Support/catchment")


def test_a_home_in_relative_form_lies_below_the_working_folder(folder: Path) -> None:
    settings = read(folder, CATCHMENT_HOME="data")
    assert settings.home == folder / "data"
    assert settings.database_url == f"sqlite:///{folder}/data/catchment.db"


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("sqlite:////var/x.db", "sqlite:////var/x.db"),
        ("postgres://u:p@h/n", "postgresql+psycopg://u:p@h/n"),
        ("postgresql://u:p@h:5433/n?sslmode=require", "postgresql+psycopg://u:p@h:5433/n?sslmode=require"),
        ("postgresql+psycopg:///n?host=/tmp", "postgresql+psycopg:///n?host=/tmp"),
    ],
)
def test_a_database_address_is_turned_to_the_one_driver(folder: Path, given: str, meant: str) -> None:
    assert read(folder, CATCHMENT_DATABASE_URL=given).database_url == meant


def test_the_older_name_of_the_tick_works_where_the_name_itself_is_not_given(folder: Path) -> None:
    assert read(folder, COLLECTOR_INTERVAL="300").tick_seconds == 300
    assert read(folder, COLLECTOR_INTERVAL="300", COLLECTOR_TICK="20").tick_seconds == 20
    assert read(folder, COLLECTOR_INTERVAL="300").warnings == ()


@pytest.mark.parametrize(
    ("text", "value"), [("1", True), ("Yes", True), ("on", True), ("TRUE", True), ("0", False), ("off", False)]
)
def test_a_flag_is_understood_in_the_usual_words(folder: Path, text: str, value: bool) -> None:
    assert read(folder, CATCHMENT_ALLOW_PRIVATE_NETWORKS=text).is_private_allowed is value


@pytest.mark.parametrize(
    ("text", "value"), [("20MB", 20_000_000), ("1.5 mb", 1_500_000), ("1MiB", 1_048_576), ("5000", 5000)]
)
def test_a_size_has_a_unit_or_is_in_bytes(folder: Path, text: str, value: int) -> None:
    assert read(folder, CATCHMENT_MAX_BYTES=text).max_bytes == value


def test_retry_waits_may_be_none_at_all(folder: Path) -> None:
    assert read(folder, CATCHMENT_RETRY_WAITS="none").retry_waits == ()


# ── what is refused ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CATCHMENT_PORT", "http"),
        ("CATCHMENT_PORT", "70000"),
        ("COLLECTOR_TICK", "0"),
        ("COLLECTOR_TICK", "nan"),
        ("COLLECTOR_INTERVAL", "soon"),
        ("COLLECTOR_CONCURRENCY", "2.5"),
        ("FETCH_INTERVAL_RSS", "often"),
        ("FETCH_INTERVAL_RSS", "0"),
        ("FETCH_INTERVAL_RSS", "-5"),
        ("CATCHMENT_DATABASE_URL", "mysql://h/n"),
        ("CATCHMENT_DATABASE_URL", "sqlite://"),
        ("CATCHMENT_REDDIT_BASE_URL", "ftp://h"),
        ("CATCHMENT_REDDIT_BASE_URL", "http://h:99999"),
        ("CATCHMENT_ALLOW_PRIVATE_NETWORKS", "maybe"),
        ("CATCHMENT_MAX_BYTES", "20 bananas"),
        ("CATCHMENT_RETRY_WAITS", "1,,2"),
        ("CATCHMENT_LOG_FORMAT", "xml"),
        ("CATCHMENT_JOB_COLLECT_DUE", "never"),
        ("CATCHMENT_USER_AGENT", "two\nlines"),
    ],
)
def test_a_value_that_is_not_allowed_is_refused_with_name_value_and_what_is_allowed(
    folder: Path, name: str, value: str
) -> None:
    owner = next(setting for setting in DEFINED.values() if setting.owns(name))
    assert refused(folder, **{name: value}) == f"{name} (environment): {value!r} is not {owner.format.allowed}"


def test_all_bad_values_are_reported_together(folder: Path) -> None:
    (folder / ".env").write_text("FETCH_INTERVAL_RSS=often\n")
    text = refused(folder, CATCHMENT_PORT="http", COLLECTOR_TICK="soon")
    assert text.startswith("3 settings cannot be used:")
    assert all(part in text for part in ("CATCHMENT_PORT (env", "COLLECTOR_TICK (env", "FETCH_INTERVAL_RSS (.env)"))


# ── what is warned of ──────────────────────────────────────────────────────────────────────────────────────────────


def test_an_unknown_name_that_looks_like_ours_is_warned_of_with_what_may_have_been_meant(folder: Path) -> None:
    settings = read(folder, CATCHMENT_PROT="1", COLLECTOR_NOISE="2", SOMEONE_ELSES="3")
    assert settings.warnings == (
        "CATCHMENT_PROT (environment) is not a setting; did you mean CATCHMENT_PORT?",
        "COLLECTOR_NOISE (environment) is not a setting",
    )


@pytest.mark.parametrize("setting", DEFINED.values(), ids=lambda setting: setting.name)
def test_what_is_said_about_a_wrong_value_survives_redaction(setting: Setting) -> None:
    for words in (setting.format.allowed, setting.what, setting.name):
        assert redact(words) == words


def test_a_user_in_an_address_is_hidden_even_behind_the_form_that_messages_show() -> None:
    hidden = "postgresql://***REDACTED***@"
    assert redact("postgresql://USER:PASSWORD@HOST:sesame@db/x") == f"{hidden}db/x"
    assert redact("postgresql://USER:sesame@HOST/NAME") == f"{hidden}HOST/NAME"


def test_a_misspelt_name_of_a_familiar_family_is_warned_of(folder: Path) -> None:
    environ = {
        "CRAWLER_POST_LIMITS": "1",
        "MONITOR_FOO": "2",
        "REDDIT_RATE_LIMITS": "3",
        "REDIT_RATE_LIMIT": "4",
        "REDDIT_CLIENT_IDS": "5",
        "COOKIE_MASTER_KEYS": "6",
        "CELERY_BROKER": "redis://h/1",
    }
    settings = read_settings(environ, folder, platforms=["github", "reddit"], declared=["REDDIT_CLIENT_ID"])
    assert settings.warnings == (
        "CRAWLER_POST_LIMITS (environment) is not a setting; did you mean CRAWLER_POST_LIMIT?",
        "MONITOR_FOO (environment) is not a setting",
        "REDDIT_RATE_LIMITS (environment) is not a setting; did you mean REDDIT_RATE_LIMIT?",
        "REDIT_RATE_LIMIT (environment): no platform of this name; known: github, reddit",
        "REDDIT_CLIENT_IDS (environment) is not a setting; did you mean REDDIT_CLIENT_ID?",
        "COOKIE_MASTER_KEYS (environment) is not a setting; did you mean COOKIE_MASTER_KEY?",
        "CELERY_BROKER (environment) is not a setting; did you mean CELERY_BROKER_URL?",
    )
    assert settings.origins == {}


def test_names_of_others_that_begin_like_ours_are_left_alone(folder: Path) -> None:
    environ = {"GITHUB_TOKEN": "1", "GITHUB_ACTIONS": "2", "REDDIT_PASSWORD": "3", "COOKIE_JAR": "4", "AUTO_START": "5"}
    assert read_settings(environ, folder, platforms=["github", "reddit"]).warnings == ()


def test_an_interval_of_an_unknown_kind_is_warned_of_and_left_out(folder: Path) -> None:
    settings = read(folder, FETCH_INTERVAL_GITHUB_TRENDING="5", FETCH_INTERVAL_MASTODON="not even a number")
    assert settings.intervals == {"github_trending": 5}
    assert settings.warnings == (
        "FETCH_INTERVAL_MASTODON (environment): no kind of this name; known: github_trending, rss",
    )


def test_jobs_and_platforms_are_checked_where_the_caller_knows_them(folder: Path) -> None:
    environ = {"CATCHMENT_JOB_COLLECT_DUE": "5", "CATCHMENT_JOB_DANCE": "off", "CATCHMENT_MYSPACE_BASE_URL": "http://h"}
    settings = read_settings(environ, folder, jobs=["collect-due"], platforms=["reddit"])
    assert (settings.jobs, settings.base_urls, len(settings.warnings)) == ({"collect-due": 5}, {}, 2)
    unchecked = read_settings(environ, folder)
    assert (len(unchecked.jobs), len(unchecked.base_urls), unchecked.warnings) == (2, 1, ())


def test_a_name_that_begins_with_a_platforms_is_ours_only_if_there_is_such_a_platform(folder: Path) -> None:
    environ = {"REDDIT_RATE_LIMIT": "30", "ACME_RATE_LIMIT": "as fast as you like", "ACME_USER_AGENT": "acme"}
    settings = read_settings(environ, folder, platforms=["reddit"])
    assert (settings.rate_limits, settings.user_agents, settings.warnings) == ({"reddit": 30}, {}, ())
    assert list(settings.origins) == ["REDDIT_RATE_LIMIT"]


def test_a_crawlers_concurrency_is_no_platforms(folder: Path) -> None:
    settings = read_settings(
        {"CRAWLER_MAX_CONCURRENCY": "3", "REDDIT_MAX_CONCURRENCY": "4"}, folder, platforms=["reddit"]
    )
    assert (settings.crawler_concurrency, settings.platform_concurrency) == (3, {"reddit": 4})


def test_every_name_in_a_toml_file_is_meant_for_us_and_warned_of_if_unknown(folder: Path) -> None:
    (folder / "catchment.toml").write_text("[server]\nport = 1\n")
    assert read(folder).warnings == ("SERVER_PORT (catchment.toml) is not a setting",)


# ── what is shown ──────────────────────────────────────────────────────────────────────────────────────────────────

SECRETS = {"CATCHMENT_API_KEY": "sesame-api-key", "COOKIE_MASTER_KEY": "sesame-master"}
WITH_PASSWORDS = {
    "CATCHMENT_DATABASE_URL": "postgresql://u:sesame@h/n?password=sesame",
    "CATCHMENT_REDIS_URL": "redis://:ses@me/sesame@h:1",
    "CATCHMENT_PROXY": "http://u:sesame@h:1",
}


def test_differing_settings_show_no_secret(folder: Path) -> None:
    settings = read(
        folder, CATCHMENT_PORT="1", FETCH_INTERVAL_RSS="30", COLLECTOR_TICK="60", **SECRETS, **WITH_PASSWORDS
    )
    assert settings.differing() == [
        (
            "CATCHMENT_DATABASE_URL",
            "postgresql+psycopg://***@h/n?password=***",
            "the file catchment.db in CATCHMENT_HOME",
        ),
        ("CATCHMENT_REDIS_URL", "redis://***@h:1", ""),
        ("CATCHMENT_PORT", "1", "8700"),
        ("CATCHMENT_API_KEY", "set", ""),
        ("COOKIE_MASTER_KEY", "set", ""),
        ("FETCH_INTERVAL_RSS", "30", ""),
        ("CATCHMENT_PROXY", "http://***@h:1", ""),
    ]
    assert "sesame" not in repr(settings) + str(settings)


@pytest.mark.parametrize("name", [*SECRETS, *WITH_PASSWORDS])
def test_a_refused_secret_is_not_in_the_refusal(folder: Path, name: str) -> None:
    value = {**SECRETS, **WITH_PASSWORDS}[name].replace("postgresql", "nosql") + "\x07"
    text = refused(folder, **{name: value.replace("http:", "gopher:").replace("redis:", "gopher:")})
    assert name in text
    assert "sesame" not in text


@given(st.integers(1, 10**7).map(lambda thousands: thousands * 1000))
def test_a_shown_size_is_read_as_the_same_size(size: int) -> None:
    format = DEFINED["max_bytes"].format
    assert format.read(format.show(size)) == size


# ── what is written about them ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("path", PAGES)
def test_a_built_page_is_not_behind_the_code(path: str) -> None:
    assert (REPOSITORY / path).read_text(encoding="utf-8") == PAGES[path](), f"{path} is behind: run `make docs`"


def test_every_setting_says_what_it_means_and_has_a_name_of_its_own() -> None:
    names = [name for setting in DEFINED.values() for name in (setting.name, *setting.older)]
    assert len(set(names)) == len(names)
    assert all(setting.what.endswith(".") for setting in DEFINED.values())


def test_the_example_file_changes_nothing_when_every_line_of_it_is_used(folder: Path) -> None:
    lines = [line[1:] for line in PAGES[".env.example"]().splitlines() if line.startswith(("#CA", "#CO", "#FE"))]
    (folder / ".env").write_text("\n".join(line for line in lines if "<" not in line))
    settings = read(folder)
    assert (settings.differing(), settings.warnings) == ([], ())


# ── tiers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_tier_is_a_row_in_the_environment_and_a_list_in_toml(folder: Path) -> None:
    (folder / "catchment.toml").write_text('[catchment]\ntier1 = [30, 1.5, "new", "day", 60]\n')
    settings = read(folder, CATCHMENT_TIER2="12.5, 8, Hot, all, 70")
    assert settings.tier1 == (30, 1.5, "new", "day", 60)
    assert settings.tier2 == (12.5, 8, "hot", "all", 70)
    assert settings.tier3 == (0, 24, "top", "month", 100)
    assert ("CATCHMENT_TIER2", "12.5,8,hot,all,70", "10,6,top,week,80") in settings.differing()


@pytest.mark.parametrize("row", ["20", "20,2,new,week", "20,2,best,week,50", "20,2,new,decade,50", "20,0,new,week,50"])
def test_a_tier_that_is_no_whole_row_is_refused_with_an_example(folder: Path, row: str) -> None:
    assert "20,2,new,week,50" in refused(folder, CATCHMENT_TIER1=row)


def test_tiers_that_contradict_each_other_are_refused(folder: Path) -> None:
    assert "(20, 30, 0) must fall" in refused(folder, CATCHMENT_TIER2="30,6,top,week,80")
    assert "no community would get a tier" in refused(folder, CATCHMENT_TIER_CRAWLS="2")
