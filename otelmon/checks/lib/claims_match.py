"""Claims against calls: which call can be the effect a message claims, and what else speaks for it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from weakref import WeakKeyDictionary

import msgspec

from otelmon.checks.lib.claims import Claim, read_message
from otelmon.checks.lib.claims_language import GENERIC, base_classes, deed_nouns, done_words
from otelmon.checks.lib.provenance_roles import leaves
from otelmon.checks.lib.values import EMAIL, as_date, compact, fold, runs, words_of
from otelmon.checks.lib.verbs import classify_name, name_words
from otelmon.checks.view import View
from otelmon.vocabulary.catalogue import Tool
from otelmon.vocabulary.event import ContextMessage, Event, ToolCall, UserMessage

MAX_EVENTS = 200  # events before a message in which others may have told of the effect
MAX_RESULT = 60_000  # characters of a result that are read for evidence

# What verbs of a call can be the cause of what a message calls done. A refund or a charge comes with many writes.
_MADE_BY: dict[str, frozenset[str]] = {
    "create": frozenset(("create", "update", "save", "publish", "enable", "exchange", "link", "transfer", "send")),
    "cancel": frozenset(("cancel", "delete", "update", "disable", "close")),
    "delete": frozenset(("delete", "cancel", "update", "disable", "close")),
    "update": frozenset(
        ("update", "create", "exchange", "delete", "enable", "disable", "link", "save", "approve", "close", "publish")
    ),
    "send": frozenset(("send", "publish", "transfer")),
    "save": frozenset(("save", "create", "update", "publish", "send")),
    "publish": frozenset(("publish", "send", "save", "create", "update")),
    "exchange": frozenset(("exchange", "update", "refund", "create")),
    "enable": frozenset(("enable", "disable", "update", "create", "save")),
    "disable": frozenset(("disable", "enable", "update", "cancel", "delete")),
    "transfer": frozenset(("transfer", "send", "pay", "create", "update")),
    "link": frozenset(("link", "update", "create", "publish")),
    "approve": frozenset(("approve", "update", "close", "create")),
    "close": frozenset(("close", "update", "cancel", "approve", "disable")),
}
_MAKES = frozenset(("create", GENERIC))  # verbs of tools that say nothing without the thing that is made
_ANY_WRITE = frozenset((GENERIC, "pay", "refund", "any"))
_OPAQUE_NAMES = frozenset(
    [
        "run",
        "exec",
        "execute",
        "shell",
        "bash",
        "sh",
        "terminal",
        "command",
        "cmd",
        "python",
        "code",
        "script",
        "sql",
        "query",
        "http",
        "request",
        "browser",
        "computer",
        "agent",
        "subagent",
        "delegate",
        "task",
        "workflow",
        "eval",
        "repl",
        "notebook",
        "invoke",
        "call",
    ]
)
_OPAQUE_KEYS = frozenset(("sql", "command", "cmd", "code", "script", "cmdline", "expression", "argv"))
_DOCUMENTS = frozenset(
    [
        "csv",
        "tsv",
        "xlsx",
        "xls",
        "md",
        "txt",
        "pdf",
        "docx",
        "doc",
        "pptx",
        "json",
        "jsonl",
        "yaml",
        "yml",
        "xml",
        "html",
        "png",
        "jpg",
        "svg",
        "log",
        "sql",
        "sh",
        "py",
        "parquet",
        "zip",
    ]
)
# Verbs that are as often the thing a verb is done to: `delete_file` files nothing.
_NOUNS_TOO = frozenset(
    [
        "file",
        "log",
        "record",
        "text",
        "mail",
        "email",
        "message",
        "comment",
        "book",
        "issue",
        "return",
        "post",
        "share",
        "schedule",
        "bill",
        "exchange",
        "credit",
        "charge",
        "release",
        "commit",
        "register",
        "transfer",
        "block",
        "lock",
        "link",
        "set",
        "reset",
        "import",
        "export",
        "load",
        "store",
        "release",
    ]
)
_MAIL = re.compile(r"\b(?:e-?mails?|inbox|correos?|posteingang)\b")


class Facts(msgspec.Struct, frozen=True):
    """What one call can be evidence of. `classes` of verbs in its name, or else its description;
    `described` all verb classes of its description; `words` of its
    name and argument names; `values` compact forms in arguments and result; `stated` words of the values
    (not the keys) of the result; `dated` words of keys that hold a date (`"issued_at"`); `mails` when an argument is an e-mail address; `opaque` when its text
    (a command, a delegated task) and not its name says what it does."""

    call: ToolCall
    writes: bool
    classes: frozenset[str]
    described: frozenset[str]
    words: frozenset[str]
    name_words: frozenset[str]
    values: frozenset[str]
    argument_values: frozenset[str]
    stated: frozenset[str]
    dated: frozenset[str]
    mails: bool
    opaque: bool
    claims: tuple[str, ...]

    @property
    def landed(self) -> bool:
        return self.call.outcome == "succeeded"


_REMEMBERED: WeakKeyDictionary[View, dict[str, Facts]] = WeakKeyDictionary()


def facts_of(call: ToolCall, view: View) -> Facts:
    """The facts of a call, made once per view."""
    known = _REMEMBERED.setdefault(view, {})
    found = known.get(call.key)
    if found is None:
        found = known[call.key] = _facts(call, view)
    return found


def _facts(call: ToolCall, view: View) -> Facts:
    tool = view.tool(call)
    name = frozenset(name_words(call.tool_name))
    keys, values = set[str](), set[str]()
    for path, key, value in leaves(call.arguments):
        keys |= set(name_words(key)) | {word for step in path.split(".") for word in name_words(step)}
        if value is not None:
            values |= words_of(str(value)[:MAX_RESULT]).words
    result = words_of((call.result_text or "")[:MAX_RESULT]).words
    mails = any(
        isinstance(value, str) and "@" in value and EMAIL.search(value[:2_000])
        for _, _, value in leaves(call.arguments)
    )
    opaque = bool(name & _OPAQUE_NAMES or keys & _OPAQUE_KEYS) or call.nested_calls is not None
    return Facts(
        call=call,
        writes=view.effect(call).effect != "read",
        classes=_classes(call.tool_name, tool),
        described=_described(tool),
        words=name | frozenset(keys),
        name_words=name,
        values=frozenset(values | result),
        argument_values=frozenset(values),
        stated=_stated(call),
        dated=_dated(call),
        mails=mails,
        opaque=opaque,
        claims=tool.claims if tool else (),
    )


def _stated(call: ToolCall) -> frozenset[str]:
    """The words a result states: its values, and keys that are true (`"closed": true`)."""
    if not isinstance(call.result, (dict, list)):
        return words_of((call.result_text or "")[:MAX_RESULT]).words
    words: set[str] = set()
    for _, key, value in leaves(call.result):
        words |= set(name_words(key)) if value is True else words_of(str(value)[:2_000]).words
    return frozenset(words)


def _dated(call: ToolCall) -> frozenset[str]:
    dates = [key for _, key, value in leaves(call.result) if isinstance(value, str) and as_date(value)]
    return frozenset(word for key in dates for word in name_words(key) if len(word) > 3)


def _classes(name: str, tool: Tool | None) -> frozenset[str]:
    """Verb classes of a tool: of its name; of its description's first sentence when the name has none."""
    found = _classes_in(name_words(name))
    if found or tool is None:
        return found
    return _classes_in(runs(tool.description.split(".")[0][:200]))


def _described(tool: Tool | None) -> frozenset[str]:
    words = runs(tool.description[:1_000]) if tool else []
    return _classes_in([*words, *(word[:-1] for word in words if word.endswith("s"))])


def _classes_in(words: Iterable[str]) -> frozenset[str]:
    """Verb classes of words. What is only made, issued or submitted is the deed it names: `create_transfer`
    transfers, `new_message` sends."""
    classes = base_classes()
    known = [word for word in words if word in classes]
    plain = [word for word in known if word not in _NOUNS_TOO]
    found = frozenset[str]().union(*(classes[word] for word in plain))
    if found <= _MAKES:
        return found.union(*(classes[word] for word in known))
    return found


def alike(one: str, other: str) -> bool:
    """Two folded nouns that mean one thing: `bag` and `baggages`, `flight` and `flights`."""
    short, long = sorted((one, other), key=len)
    return len(short) >= 3 and long.startswith(short.rstrip("s")) and len(long) - len(short) <= 5 and len(short) > 2


def _share(nouns: Iterable[str], words: Iterable[str]) -> bool:
    words = tuple(words)
    return any(alike(noun, word) for noun in nouns for word in words)


def can_cause(facts: Facts, claim: Claim, rivals: Sequence[frozenset[str]]) -> bool:
    """True when this call, had it landed, could be what the claim speaks of. `rivals` are the words of
    the names of the tools that are about the claim's own object."""
    if any(fold(phrase) in claim.sentence for phrase in facts.claims):
        return True
    if facts.opaque:
        return facts.writes
    if claim.classes & facts.described and _share(claim.nouns, facts.words):
        return True  # the tool's own description says that it does this to such things
    if not _class_fits(facts, claim):
        return False
    mail = claim.classes == {"send"} and (claim.emails or _MAIL.search(claim.sentence))
    if mail and not (facts.mails or "send" in facts.classes):
        return False
    if not rivals or facts.name_words in rivals or _share(claim.nouns, facts.words):
        return True
    named = _classes_in(facts.name_words) & claim.classes
    return bool(named) and not any(_classes_in(words) & claim.classes for words in rivals)


def _class_fits(facts: Facts, claim: Claim) -> bool:
    if claim.classes & _ANY_WRITE:
        return facts.writes
    if facts.classes & claim.classes or (facts.mails and "send" in claim.classes):
        return True
    if not facts.writes:
        return False
    wanted = frozenset().union(*(_MADE_BY.get(label, frozenset((label,))) for label in claim.classes))
    return not facts.classes or bool(facts.classes & wanted)


def shares_object(claim: Claim, facts: Facts) -> bool:
    """True when the call's name, arguments or result name what the claim is about."""
    return _share(claim.nouns, facts.words) or bool(done_of(claim) & facts.argument_values)


def names_a_deed(claim: Claim) -> bool:
    """True when the thing that was "processed" or "made" is a deed: the downgrade, the refund."""
    nouns = deed_nouns()
    return any(word in nouns or word.rstrip("s") in nouns for word in claim.nouns)


def rivals_of(claim: Claim, nouns: Sequence[str], view: View, run_id: str) -> list[frozenset[str]]:
    """The writing tools whose names are about these nouns, as sets of the words of their names."""
    if claim.classes & _ANY_WRITE and not claim.parts:
        return []
    found = []
    for name in view.tools_in_force(run_id).tools:
        words = frozenset(name_words(name))
        things = [word for word in words if word not in base_classes()]
        if classify_name(name).effect != "read" and _share(nouns, things):
            found.append(words)
    return found


def offered(claim: Claim, view: View, run_id: str) -> bool:
    """True when a tool exists whose own verb is the claim's."""
    tools = view.tools_in_force(run_id).tools
    return any(_classes(name, same[0]) & claim.classes for name, same in tools.items())


def stated_in_results(claim: Claim, calls: Iterable[Facts]) -> ToolCall | None:
    """A landed call whose result says the thing is done (`"status": "cancelled"`), by any route."""
    words = done_of(claim)
    for facts in calls:
        if facts.landed and (words & facts.stated or any(claim.verb[:5] == word[:5] for word in facts.dated)):
            return facts.call
    return None


def done_of(claim: Claim) -> frozenset[str]:
    """The words that state the claim's verbs as done."""
    return frozenset().union(*(done_words(label) for label in claim.classes), (claim.verb,))


def told_otherwise(claim: Claim, events: Sequence[Event]) -> bool:
    """True when the user, or text from outside, says that it was done (in the latest MAX_EVENTS)."""
    for event in events[-MAX_EVENTS:]:
        if isinstance(event, UserMessage) and not claim.active and _user_says(claim, event.text):
            return True
        if isinstance(event, ContextMessage) and _context_says(claim, event.text):
            return True
    return False


def _user_says(claim: Claim, text: str) -> bool:
    wanted = claim.classes | {GENERIC}
    said = [
        c for c in read_message(text).claims if not (c.form == "bare" and c.verb in base_classes())
    ]  # "Set it": asks
    return any(c.classes & wanted and not c.addressed for c in said)


def _context_says(claim: Claim, text: str) -> bool:
    words = words_of(text[:MAX_RESULT]).words
    return bool(done_of(claim) & words) or _share(claim.nouns, words)


def names_other_target(claim: Claim, supporters: Sequence[Facts], attempts: Sequence[Facts]) -> bool:
    """True when the calls that landed went to another address, or left out a record that a failed one named."""
    if any(facts.opaque for facts in supporters):
        return False
    reached = frozenset().union(*(facts.values for facts in supporters))
    mails = {compact(mail) for mail in claim.emails}
    if mails and claim.classes & {"send"} and not mails & reached:
        return True
    named = {compact(value) for value in claim.ids} | mails
    failed = named & frozenset().union(*(facts.argument_values for facts in attempts))
    return not failed <= reached


def missing_files(claim: Claim, calls: Iterable[Facts]) -> list[str]:
    """The files a claim says were saved or created that no landed call names."""
    files = claim.files if claim.classes & {"save"} else _documents(claim.files) if claim.classes & {"create"} else ()
    if not files:
        return []
    seen = [facts.values for facts in calls if facts.landed]
    named = [(name, {compact(name), compact(name.rsplit("/", 1)[-1])}) for name in files]
    return [name for name, forms in named if not any(forms & values for values in seen)]


def _documents(names: Iterable[str]) -> tuple[str, ...]:
    """Names that are surely files: `report.csv`, not the product `node.js`."""
    return tuple(name for name in names if name.rsplit(".", 1)[-1] in _DOCUMENTS)
