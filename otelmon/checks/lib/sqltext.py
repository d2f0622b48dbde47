"""What a SQL text does, statement by statement; the strongest decides."""

from __future__ import annotations

import logging
import re
from functools import lru_cache

import sqlglot
from sqlglot import exp

from otelmon.checks.lib.verbs import STRENGTH, VerbClass
from otelmon.vocabulary.catalogue import Effect

_MAX_PARSED = 20_000  # characters; longer texts are judged by their first words
_MAX_CACHED = 2_000
_READ = VerbClass("read", "absolute")
_FIRST_WORD: dict[str, VerbClass] = {
    **dict.fromkeys(("select", "show", "describe", "desc", "explain", "pragma", "values", "table", "list"), _READ),
    **dict.fromkeys(("use", "set", "begin", "start", "commit", "rollback", "end", "savepoint", "with", "declare"), _READ),
    **dict.fromkeys(("insert", "copy", "load", "import"), VerbClass("write", "additive")),
    **dict.fromkeys(
        ("update", "create", "merge", "replace", "upsert", "grant", "comment", "analyze", "vacuum", "reindex", "refresh"),
        VerbClass("write", "absolute"),
    ),
    **dict.fromkeys(("delete", "drop", "truncate", "alter", "revoke", "purge"), VerbClass("destructive", "absolute")),
    **dict.fromkeys(("call", "exec", "execute", "do"), VerbClass("write", "additive")),
}  # fmt: skip
_COMMENT = re.compile(r"--[^\n]*|/\*(?:[^*]|\*(?!/))*(?:\*/|$)")  # an open one runs to the end: linear
# What must follow a first word that is also an English word, so that prose is not taken for SQL.
_SECOND = {
    "select": r"select\b[^;]*?(\bfrom\b|[*'\d(])", "show": r"show\s+\w+\s*;?\s*$", "insert": r"insert\s+(or\s+\w+\s+)?into\b",
    "update": r"update\s+\S+\s[^;]*?\bset\b", "delete": r"delete\s+(\S+\s+)?from\b", "replace": r"replace\s+into\b", "merge": r"merge\s+into\b",
    "drop": r"drop\s+(table|view|database|schema|index|user|role|column|function|trigger|sequence|materialized)\b",
    "alter": r"alter\s+(table|view|database|schema|index|user|role|function|sequence)\b",
    "create": r"create\s+(or\s+replace\s+)?(temp(orary)?\s+|unique\s+|materialized\s+)?(table|view|database|schema|index|user|role|function|trigger|sequence|extension|type|procedure)\b",
    "truncate": r"truncate\s+(table\s+)?\w+\s*;?", "with": r"with\s+(recursive\s+)?\S+\s+as\b", "explain": r"explain\s+(\w+\s+)?(select|insert|update|delete|with)\b",
}  # fmt: skip
_SECOND_RE = {word: re.compile(r"[\s(;]*" + pattern, re.IGNORECASE) for word, pattern in _SECOND.items()}
_ANYWHERE = re.compile(r"\b(insert|update|delete|drop|truncate|alter|merge|replace)\b", re.IGNORECASE)


def classify_sql(text: str) -> VerbClass | None:
    """The strongest effect of the statements in a text, or None when it is not SQL."""
    return _cached(text) if len(text) <= _MAX_CACHED else _classify_text(text)


def _classify_text(text: str) -> VerbClass | None:
    first = _first_word(text)
    if first not in _FIRST_WORD or not _is_sql(first, text):
        return None
    statements = _parse(text) if len(text) <= _MAX_PARSED else None
    found = [_classify(s) for s in statements if s is not None] if statements else _by_words(text)
    return max(found, key=_strength, default=None)


_cached = lru_cache(maxsize=1024)(_classify_text)


def _is_sql(first: str, text: str) -> bool:
    shape = _SECOND_RE.get(first)
    return shape is None or bool(shape.match(_COMMENT.sub(" ", text[:_MAX_PARSED])))


def _strength(meaning: VerbClass) -> tuple[int, bool]:
    return STRENGTH[meaning.effect], meaning.repeat == "additive"


def _first_word(text: str) -> str:
    match = re.match(r"[\s(;]*([a-zA-Z]+)", _COMMENT.sub(" ", text[:_MAX_PARSED]))
    return match.group(1).lower() if match else ""


def _parse(text: str) -> list[exp.Expression | None] | None:
    logger = logging.getLogger("sqlglot")
    before, logger.disabled = logger.disabled, True  # it warns about commands it keeps as text
    try:
        return list(sqlglot.parse(text))
    except (sqlglot.errors.SqlglotError, RecursionError, ValueError):
        return None
    finally:
        logger.disabled = before


def _by_words(text: str) -> list[VerbClass]:
    """For text the parser can not read: first words, and any strong verb behind a WITH."""
    found = []
    for statement in _COMMENT.sub(" ", text).split(";"):
        first = _first_word(statement)
        meaning = _FIRST_WORD.get(first)
        if first in ("with", "explain", "declare", "begin"):
            inner = [_FIRST_WORD[w.lower()] for w in _ANYWHERE.findall(statement)]
            meaning = max(inner, key=_strength, default=_READ)
        if meaning:
            found.append(meaning)
    return found


def _classify(statement: exp.Expression) -> VerbClass:
    if isinstance(statement, exp.Command):
        return _command(statement)
    if isinstance(statement, exp.Describe):  # EXPLAIN without ANALYZE runs nothing
        return _READ
    found = max((m for m in map(_node, statement.walk()) if m), key=_strength, default=None)
    if found or isinstance(statement, _ASKS):
        return found or _READ
    return _FIRST_WORD.get(_first_word(statement.sql()), VerbClass("unknown", "additive"))


def _command(statement: exp.Command) -> VerbClass:
    word = str(statement.this).lower()
    if word == "explain":
        rest = str(getattr(statement.args.get("expression"), "this", ""))
        if "analyze" not in rest.lower().split()[:3]:
            return _READ
        return max((_FIRST_WORD[w.lower()] for w in _ANYWHERE.findall(rest)), key=_strength, default=_READ)
    return _FIRST_WORD.get(word, VerbClass("unknown", "additive"))


_ASKS = (
    exp.Query,
    exp.Values,
    exp.Show,
    exp.Pragma,
    exp.Use,
    exp.Set,
    exp.Transaction,
    exp.Commit,
    exp.Rollback,
    exp.Declare,
)
_ADDS = (exp.ColumnDef, exp.AddConstraint, exp.AddPartition)
_NODES: tuple[tuple[type[exp.Expression], Effect], ...] = (
    (exp.Delete, "destructive"),
    (exp.Drop, "destructive"),
    (exp.Alter, "destructive"),
    (exp.TruncateTable, "destructive"),
    (exp.Merge, "write"),
    (exp.Create, "write"),
    (exp.Into, "write"),
    (exp.Grant, "write"),
    (exp.Copy, "write"),
)


def _node(node: exp.Expression) -> VerbClass | None:
    if isinstance(node, exp.Insert):
        keeps = node.args.get("conflict") or node.args.get("overwrite") or node.args.get("alternative")
        return VerbClass("write", "absolute" if keeps else "additive")
    if isinstance(node, exp.Update):
        return VerbClass("write", "additive" if _counts_up(node) else "absolute")
    if isinstance(node, exp.Alter) and _only_adds(node):
        return VerbClass("write", "absolute")
    if isinstance(node, exp.When) and "delete" in str(node.args.get("then")).lower():
        return VerbClass("destructive", "absolute")
    for kind, effect in _NODES:
        if isinstance(node, kind):
            return VerbClass(effect, "absolute")
    return None


def _only_adds(alter: exp.Alter) -> bool:
    """`ALTER TABLE t ADD c` takes nothing away."""
    actions = alter.args.get("actions") or []
    return bool(actions) and all(isinstance(action, _ADDS) for action in actions)


def _counts_up(update: exp.Update) -> bool:
    """`SET balance = balance - 5` changes more each time it runs."""
    for assignment in update.expressions:
        if isinstance(assignment, exp.EQ) and isinstance(assignment.this, exp.Column):
            name = assignment.this.name
            if any(column.name == name for column in assignment.expression.find_all(exp.Column)):
                return True
    return False
