"""Plug-ins: only what is allowed is imported, and what one does wrong is told and stops nothing."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from otelmon.app.laws import laws_and_plugins, load_laws
from otelmon.app.offline import check_paths
from otelmon.app.plugins import Plugin, load_plugins
from otelmon.checks import registry
from otelmon.rules.examples import run_rule_tests
from otelmon.vocabulary.config import Config, RuleConfig
from otelmon.vocabulary.errors import UserError
from tests.app.distributions import CHECK, RULE, acme, install
from tests.cli.conftest import Otelmon, transcript
from tests.cli.conftest import call as a_call
from tests.cli.conftest import otelmon as otelmon
from tests.cli.conftest import process as process


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of distributions on the path; what is imported from it is forgotten afterwards."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    modules, declared = set(sys.modules), set(registry._DECLARED)
    yield folder
    for name in set(sys.modules) - modules:
        if getattr(sys.modules[name], "__file__", None) and str(folder) in str(sys.modules[name].__file__):
            del sys.modules[name]
    for package in set(registry._DECLARED) - declared:
        del registry._DECLARED[package]


def named(name: str, allowed: tuple[str, ...]) -> Plugin:
    return next(plugin for plugin in load_plugins(allowed) if plugin.name == name)


def payment(folder: Path, amount: object) -> Path:
    file = folder / "runs.jsonl"
    wish = a_call("pay", "c1", amount=amount)
    file.write_text(
        transcript(
            "one", {"role": "user", "content": "pay"}, {"role": "assistant", "content": None, "tool_calls": [wish]},
            {"role": "tool", "tool_call_id": "c1", "content": "{}"}, {"role": "assistant", "content": "I looked."},
        )
    )  # fmt: skip
    return file


def test_none_is_imported_unless_it_is_allowed(site: Path) -> None:
    acme(site)
    plugin = named("acme-checks", ())
    assert (plugin.installed, plugin.allowed, plugin.loaded, plugin.version) == (True, False, False, "1.2")
    assert "acme_checks" not in sys.modules
    laws, _ = laws_and_plugins(Config())
    assert "acme_too_dear" not in laws.rules.rules


@pytest.mark.parametrize("name", ["acme-checks", "Acme_Checks", "acme.checks"])
def test_an_allowed_one_brings_its_check_and_its_rule(site: Path, tmp_path: Path, name: str) -> None:
    acme(site)
    config = Config(plugins=(name,))
    laws, plugins = laws_and_plugins(config)
    (plugin,) = (p for p in plugins if p.name == "acme-checks")
    assert (list(plugin.checks), [rule.id for rule in plugin.rules], plugin.errors) == (
        ["acme_checks_dear"], ["acme_too_dear"], (),
    )  # fmt: skip
    rule = laws.rules.rules["acme_too_dear"]
    assert rule.origin == "plug-in acme-checks"
    assert [result.verdict for result in run_rule_tests(rule)] == ["pass", "pass"]
    report = check_paths([payment(tmp_path, 500)], laws, config)
    assert "acme_too_dear" in [finding.rule_id for finding in report.findings]
    assert "acme_checks_dear" not in registry.load_checks()


def test_an_operators_rule_may_use_its_check_and_settings_may_change_its_rule(site: Path, tmp_path: Path) -> None:
    acme(site)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "mine_dear.yaml").write_text(RULE.format(id="mine_dear", check="acme_checks_dear"))
    config = Config(
        plugins=("acme-checks",), rules_dirs=(str(tmp_path / "mine"),),
        rules={"acme_too_dear": RuleConfig(severity="low", params={"most": 7})},
    )  # fmt: skip
    rules = load_laws(config).rules.rules
    assert rules["mine_dear"].origin == "folder"
    assert (rules["acme_too_dear"].severity, rules["acme_too_dear"].overridden) == ("low", ("severity", "params.most"))


BROKEN = {
    "import": ("raise ValueError('no luck')", "ValueError: no luck"),
    "syntax": ("def", "SyntaxError"),
    "exit": ("import sys; sys.exit(3)", "SystemExit: 3"),
    "missing": ("import nothing_like_it", "ModuleNotFoundError"),
    "empty": ("", "declares no check"),
    "types": (
        "from otelmon.checks.registry import check\n@check(on='call')\ndef broken_one(call: Nowhere, view, params): ...",
        "NameError",
    ),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_one_that_can_not_be_imported_stops_nothing(site: Path, kind: str) -> None:
    text, said = BROKEN[kind]
    install(site, "broken", {"broken_pack.py": text}, {"otelmon.checks": {"broken": "broken_pack"}})
    acme(site)
    laws, plugins = laws_and_plugins(Config(plugins=("broken", "acme-checks")))
    (error,) = next(plugin.errors for plugin in plugins if plugin.name == "broken")
    assert said in error
    assert {"acme_too_dear", "loop"} <= set(laws.rules.rules)


def test_rules_of_a_broken_plugin_are_left_out_and_settings_for_them_still_hold_nothing_up(site: Path) -> None:
    acme(site)
    (site / "acme_checks" / "checks.py").write_text("1 / 0")
    config = Config(plugins=("acme-checks",), rules={"acme_too_dear": RuleConfig(severity="low")})
    laws, plugins = laws_and_plugins(config)
    assert "acme_too_dear" not in laws.rules.rules
    (plugin,) = (p for p in plugins if p.name == "acme-checks")
    assert "ZeroDivisionError" in plugin.errors[0]
    assert "there is no check called acme_checks_dear" in plugin.errors[1]
    assert plugin.missing == ("acme_too_dear",)
    with pytest.raises(UserError, match="there is no rule called acme_too_deer"):
        load_laws(Config(plugins=("acme-checks",), rules={"acme_too_deer": RuleConfig(severity="low")}))


def test_what_made_an_operators_rule_fail_is_told_beside_it(site: Path, tmp_path: Path) -> None:
    acme(site)
    (site / "acme_checks" / "checks.py").write_text("1 / 0")
    (tmp_path / "mine_dear.yaml").write_text(RULE.format(id="mine_dear", check="acme_checks_dear"))
    with pytest.raises(UserError) as caught:
        load_laws(Config(plugins=("acme-checks",), rules_dirs=(str(tmp_path),)))
    assert "there is no check called acme_checks_dear" in str(caught.value)
    assert "plug-in acme-checks: acme_checks.checks can not be imported: ZeroDivisionError" in str(caught.value)


def test_names_that_are_taken_are_refused(site: Path) -> None:
    files = {
        "thief/__init__.py": "",
        "thief/checks.py": CHECK.format(name="loop") + CHECK.format(name="thief_own").partition('"""A check')[2].partition("\n\n\n")[2],
        "thief/loop.yaml": RULE.format(id="loop", check="thief_own"),
    }  # fmt: skip
    install(site, "thief", files, {"otelmon.checks": {"t": "thief.checks"}, "otelmon.rules": {"t": "thief"}})
    before = load_laws(Config()).rules
    laws, plugins = laws_and_plugins(Config(plugins=("thief",)))
    assert laws.rules.rules == before.rules
    errors = "\n".join(next(plugin.errors for plugin in plugins if plugin.name == "thief"))
    assert "its check loop is left out: otelmon has one of that name" in errors
    assert "rule loop is left out" in errors


def test_a_rule_id_that_the_operator_has_too_is_the_operators(site: Path, tmp_path: Path) -> None:
    acme(site)
    mine = RULE.format(id="acme_too_dear", check="acme_checks_dear").replace("severity: high", "severity: low")
    (tmp_path / "acme_too_dear.yaml").write_text(mine)
    laws, plugins = laws_and_plugins(Config(plugins=("acme-checks",), rules_dirs=(str(tmp_path),)))
    assert laws.rules.rules["acme_too_dear"].severity == "low"
    (plugin,) = (p for p in plugins if p.name == "acme-checks")
    assert "rule acme_too_dear is also in" in plugin.errors[0]
    assert plugin.rules == ()


def test_a_check_that_raises_is_counted_and_the_rest_goes_on(site: Path, tmp_path: Path) -> None:
    acme(site)
    config = Config(plugins=("acme-checks",))
    report = check_paths([payment(tmp_path, "five")], load_laws(config), config)
    assert report.check_errors == {"acme_too_dear": 1}
    assert report.raised["acme_too_dear"].startswith("TypeError: ")
    assert " at checks.py:" in report.raised["acme_too_dear"]


@pytest.mark.parametrize(
    "value",
    [
        "FOLDER = str(Path(__file__).parent / 'r')",
        "FOLDER = Path(__file__).parent / 'r'",
        "def FOLDER(): return Path(__file__).parent / 'r'",
    ],
)
def test_a_folder_may_be_a_path_or_what_a_function_returns(site: Path, value: str) -> None:
    rule = RULE.format(id="only_rules", check="match").replace(
        "params: {most: 100}", "params: {calls: {tools: [pay]}, when: 'call.arguments.amount > 100'}"
    )
    files = {"only/__init__.py": f"from pathlib import Path\n{value}\n", "only/r/only_rules.yaml": rule}
    install(site, "only", files, {"otelmon.rules": {"r": "only:FOLDER"}})
    plugin = named("only", ("only",))
    assert ([r.id for r in plugin.rules], plugin.errors) == (["only_rules"], ())


@pytest.mark.parametrize(
    "value", ["FOLDER = 3", "FOLDER = '/no/such/folder'", "def FOLDER(): raise OSError('gone')", ""]
)
def test_what_is_no_folder_is_told(site: Path, value: str) -> None:
    install(site, "only", {"only/__init__.py": value}, {"otelmon.rules": {"r": "only:FOLDER"}})
    (error,) = named("only", ("only",)).errors
    assert "only:FOLDER gives no folder of rules" in error


def test_one_that_is_not_installed_is_told() -> None:
    plugin = named("No_Such", ("No_Such",))
    assert (plugin.installed, plugin.allowed, plugin.loaded) == (False, True, False)
    assert "No_Such is allowed and not installed" in plugin.errors[0]


def test_the_verb_lists_what_is_installed_allowed_and_loaded(
    process: Otelmon, tmp_path: Path, otelmon: Callable[..., object]
) -> None:
    site = tmp_path / "site"
    site.mkdir()
    acme(site)
    install(site, "broken", {"broken_pack.py": "1 / 0"}, {"otelmon.checks": {"broken": "broken_pack"}})
    install(site, "other", {"other_pack.py": "print('imported')"}, {"otelmon.checks": {"other": "other_pack"}})
    path = str(site)
    done = process("plugins", PYTHONPATH=path)
    assert (done.returncode, done.stdout.count("not allowed")) == (0, 3)
    (tmp_path / "otelmon.toml").write_text('plugins = ["acme-checks", "broken", "absent"]\n')
    done = process("plugins", PYTHONPATH=path)
    assert done.returncode == 1
    states = {line.split()[0]: line.split("  ")[-3:] for line in done.stdout.splitlines()[1:]}
    assert set(states) == {"absent", "acme-checks", "broken", "other"}
    assert "broken: broken_pack can not be imported: ZeroDivisionError" in done.stderr
    assert "imported\n" not in done.stdout
    document = {p["name"]: p for p in json.loads(process("plugins", "--json", PYTHONPATH=path).stdout)}
    assert {name: plugin["state"] for name, plugin in document.items()} == {
        "absent": "missing", "acme-checks": "loaded", "broken": "failed", "other": "not allowed",
    }  # fmt: skip
    listed = json.loads(process("rules", "list", "--json", PYTHONPATH=path).stdout)
    assert [r["origin"] for r in listed if r["rule"] == "acme_too_dear"] == ["plug-in acme-checks"]
    shown = process("rules", "show", "acme_too_dear", PYTHONPATH=path).stdout
    assert f"from         plug-in acme-checks: {site}/acme_checks/rules/acme_too_dear.yaml" in shown
    assert process("rules", "test", "acme_too_dear", PYTHONPATH=path).returncode == 0
    doctor = process("--set", "web.listen=127.0.0.1:9", "doctor", PYTHONPATH=path)
    assert "WRONG  plug-in broken: broken_pack can not be imported" in doctor.stdout
    assert "-      plug-in other: 1.2 is installed and not loaded" in doctor.stdout


def test_without_any_the_verb_says_so(otelmon: Otelmon) -> None:
    done = otelmon("plugins")
    assert (done.returncode, done.stdout) == (
        0,
        "no distribution with checks or rules is installed, and none is allowed\n",
    )
