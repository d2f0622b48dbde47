"""The house rules that no linter knows."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODULES = sorted((ROOT / "otelmon").rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
LONGEST_MODULE, LONGEST_FUNCTION = 400, 60
TOP = {
    ".ci", ".gitignore", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "Dockerfile", "LICENSE", "Makefile", "README.md",
    "SECURITY.md", "collectors", "dashboards", "deploy", "docs", "otelmon", "pyproject.toml", "requirements-dev.lock",
    "requirements.lock", "rules", "tests",
}  # fmt: skip
NEEDED = TOP - {"CONTRIBUTING.md", "SECURITY.md", "Dockerfile"}
STARTS_PROCESSES = {
    "otelmon/app/bench/throughput.py": "a monitor of its own to measure",
    "otelmon/app/bench/quality.py": "judging on every core",
    "otelmon/cli/demo.py": "the sample agents",
}
FOREIGN_KEY = re.compile(
    r"""["'](?:gen_ai|openinference|traceloop|langfuse|langsmith|mlflow|logfire|llm|ai|crewai|pydantic_ai|smolagents)\.[a-z_]+"""
)
KNOWS_FOREIGN_KEYS = ("otelmon/assemble/dialects/", "otelmon/instrument/", "otelmon/app/bench/traffic.py")
PROTOCOLS = {  # described once, where the protocol is
    "matches", "read", "change", "mine", "publish", "consumer", "partitions", "partition_of", "latest", "close", "poll",
    "commit", "lag", "step", "stats", "counters", "collect", "get_command", "list_commands",
}  # fmt: skip


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def test_modules_are_short() -> None:
    long = {name(p): n for p in MODULES if (n := len(p.read_text(encoding="utf-8").splitlines())) >= LONGEST_MODULE}
    assert long == {}


def test_functions_are_short() -> None:
    long = {f"{name(p)}:{f.name}": lines(f) for p in MODULES for f in functions(p) if lines(f) > LONGEST_FUNCTION}
    assert long == {}
    lengths = sorted(lines(f) for p in MODULES for f in functions(p))
    assert lengths[len(lengths) * 95 // 100] < 40


def test_every_module_says_what_it_is() -> None:
    assert [name(p) for p in MODULES if not ast.get_docstring(tree_of(p))] == []


def undocumented(path: Path) -> Iterator[str]:
    waiting: list[tuple[ast.AST, str]] = [(tree_of(path), "")]
    while waiting:
        parent, prefix = waiting.pop()
        for node in ast.iter_child_nodes(parent):
            if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) or node.name[0] == "_":
                continue
            if isinstance(node, ast.ClassDef):
                waiting.append((node, f"{prefix}{node.name}."))
                if not any(isinstance(member, ast.FunctionDef) for member in node.body):
                    continue  # a table of fields, which say themselves what they are
            elif (
                lines(node) <= 4
                or node.name in PROTOCOLS
                or any(isinstance(d, ast.Name) and d.id == "overload" for d in node.decorator_list)
            ):
                continue
            if not ast.get_docstring(node):
                yield f"{name(path)}:{prefix}{node.name}"


def test_every_public_name_is_described() -> None:
    assert [found for path in MODULES for found in undocumented(path)] == []


def test_nothing_is_left_to_be_done() -> None:
    word = re.compile(r"\b(?:TODO|FIX" + r"ME|XXX|HACK)\b")
    assert [name(p) for p in MODULES if word.search(p.read_text(encoding="utf-8")) and p != Path(__file__)] == []
    stubs = [
        f"{name(p)}:{f.name}"
        for p in MODULES
        for f in functions(p)
        if isinstance(f.body[-1], ast.Pass) or "NotImplementedError" in ast.unparse(f.body[-1])
    ]
    assert stubs == []


def test_production_code_states_nothing_by_assert() -> None:
    found = [f"{name(p)}:{n.lineno}" for p in MODULES for n in ast.walk(tree_of(p)) if isinstance(n, ast.Assert)]
    assert found == []


def test_only_these_start_processes() -> None:
    starts = re.compile(
        r"^\s*(?:import|from) (?:subprocess|multiprocessing|pty)|os\.(?:system|popen|exec|spawn|fork)", re.M
    )
    found = {name(p) for p in MODULES if starts.search(p.read_text(encoding="utf-8"))}
    assert found == set(STARTS_PROCESSES)


def test_nothing_is_evaluated_or_unpickled() -> None:
    banned = re.compile(r"\b(?:pickle|marshal|shelve|dill)\b|(?<![\w.])(?:eval|exec)\(|yaml\.(?:load|unsafe_load)\(")
    assert [name(p) for p in MODULES if banned.search(p.read_text(encoding="utf-8"))] == []


def test_foreign_keys_are_known_in_one_place() -> None:
    found = {
        name(p): match[0]
        for p in MODULES
        if not name(p).startswith(KNOWS_FOREIGN_KEYS) and (match := FOREIGN_KEY.search(p.read_text(encoding="utf-8")))
    }
    assert found == {}


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [path for line in listed.split("\0") if line and (path := ROOT / line).is_file()]


def test_the_top_of_the_tree_holds_what_belongs_there() -> None:
    found = {path.relative_to(ROOT).parts[0] for path in tracked()}
    assert found - TOP == set()
    assert set(NEEDED) - found == set()


def test_no_file_names_a_machine() -> None:
    home = re.compile(r"(?<![\w.:/-])/(?:work|root|home/(?!nonroot|otelmon|user\b|appuser)\w+|Users)/[\w.]")
    found = {}
    for path in tracked():
        text = path.read_text(encoding="utf-8", errors="replace")
        for match in home.finditer(text):
            found[name(path)] = text[match.start() : match.end() + 20]
    assert found == {}


def test_locks_name_no_place() -> None:
    for lock in ("requirements.lock", "requirements-dev.lock"):
        text = re.sub(r"(?m)^#.*", "", (ROOT / lock).read_text(encoding="utf-8"))
        assert "--hash=sha256:" in text
        assert re.findall(r"https?://\S+|--index-url|--find-links|--trusted-host|file:", text) == []


@pytest.mark.parametrize(
    "command", [["lint-imports", "--no-cache"], ["otelmon", "build", "--check"]], ids=["imports go down", "no drift"]
)
def test_a_tool_agrees(command: list[str]) -> None:
    tool = Path(sys.executable).with_name(command[0])
    done = subprocess.run([tool, *command[1:]], cwd=ROOT, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_folder_of_tests_is_a_package() -> None:
    folders = {path.parent for path in TESTS}
    assert [name(folder) for folder in folders if not (folder / "__init__.py").exists()] == []


def test_no_test_is_skipped() -> None:
    skips = re.compile(r"pytest\.(?:skip|importorskip|xfail)\(|mark\.(?:skip|xfail)|unittest\.mock")
    assert [name(p) for p in TESTS if skips.search(p.read_text(encoding="utf-8")) and p != Path(__file__)] == []
