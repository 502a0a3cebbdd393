"""Messages: what is stored as a code with parameters and shown as a sentence, in English or Chinese.

English is the source language: `SENTENCES` has the text of each code; the texts of pages, errors, kinds and settings
are where they are used. `locale/zh/LC_MESSAGES/catchment.po` has the Chinese; `make messages` updates it from the code
and compiles it. No catalogue is loaded for English.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from gettext import GNUTranslations
from importlib.resources import files
from typing import Any, TypeAlias, cast

import msgspec

Text = str | tuple[str, str]
"""A text, or its singular and plural, of which `count` selects one."""

SENTENCES: dict[str, Text] = {
    "error.helps": "{what} — {helps}",
    "error.about": "{subject}: {what}",
    "span.minutes": "{count} min",
    "span.hours": "{count} h",
    "span.days": "{count} days",
    "sources": ("{count} source", "{count} sources"),
    "tier.interval": "{tier}: every {span}",
    "tier.reach": (
        "{tier}: every {span} rather than {usual}, because the platform shows no more than the newest {reach:,}"
    ),
    "visit.cached": "{count} posts cached, none stored",
    "visit.rechecked": ("rechecked {count} item", "rechecked {count} items"),
    "visit.rechecks_deferred": "{count} of them deferred",
    "visit.follow_ups_pending": (
        "follow-up requests for {count} item are pending",
        "follow-up requests for {count} items are pending",
    ),
    "visit.threads_pending": ("{count} thread is waiting to be read", "{count} threads are waiting to be read"),
    "visit.list_continues": "the rest of the list is read in the next collection",
    "visit.gaps_repaired": ("{count} gap was repaired", "{count} gaps were repaired"),
    "visit.gaps_partial": ("{count} gap was repaired in part", "{count} gaps were repaired in part"),
    "visit.gaps_failed": ("{count} gap could not be repaired", "{count} gaps could not be repaired"),
    "visit.gaps_deferred": ("the repair of {count} gap was postponed", "the repair of {count} gaps was postponed"),
    "visit.follow_ups_failed": "follow-up requests failed: {why}",
    "visit.details_left": (
        "{count} listed item will be fetched in the next collection",
        "{count} listed items will be fetched in the next collection",
    ),
    "visit.details_failed": (
        "{count} listed item could not be fetched: {why}",
        "{count} listed items could not be fetched: {why}",
    ),
    "visit.too_many_pages": "too many follow-up pages",
    "visit.counted": "{why} ({times})",
    "visit.deferred": "postponed to the next run: {why}",
    "visit.no_platform": "no platform is installed for kind {kind!r}",
    "alert.calls": (
        "{platform}: {most:,} requests in {minutes} min, of {allowed:,.0f} allowed — use fewer sources, longer "
        "intervals, or add a credential"
    ),
    "alert.cache_hits": (
        "the cache answered {hits:,} of {reads:,} reads in {minutes} minutes, less than {share:.0%} — check whether "
        "Redis is available, HOT_CACHE_TTL_HOURS is too short, or collecting is late"
    ),
    "alert.redis": (
        "Redis is unavailable, the database is used instead: {why} — check that it is running, or unset "
        "CATCHMENT_REDIS_URL"
    ),
    "alert.broker": (
        "the message broker is unavailable: {why} — workers get nothing to do until it is back; nothing is lost"
    ),
    "alert.queue": "no worker consumes {queue}: these jobs do not run: {jobs} — start a worker with this queue",
    "alert.beat": "no beat is running: workers finish their tasks and get no new ones — start `catchment beat`",
    "credential.other": "the credential {name!r} is for {own}, not for {asked}",
    "vault.locked": ("{count} secret is encrypted with one", "{count} secrets are encrypted with one"),
    "period.day": "daily",
    "period.month": "monthly",
    "spending.cap": "the {period} spending cap of {service} ({cap}) allows no further call until {until} UTC",
    "spending.wait_or_raise": "raise the cap, or wait; collecting continues automatically",
    "spending.cap_too_low": "one call to {service} can cost {cost}, more than its {period} spending cap ({cap}) allows",
    "spending.raise": "raise the cap to {cost} at least; waiting does not help",
    "alert.cap_near": (
        "{service}: {spent} of the {period} spending cap of {cap} used; at the cap, its sources wait until {until}"
    ),
    "alert.cap_reached": (
        "{service}: the {period} spending cap of {cap} is reached ({spent} spent or reserved); no call that could "
        "exceed it is made before {until} — raise the cap, or wait"
    ),
    "alert.cap_too_low": (
        "{service}: the {period} spending cap of {cap} is lower than the price of one call, which can cost {cost} — "
        "raise the cap; waiting does not help"
    ),
    "alert.success": (
        "{platform}: {failed:,} of {sources:,} sources failed in {minutes} minutes — `catchment status` shows which"
    ),
    "alert.success_most": (
        "{platform}: {failed:,} of {sources:,} sources failed in {minutes} minutes, most often with {code} — "
        "`catchment status` shows which"
    ),
    "alert.standing_still": (
        "no collection succeeded for {minutes} minutes, and {due:,} sources are due, the first of them since {since} — "
        "check the network, and whether sites refuse requests"
    ),
    "alert.first_visits": (
        "{kind}: {visited:,} of {followed:,} sources have been collected, and none for the first time since {since} — "
        "the request budget may be used up"
    ),
    "alert.guessing": (
        "someone is guessing API keys or sign-in links: {count} wrong attempts, the last from {address} — unless it is "
        "one of your own programs with an old key, block that address"
    ),
    "alert.offline": (
        "none of {hosts} hosts could be reached for {span}: this machine seems to be offline; {sources} wait ({code}) "
        "— check the network, DNS and proxy"
    ),
    "alert.source_unreachable": "{host} has not answered for {span} ({code}) — check in a browser whether it works",
    "alert.unreachable": (
        "{host} has not answered for {span}: {sources} ({code}) — check in a browser whether it works; it is retried "
        "automatically"
    ),
    "alert.source_held_off": (
        "{host} has been rate-limiting requests for {span} — collect the source less often, or give it a credential"
    ),
    "alert.held_off": (
        "{host} has been rate-limiting requests for {span}: {sources} — collect its sources less often, or give them "
        "a credential; it is retried automatically"
    ),
    "alert.stalled": (
        "nothing has been collected for {span}: {sources}, most often {code} — `catchment status` shows why"
    ),
    "alert.canary_silent": (
        "{platform} is silent: {name} (source {id}), its busiest source, should have shown something new by {at}, and "
        "no other source has since — it is down, or blocks us"
    ),
    "alert.platform_silent": "nothing new from any of the {count} sources of {platform} — it may be down, or block us",
    "alert.source_silent": (
        "{name} answers, but has shown nothing new although something was expected by {at} — check it in a browser"
    ),
    "alert.source_silent_alone": (
        "{name} answers, but has shown nothing new although something was expected by {at}; {platform} itself works "
        "({other} shows new items), so nobody posted, or it has moved — check it in a browser"
    ),
    "alert.budget": (
        "{platform}: {needs} of {allowed} requests per minute: {late} — use fewer sources, longer intervals, or add a "
        "credential; `catchment plan` shows which sources will be late"
    ),
    "budget.needs": ("{count} source needs {needed}", "{count} sources need {needed}"),
    "budget.late": "{late:,} will be late",
    "budget.never": "{never:,} will not be collected at all",
    "budget.late_never": "{late:,} will be late and {never:,} will not be collected at all",
    # Why a credential is in its state.
    "credential.added": "added",
    "credential.replaced": "replaced",
    "credential.removed": "removed",
    "credential.in_environment": "found in the environment",
    "credential.replaced_in_environment": "replaced in the environment",
    "credential.accepted": "it is accepted again",
    "credential.cooldown_ended": "its cooldown ended",
    "credential.ban_ended": "its ban ended; the next request decides",
    "credential.refused_in_cooldown": "refused during its cooldown: {why}",
    "credential.refused_on_probation": "refused on probation: {why}",
    "credential.errors_in_total": "{errors} errors in total: {why}",
    "credential.errors_in_a_row": "{errors} errors in a row: {why}",
    # The state of a credential, within a sentence.
    "credential.state.active": "active",
    "credential.state.cooling": "cooling down",
    "credential.state.banned": "banned",
    "credential.state.invalid": "invalid",
    "credential.state.probation": "on probation",
    "credential.state.paused": "paused",
    "credential.until": "{state} until {at}",
    "credential.because": "{state} ({why})",
    "credential.paused_because": "paused: {why}",
    "credential.expired_on": "expired on {at}",
    "credential.used_up_today": "used up for today: its limit is {limit:,} a day",
    "credential.used_up_until": "used up until {at} ({why})",
    "credential.is": "{name} is {state}",
    "credential.pool_exhausted": "no credential of {platform} is usable: {states}",
    "credential.pool_until": "{what}; {until}",
    "credential.person": "action needed: `catchment credentials list` shows their state",
    "credential.usable_from": "the next one is usable from {at}",
    "credential.refused": (
        "credential {name} of {platform} is {state}; run `catchment credentials test {name}` to see whether it works "
        "again; otherwise {renew}"
    ),
    "credential.used_up": (
        "credential {name} of {platform} has no credit left: {why}. It is retried from time to time; meanwhile, "
        "sources use other credentials or wait"
    ),
    "credential.expired": "credential {name} of {platform} expired on {at}; {renew}",
    "credential.expires": "credential {name} of {platform} expires on {at}; {renew}",
    "credential.correct": "correct the settings that define it",
    "credential.replace": "replace it: `catchment credentials add {platform} {name} --replace`",
    "delivery.failing": "{name} has rejected its events {failures} times in a row: {why}",
    "delivery.given_up": (
        "{name} has rejected its events {failures} times in a row; {lost:,} events were too old and have been "
        "dropped: {why}"
    ),
    "delivery.gone": "the receiver answered 410 and accepts no more events",
    "delivery.not_installed": "it is not installed any more",
    "delivery.off": "{name} is switched off: {why} — resume it, or remove it",
    "notification.title": ("catchment: {count} message", "catchment: {count} messages"),
    "notification.alert.opened": "{severity}: {message}",
    "notification.alert.closed": "Resolved ({severity}): {message}",
    "notification.watch.matched": "Watch {watch}: {title}",
    "notification.source.failing": "{name} is failing: {error}",
    "notification.source.recovered": "{name} works again",
    "notification.items.collected": "Source {source_id}: {new} new items, {updated} updated",
    "notification.items.ready": "Source {source_id} has been collected: {new} new items, {updated} updated",
    "notification.task.finished": "Task for {kind} {state}: {done} of {total} done, {failed} failed, {new} new items",
    "notification.webhook.test": "This is a test message from catchment.",
    "visit.held": "{name} is being collected by {holder} at this moment",
    "visit.holder": "{work} (process {pid} on {machine})",
    "visit.another_process": "another process",
    "visit.taken_over": "another process has taken over {name}",
    "visit.not_started": "not collected: a stop was requested, or the database was unavailable",
    "visit.cut_off": "the process ended during this collection; stored items are kept",
    "visit.removed": "removed in the meantime",
    "task.cancelled": "cancelled by a user",
    "task.refused": "{name} was refused, and all other targets would be refused, too: {why}",
    "task.timed_out": "not finished within {minutes} minutes: {done} of {total} done",
    "task.all_failed": "every target failed; the first error: {why}",
    "task.failed": "a task for {kind} failed: {why}",
    "task.partly_failed": "a task for {kind} could not collect {failed} of {total} targets; the first error: {why}",
    "task.source": "added for a task; resume it to collect it on schedule",
    # What the status of an answer means, and what helps.
    "http.status": "{what} (HTTP {status})",
    "http.too_many": "too many requests",
    "http.trouble": "the server reports an error",
    "http.partial": "the server sent only part of the content",
    "http.login": "a login is required, or the credential was not accepted",
    "http.payment": "payment is required",
    "http.refused": "access was refused",
    "http.missing": "there is nothing at this address",
    "http.proxy": "the proxy requires a login",
    "http.gone": "it is permanently gone",
    "http.legal": "access was refused for legal reasons",
    "http.redirect": "a redirect without a target",
    "http.not_accepted": "the request is not accepted",
    "http.helps.longer_interval": "it is retried later; a longer interval avoids this",
    "http.helps.retried": "it is retried later",
    "http.helps.server": "the problem is on the server",
    "http.helps.credential": "add or renew the credential",
    "http.helps.account": "check the account at the platform",
    "http.helps.public": "check in a browser whether it is public; it may need a credential",
    "http.helps.address": "check the address; it is retried at growing intervals",
    "http.helps.proxy": "add it to the proxy setting",
    "http.helps.remove": "remove the source, or add its new address",
    "http.helps.country": "it may be reachable from another country",
    "http.helps.settings": "check the source's target and settings",
    # Why no request is sent before a time.
    "wait.asked": "{name} asked us to wait",
    "wait.busy": "{name} is being requested by others",
    "wait.between_pages": "{name} requires a pause between two pages",
    "wait.enough": "enough requests are in progress",
    "wait.budget": "the budget of {name} is used up",
    "robots.unreadable": "its robots.txt cannot be read: {why}",
    # Why a source was retired.
    "source.moved_to_known": "it has moved to {target}, which is another source already",
    "source.final": "the source says that it will never change again",
    "source.twin": "it redirects to the same target as source {id} ({name})",
    "visit.stale": "the answer is older than the previous one",
    "visit.stale_helps": (
        "a cache may be stuck; the source is requested again, and the answer is accepted if it stays the same"
    ),
    "thread.stale": "the page of the thread is older than the list of threads",
    "thread.stale_helps": (
        "a cache may be stuck; the page is requested again in the next run, and accepted if it stays the same"
    ),
    # Why a source is due when it is.
    "due.interval_of_kind": "the interval of its kind",
    "due.first": "never collected: goes first",
    "due.own_interval": "own interval",
    "due.probation": "probation",
    "due.told_to_wait": "asked to wait",
    "due.not_stored": "our database could not store it",
    "due.deferred": "deferred",
    "due.cap_of_day": "the daily spending cap",
    "due.cap_of_month": "the monthly spending cap",
    "due.no_connection": "no connection",
    "due.no_answer": "its host does not answer",
    "due.less_often": "the source asks to be collected less often",
    "due.added": "added",
    "due.requested": "requested",
    "due.clock_set_back": "the clock was set back",
    "due.not_active": "not due: {state}",
    "due.not_active_because": "not due: {state} ({why})",
    # What users did.
    "paused_by_user": "paused by a user",
    "resumed_by_user": "resumed by a user",
    "removed_by_user": "removed by a user",
    "source.paused_in_list": "paused in the list that it came from",
    # Whether a gap can be repaired, and what the last attempt came to.
    "gap.impossible": "cannot be repaired: the platform offers no way to request this period",
    "gap.possible": "can be repaired: `catchment audit --repair`",
    "gap.tried": "not repaired yet: {why}",
    "gap.given_up": "cannot be repaired: {count} attempts failed; the last error: {why}",
    "gap.ended": "the search ended before it reached what is stored",
    "gap.repeats": "the search returns the same pages again",
    "gap.torn": "an answer was cut off",
    "gap.cap": "our own page limit ended the search; the next attempt continues there",
    "gap.unreachable": "the platform offers no way to request this period",
    "gap.cut": "the attempt was interrupted",
    # Why a gap was closed.
    "gap.shown_again": "shown again",
    "gap.repaired": "repaired",
    # Why an item has a revision.
    "content_fingerprint_changed": "content changed",
    "marked_deleted_by_source": "deleted by its source",
    "marked_folded_by_source": "folded by its source",
    "restored_by_source": "restored by its source",
    "unfolded_by_source": "unfolded by its source",
    "title_changed": "title changed",
    "parser_mended": "parsed again by a newer parser",
}
"""The English text of each code. Braces stand for parameters."""


MessageParam: TypeAlias = "str | int | float | list[Message] | None"


class Message(str):
    """A sentence: its code and parameters, and as a `str` the English text.

    A parameter is a number, a text, another message or a list of messages. A code without an entry in `SENTENCES` is
    itself the English text: what errors and platforms say.
    """

    code: str
    params: dict[str, MessageParam]

    def __new__(cls, code: str, params: dict[str, MessageParam] | None = None) -> Message:
        message = super().__new__(cls, ENGLISH.sentence(code, params or {}))
        message.code, message.params = code, params or {}
        return message

    def __getnewargs__(self) -> tuple[str, dict[str, MessageParam]]:  # type: ignore[override]
        return self.code, self.params


def message(code: str, /, **params: MessageParam) -> Message:
    return Message(code, params)


def about(subject: str, what: str) -> Message:
    """Returns what happened, with what it happened to before it: `The Gazette (source 2): the answer is empty`."""
    return message("error.about", subject=subject, what=what)


def reason_of(error: Exception) -> Message:
    """Returns what an exception says: the message it was raised with, or its text."""
    reason = error.args[0] if error.args else ""
    return reason if isinstance(reason, Message) else Message(str(error))


def counted_reasons(counts: Mapping[str, int]) -> list[Message]:
    """Returns each reason with how often it applied."""
    return [message("visit.counted", why=reason, times=count) for reason, count in sorted(counts.items())]


def without_subject(text: str) -> str:
    """Returns a message without what it is about, for places where that is known."""
    if isinstance(text, Message) and text.code == "error.about":
        return without_subject(cast(str, text.params["what"]))
    if isinstance(text, Message) and text.code == "error.helps":
        return Message(text.code, {**text.params, "what": without_subject(cast(str, text.params["what"]))})
    return text


_JSON = '{"code":'
"""How a message with parameters begins where it is stored."""


def encode(text: str) -> str:
    """Returns a text as it is stored. A message with parameters is JSON; any other text is itself."""
    if isinstance(text, Message) and (text.params or text.code.startswith(_JSON)):
        return msgspec.json.encode(plain(text)).decode()
    return text.code if isinstance(text, Message) else text


def decode(stored: str) -> Message:
    """Returns the message that was stored."""
    return restored(Message, msgspec.json.decode(stored) if stored.startswith(_JSON) else stored)


def plain(value: Any) -> Any:
    """Returns a message as JSON data, for encoders that do not know it."""
    if not isinstance(value, Message):
        # What msgspec expects of such a function for types that it does not handle.
        raise NotImplementedError(f"{type(value).__name__} has no JSON form")
    params = {name: _plain_param(param) for name, param in value.params.items()}
    return {"code": value.code, "params": params} if params else {"code": value.code}


def _plain_param(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain_param(part) for part in value]
    return plain(value) if isinstance(value, Message) else value


def restored(_: type, value: Any) -> Message:
    """Returns the message that JSON data represents."""
    if isinstance(value, str):
        return Message(value)
    return Message(value["code"], {name: _restored_param(param) for name, param in value.get("params", {}).items()})


def _restored_param(value: Any) -> Any:
    if isinstance(value, list):
        return [_restored_param(part) for part in value]
    return restored(Message, value) if isinstance(value, dict) else value


def as_message(text: str) -> Message:
    return text if isinstance(text, Message) else Message(text)


class Translator:
    """Texts in one language. `texts` are translations that come with platforms."""

    def __init__(self, language: str = "en", texts: Mapping[str, str] = {}) -> None:
        self.language = language
        self._texts = texts

    def gettext(self, text: str, /, **params: object) -> str:
        """Returns the text in this language, with its parameters filled in."""
        return _filled(self._translated(text), params)

    def ngettext(self, singular: str, plural: str, count: int, /, **params: object) -> str:
        """Returns the form of a text that fits the count."""
        if self.language == "en":
            text = singular if count == 1 else plural
        else:
            text = _catalogue(self.language).ngettext(singular, plural, count)
        return _filled(text, {"count": f"{count:,}", **params})

    def message(self, text: str) -> str:
        """Returns a message, or a code without parameters, as a sentence in this language."""
        return self.sentence(text.code, text.params) if isinstance(text, Message) else self.sentence(text, {})

    def sentence(self, code: str, params: Mapping[str, MessageParam]) -> str:
        text = SENTENCES.get(code, code)
        shown = {name: self._shown(value) for name, value in params.items()}
        if isinstance(text, tuple):
            return self.ngettext(*text, int(shown.pop("count")), **shown)
        return self.gettext(text, **shown)

    def _shown(self, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return ("; " if self.language == "en" else "；").join(str(self._shown(part)) for part in value)
        return self.message(value) if isinstance(value, Message) else value

    def _translated(self, text: str) -> str:
        if self.language == "en" or not text:
            return text
        return self._texts.get(text) or _catalogue(self.language).gettext(text)


ENGLISH = Translator()


@cache
def _catalogue(language: str) -> GNUTranslations:
    with (files(__package__) / "locale" / language / "LC_MESSAGES/catchment.mo").open("rb") as file:
        return GNUTranslations(file)


def _filled(text: str, params: Mapping[str, object]) -> str:
    """Fills in the parameters. A text without any stays as it is: braces in it may come from outside."""
    try:
        return text.format(**params) if params else text
    except (LookupError, ValueError, AttributeError, TypeError):
        return text
