"""Loads rule files: one file a rule, strict, every mistake of every file at once with its position."""

from __future__ import annotations

import re
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import msgspec

from otelmon.checks.registry import Check, load_checks
from otelmon.rules.catalogue import catalogue_problems
from otelmon.rules.model import Need, Rule, RuleSet, RuleStatus
from otelmon.rules.notation import KINDS, TestCase, kind_of
from otelmon.rules.shapes import Keys, guess, shown
from otelmon.rules.taxonomy import known_tags
from otelmon.rules.yaml_source import Source, problems_of, read_yaml, refuse_if
from otelmon.vocabulary.canonical import sha256
from otelmon.vocabulary.config import RuleConfig
from otelmon.vocabulary.errors import OtelmonError, Problem, UserError
from otelmon.vocabulary.finding import Family, Severity

HEADINGS = ("Meaning", "Impact", "Diagnosis", "Mitigation")
_ID = re.compile(r"[a-z][a-z0-9_]{2,47}\Z")
MAX_REPEAT = 1000
_PROSE = ("tests", "title", "description", "runbook", "references", "false_positives")


class RuleFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rule file as written."""

    id: str
    title: str
    status: RuleStatus
    severity: Severity
    family: Family
    description: str
    check: str
    params: dict[str, Any] = {}
    scope: Literal["run", "conversation"]
    needs: tuple[Need, ...] = ()
    wins_over: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    false_positives: tuple[str, ...] = ()
    runbook: str
    tests: tuple[TestCase, ...]


def builtin_rules_dir() -> Path:
    """The folder of the built-in rules: inside the installed package, or the source tree's `rules/`."""
    package = Path(str(files("otelmon")))
    packed = package / "data" / "rules"
    return packed if packed.is_dir() else package.parent / "rules"


class Extra(msgspec.Struct, frozen=True, kw_only=True):
    """What plug-ins add: checks by name, rules that loaded, and ids of rules that did not (settings may
    name these). `refused` takes what is wrong with a rule of theirs beside the others."""

    checks: Mapping[str, Check] = {}
    rules: Sequence[Rule] = ()
    missing: Collection[str] = ()
    refused: list[tuple[Rule, Problem]] = []


def load_rules(
    dirs: Sequence[Path] | None = None,
    overrides: Mapping[str, RuleConfig] | None = None,
    origins: Mapping[str, str] | None = None,
    drafts: bool = False,
    extra: Extra | None = None,
) -> RuleSet:
    """The rules in force: those of `dirs` (by default the built-in ones) and of plug-ins (`extra`),
    changed by `overrides`.

    Drafts (unless `drafts` asks for them, to be tested) and rules that are not enabled are left out.
    `origins` says where a setting was written ({"rules.loop.severity": "otelmon.toml:12"}), for
    messages. Raises UserError with every mistake.
    """
    folders = [builtin_rules_dir()] if dirs is None else list(dirs)
    extra = extra or Extra()
    problems: list[Problem] = []
    rules: dict[str, Rule] = {}
    for rule in _read_all(folders, extra.checks, problems):
        if rule.id in rules:
            problems.append(_twice(rule, rules[rule.id]))
        rules.setdefault(rule.id, rule)
    for rule in extra.rules:
        if rule.id in rules:
            extra.refused.append((rule, _twice(rule, rules[rule.id])))
        rules.setdefault(rule.id, rule)
    known = {key: wanted for key, wanted in (overrides or {}).items() if key in rules or key not in extra.missing}
    rules = _override(rules, known, origins or {}, problems)
    if problems:
        raise UserError(*problems)
    in_force = {key: rules[key] for key in sorted(rules) if drafts or rules[key].status != "draft"}
    return RuleSet(in_force, sha256([r.version for r in in_force.values()])[7:19])


def load_rule(path: Path, name: str | None = None, checks: Mapping[str, Check] | None = None) -> Rule:
    """One rule file; `checks` are those of plug-ins. Raises UserError with every mistake, each with its
    position."""
    source = read_yaml(path, name)
    known = load_checks(checks)
    refuse_if(_file_problems(source, path.stem, known))
    file = msgspec.convert(source.data, RuleFile)
    check = known[file.check]
    raw: dict[str, Any] = source.data
    facts = {f: getattr(file, f) for f in file.__struct_fields__ if f not in ("check", "params")}
    params = msgspec.convert(file.params, check.params_type)
    return Rule(**facts, check=check, params=params, version=_version(file.id, raw, params), raw=raw, path=source.name)


def _twice(rule: Rule, other: Rule) -> Problem:
    return Problem(rule.path, f"rule {rule.id} is also in {other.path}", "expected each id once")


def with_params(rule: Rule, params: Mapping[str, Any]) -> Rule:
    """The rule with other parameters laid over its own. Raises UserError for a wrong one."""
    problems = list(_params_problems(rule, params, rule.id, {}))
    if problems:
        raise UserError(*problems)
    return _replace_params(rule, params)


def rule_files(folders: Sequence[Path]) -> list[Path]:
    """All rule files of some folders, in order of name."""
    return [path for folder in folders for path in sorted(folder.glob("*.y*ml"))]


def _read_all(folders: Sequence[Path], checks: Mapping[str, Check], problems: list[Problem]) -> Iterator[Rule]:
    problems.extend(
        Problem(str(folder), "is no folder", "expected a folder with rule files", "check the path")
        for folder in folders
        if not folder.is_dir()
    )
    ours = builtin_rules_dir()
    for folder in folders:
        for path in rule_files([folder]):
            try:
                rule = load_rule(path, checks=checks)
            except OtelmonError as error:
                problems.extend(error.problems)
            else:
                yield msgspec.structs.replace(rule, origin="built-in") if folder == ours else rule


def _file_problems(source: Source, stem: str, checks: Mapping[str, Check]) -> Iterator[Problem]:
    """Mistakes of shape, then (where the shape is there) mistakes of meaning."""
    yield from problems_of(source, source.data, RuleFile)
    data = source.data
    if not isinstance(data, dict):
        return
    yield from _id_problems(source, data.get("id"), stem)
    for index, other in enumerate(_list(data.get("wins_over"))):
        if other == data.get("id"):
            yield source.problem(("wins_over", index), "wins_over names the rule itself", do="remove it")
    yield from _check_problems(source, data, checks)
    yield from _tag_problems(source, data.get("tags"))
    yield from _runbook_problems(source, data.get("runbook"))
    yield from _test_problems(source, data.get("tests"))


def _id_problems(source: Source, rule_id: Any, stem: str) -> Iterator[Problem]:
    if not isinstance(rule_id, str):
        return
    if not _ID.match(rule_id):
        yield source.problem(("id",), f"id is {shown(rule_id)}", "expected 3 to 48 of a-z, 0-9 and _, a letter first")
    elif rule_id != stem:
        yield source.problem(("id",), f"id is {rule_id} but the file is called {stem}", "expected the same", f"name the file {rule_id}.yaml")  # fmt: skip


def _check_problems(source: Source, data: dict[str, Any], checks: Mapping[str, Check]) -> Iterator[Problem]:
    name, params = data.get("check"), data.get("params", {})
    if not isinstance(name, str):
        return
    check = checks.get(name)
    if check is None:
        do = guess(name, checks) or f"known: {', '.join(checks) or 'none'}"
        yield source.problem(("check",), f"there is no check called {name}", do=do)
        return
    yield from _params_mistakes(source, params, check.params_type, ("params",))
    for index, case in enumerate(_list(data.get("tests"))):
        if isinstance(case, dict) and isinstance(params, dict) and isinstance(case.get("params"), dict):
            at = ("tests", index, "params")
            yield from _params_mistakes(source, {**params, **case["params"]}, check.params_type, at)


def _params_mistakes(source: Source, params: Any, kind: type[msgspec.Struct], at: Keys) -> Iterator[Problem]:
    """Mistakes of shape; where there are none, those the parameters find in themselves (their conditions)."""
    shape = list(problems_of(source, params, kind, at))
    yield from shape
    find = None if shape else getattr(msgspec.convert(params, kind), "mistakes", None)
    for path, wrong, do in find() if find else ():
        yield source.problem((*at, *path), wrong, do=do)


def _tag_problems(source: Source, tags: Any) -> Iterator[Problem]:
    known = known_tags()
    for index, tag in enumerate(_list(tags)):
        if isinstance(tag, str) and tag not in known:
            do = guess(tag, known) or "add it to otelmon/data/taxonomy.toml with its source"
            yield source.problem(("tags", index), f"unknown tag {tag}", do=do)


def _runbook_problems(source: Source, runbook: Any) -> Iterator[Problem]:
    if not isinstance(runbook, str):
        return
    found = re.findall(r"^## (.+?) *$", runbook, re.MULTILINE)
    if tuple(found) != HEADINGS:
        wanted = ", ".join(f"## {h}" for h in HEADINGS)
        yield source.problem(
            ("runbook",), f"runbook has the headings {', '.join(found) or 'none'}", f"expected {wanted}"
        )
        return
    parts = re.split(r"^## .+$", runbook, flags=re.MULTILINE)[1:]
    for heading, text in zip(HEADINGS, parts, strict=True):
        if not text.strip():
            yield source.problem(
                ("runbook",), f"runbook says nothing under ## {heading}", "expected at least a sentence"
            )


def _test_problems(source: Source, tests: Any) -> Iterator[Problem]:
    cases = [c for c in _list(tests) if isinstance(c, dict)]
    if isinstance(tests, list):
        for fires, word in ((True, "fires"), (False, "stays silent")):
            if not any(bool(c.get("fires")) is fires for c in cases):
                yield source.problem(("tests",), f"no test {word}", "expected at least one firing and one silent test")
    names: set[Any] = set()
    for index, case in enumerate(_list(tests)):
        if not isinstance(case, dict):
            continue
        at = ("tests", index)
        if isinstance(case.get("name"), str) and case["name"] in names:
            yield source.problem((*at, "name"), f"two tests are called {case['name']}", "expected another name")
        names.add(str(case.get("name")))
        positions = yield from _event_problems(source, case.get("events"), (*at, "events"))
        yield from _fires_problems(source, case.get("fires"), (*at, "fires"), positions)
        if isinstance(case.get("catalogue"), dict):
            yield from catalogue_problems(source, (*at, "catalogue"), versioned=False)


def _event_problems(source: Source, events: Any, path: Keys) -> Generator[Problem, None, int]:
    """Mistakes in the events of a test; returns how many events they are with `repeat` written out."""
    count = 0
    for index, event in enumerate(_list(events)):
        if not isinstance(event, dict):
            continue
        kind = kind_of(event)
        if kind is None:
            count += 1
            near = next(filter(None, (guess(word, KINDS) for word in map(str, event) if word not in KINDS)), "")
            yield source.problem((*path, index), "the event is not one of the known kinds", f"expected exactly one of {', '.join(KINDS)}", near)  # fmt: skip
            continue
        yield from problems_of(source, event, kind, (*path, index))
        repeat = event.get("repeat", 1)
        if isinstance(repeat, int) and not 1 <= repeat <= MAX_REPEAT:
            yield source.problem((*path, index, "repeat"), f"repeat is {repeat}", f"expected 1 to {MAX_REPEAT}")
        count += repeat if isinstance(repeat, int) else 1
    return count


def _fires_problems(source: Source, fires: Any, path: Keys, count: int) -> Iterator[Problem]:
    for index, item in enumerate(_list(fires)):
        positions = list(item) if isinstance(item, dict) else [item] if isinstance(item, int) else []
        for position in positions:
            number = int(position) if str(position).isdecimal() else 0
            if not 1 <= number <= count:
                yield source.problem(
                    (*path, index), f"position {position} is not in the test", f"expected 1 to {count}"
                )


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _override(
    rules: dict[str, Rule], overrides: Mapping[str, RuleConfig], origins: Mapping[str, str], problems: list[Problem]
) -> dict[str, Rule]:
    changed = dict(rules)
    for rule_id, wanted in overrides.items():
        rule = rules.get(rule_id)
        if rule is None:
            where = _origin(origins, f"rules.{rule_id}")
            problems.append(Problem(where, f"there is no rule called {rule_id}", "", guess(rule_id, rules) or "see `otelmon rules list`"))  # fmt: skip
            continue
        if not wanted.enabled:
            del changed[rule_id]
            continue
        mistakes = list(_params_problems(rule, wanted.params, f"rules.{rule_id}", origins))
        problems.extend(mistakes)
        if not mistakes:
            changed[rule_id] = _overridden(rule, wanted)
    return changed


def _overridden(rule: Rule, wanted: RuleConfig) -> Rule:
    changed = tuple(f"params.{key}" for key in wanted.params)
    if wanted.params:
        rule = _replace_params(rule, wanted.params)
    if wanted.severity is not None:
        changed = ("severity", *changed)
        raw = {**rule.raw, "severity": wanted.severity}
        version = _version(rule.id, {**raw, "severity_fixed": True}, rule.params)
        rule = msgspec.structs.replace(rule, severity=wanted.severity, severity_fixed=True, raw=raw, version=version)
    return msgspec.structs.replace(rule, overridden=changed)


def _params_problems(
    rule: Rule, params: Mapping[str, Any], where: str, origins: Mapping[str, str]
) -> Iterator[Problem]:
    whole = {**rule.raw.get("params", {}), **params}
    source = Source(where, whole, {})
    for problem in _params_mistakes(source, whole, rule.check.params_type, ()):
        yield msgspec.structs.replace(problem, where=_origin(origins, f"{where}.params"))


def _replace_params(rule: Rule, params: Mapping[str, Any]) -> Rule:
    whole = {**rule.raw.get("params", {}), **params}
    decoded = msgspec.convert(whole, rule.check.params_type)
    raw = {**rule.raw, "params": whole}
    return msgspec.structs.replace(rule, params=decoded, raw=raw, version=_version(rule.id, raw, decoded))


def _origin(origins: Mapping[str, str], key: str) -> str:
    """Where a setting was written; the nearest one under or around it; else its name."""
    exact = origins.get(key) or next((where for name, where in origins.items() if name.startswith(f"{key}.")), None)
    return f"{exact}: {key}" if exact else key


def _version(rule_id: str, raw: Mapping[str, Any], params: msgspec.Struct) -> str:
    """12 hex characters over everything that can change a finding (not prose, not tests)."""
    rest = {key: value for key, value in raw.items() if key not in _PROSE}
    return sha256([rule_id, rest, msgspec.to_builtins(params)])[7:19]
