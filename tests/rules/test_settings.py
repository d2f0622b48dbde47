"""Settings: which layer wins, where each value is from, and every mistake with its place."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from otelmon.rules.settings import load_settings
from otelmon.rules.settings_rules import is_loopback
from otelmon.vocabulary.config import Config, RuleConfig, Suppression
from otelmon.vocabulary.errors import UserError

TODAY = date(2026, 11, 30)


def write(tmp_path: Path, text: str, name: str = "otelmon.toml") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def messages(file: Path | None, env: dict[str, str] | None = None, cli: dict[str, Any] | None = None) -> list[str]:
    with pytest.raises(UserError) as caught:
        load_settings(file, env or {}, cli or {}, TODAY)
    folder = f"{file.parent}/" if file else "no folder"
    return [str(p).replace(folder, "") for p in caught.value.problems]


def test_with_nothing_given_the_defaults_hold() -> None:
    settings = load_settings(None, {}, {})
    assert settings.config == Config()
    assert set(settings.origin.values()) == {"default"}
    assert "receive.http" in settings.origin


def test_each_layer_wins_over_the_one_below(tmp_path: Path) -> None:
    file = write(tmp_path, '[receive]\nhttp = "127.0.0.1:1"\ngrpc = "127.0.0.1:2"\n\n[web]\nlisten = "127.0.0.1:3"\n')
    env = {"OTELMON_RECEIVE__GRPC": "127.0.0.1:22", "OTELMON_WEB__LISTEN": "127.0.0.1:33"}
    settings = load_settings(file, env, {"web.listen": "127.0.0.1:333"})
    config, origin = settings.config, settings.origin
    assert (config.receive.http, origin["receive.http"]) == ("127.0.0.1:1", f"{file}:2")
    assert (config.receive.grpc, origin["receive.grpc"]) == ("127.0.0.1:22", "OTELMON_RECEIVE__GRPC")
    assert (config.web.listen, origin["web.listen"]) == ("127.0.0.1:333", "--set web.listen")
    assert origin["data"] == "default"


@pytest.mark.parametrize(
    ("name", "value", "key", "expected"),
    [
        ("OTELMON_DATA_DIR", "./d", "data", "./d"),
        ("OTELMON_RULES_DIRS", "a, b,", "rules_dirs", ("a", "b")),
        ("OTELMON_RULES_DIRS", '["a,b"]', "rules_dirs", ("a,b",)),
        ("OTELMON_STORE__BATCH_SECONDS", "2", "store.batch_seconds", 2.0),
        ("OTELMON_RECEIVE__MAX_DEPTH", "9", "receive.max_depth", 9),
        ("OTELMON_SPOOL__FSYNC", "false", "spool.fsync", False),
        ("OTELMON_SPOOL__FSYNC", "0", "spool.fsync", False),
        ("OTELMON_KAFKA__SASL_PASSWORD", "123", "kafka.sasl_password", "123"),
        ("OTELMON_RULES__LOOP__SEVERITY", "high", "rules", {"loop": RuleConfig(severity="high")}),
        ("OTELMON_RULES__LOOP__PARAMS__MAX", "3", "rules", {"loop": RuleConfig(params={"max": 3})}),
        ("OTELMON_RULES__LOOP__PARAMS__WORD", "abc", "rules", {"loop": RuleConfig(params={"word": "abc"})}),
        ("OTELMON_RULES__LOOP", '{"enabled": false}', "rules", {"loop": RuleConfig(enabled=False)}),
        (
            "OTELMON_SUPPRESS",
            '[{"rule": "*", "reason": "r", "expires": "2027-01-01"}]',
            "suppress",
            (Suppression(rule="*", reason="r", expires="2027-01-01"),),
        ),
    ],
)
def test_variables_are_read_as_the_type_of_the_setting(name: str, value: str, key: str, expected: Any) -> None:
    found: Any = load_settings(None, {name: value}, {}).config
    for part in key.split("."):
        found = getattr(found, part)
    assert found == expected
    assert type(found) is type(expected)


def test_options_may_be_values_or_texts() -> None:
    cli: dict[str, object] = {
        "data": Path("d"),
        "rules_dirs": ("a",),
        "spool.fsync": False,
        "web.token": "t",
        "receive.max_depth": "5",
    }
    config = load_settings(None, {}, cli).config
    assert (config.data, config.rules_dirs, config.spool.fsync, config.receive.max_depth) == ("d", ("a",), False, 5)


def test_variables_of_others_are_left_alone() -> None:
    env = {
        "OTELMON_DATA": "/data/sets", "OTELMON_DEBUG": "1",
        "OTELMON_SERVICE_HOST": "10.0.0.1", "OTELMON_SERVICE_PORT": "4318", "OTELMON_SERVICE_PORT_HTTP": "4318",
        "OTELMON_PORT": "tcp://10.0.0.1:4318", "OTELMON_PORT_4318_TCP": "x", "OTELMON_PORT_4318_TCP_ADDR": "x", "HOME": "/",
    }  # fmt: skip
    assert load_settings(None, env, {}).config == Config()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('[receive]\n\ngrcp = "x"', ["otelmon.toml:3: unknown setting receive.grcp; did you mean grpc?"]),
        ("[recieve]\ngrpc = ''", ["otelmon.toml:1: unknown setting recieve; did you mean receive?"]),
        ("data = 3", ["otelmon.toml:1: data is 3; expected text"]),
        ('bus = "kafak"', ['otelmon.toml:1: bus is "kafak"; expected one of embedded, kafka; did you mean kafka?']),
        ("[store]\nbatch_seconds = '1'", ['otelmon.toml:2: store.batch_seconds is "1"; expected a number']),
        ("[store]\nretention_days = -1", ["otelmon.toml:2: store.retention_days is -1.0; expected more than 0"]),
        ("[spool]\nretain_bytes = -1", ["otelmon.toml:2: spool.retain_bytes is -1; expected 0 or more"]),
        ('[web]\nlisten = "here"', ['otelmon.toml:2: web.listen is "here"; expected host:port']),
        ('[web]\nlisten = "127.0.0.1:99999"', ['otelmon.toml:2: web.listen is "127.0.0.1:99999"; expected host:port']),
        ('[web]\nlisten = "0.0.0.0:80"', ['otelmon.toml:2: web.listen is "0.0.0.0:80", which other machines can reach, and web.token is not set; expected a token; set web.token (or web.token_file), or listen on 127.0.0.1']),
        ('[receive]\nhttp = "[::]:80"\ntoken = "t"', ['otelmon.toml:2: receive.http is "[::]:80", which other machines can reach, without receive.tls_cert and receive.tls_key; expected TLS; set both, or listen on 127.0.0.1']),
        ('[rules.loop]\nseverity = "x"', ['otelmon.toml:2: rules.loop.severity is "x"; expected one of info, low, medium, high, critical']),
        ("[rules.loop]\nparam = {}", ["otelmon.toml:2: unknown setting rules.loop.param; did you mean params?"]),
        ('[[suppress]]\nrule = "a"', ["otelmon.toml:1: reason is missing; expected text", "otelmon.toml:1: expires is missing; expected text"]),
        (
            '[[suppress]]\nrule = "a"\nreason = "r"\nexpires = "2027-01-01"\n[[suppress]]\nrule = "b"\nreason = " "\nexpires = "soon"\nwhere = {agnt = "x"}',
            [
                "otelmon.toml:9: unknown setting suppress[1].where.agnt; did you mean agent?",
                'otelmon.toml:8: suppress[1].expires is "soon"; expected a date such as 2027-01-31',
                "otelmon.toml:7: suppress[1].reason is empty; expected why this is accepted",
            ],
        ),
        ("data = ", ["otelmon.toml: is not TOML: Invalid value (at end of document)"]),
        ("a = 1\ndata = =", ["otelmon.toml:2:8: is not TOML: Invalid value"]),
        ('web = "x"', ['otelmon.toml:1: web is "x"; expected a map']),
        ("[web]\ntoken = 5", ["otelmon.toml:2: web.token is not what was expected; expected text"]),
        ('data = 3\nbus = "x"\nfoo = 1', [
            "otelmon.toml:3: unknown setting foo; known: data, bus, catalogue, rules_dirs, plugins, receive, web, spool, kafka, assemble, detect, store, incidents, rules, suppress",
            "otelmon.toml:1: data is 3; expected text",
            'otelmon.toml:2: bus is "x"; expected one of embedded, kafka',
        ]),
    ],
)  # fmt: skip
def test_a_mistake_in_the_file_is_told_with_its_line(tmp_path: Path, text: str, expected: list[str]) -> None:
    assert messages(write(tmp_path, text)) == expected


@pytest.mark.parametrize(
    ("env", "cli", "expected"),
    [
        ({"OTELMON_RECIEVE__HTTP": "x"}, {}, "OTELMON_RECIEVE__HTTP: unknown setting recieve; did you mean receive?"),
        ({"OTELMON_RECEIVE__HTPP": "x"}, {}, "OTELMON_RECEIVE__HTPP: unknown setting receive.htpp; did you mean http?"),
        ({"OTELMON_RECEIVE__MAX_DEPTH": "deep"}, {}, 'OTELMON_RECEIVE__MAX_DEPTH: receive.max_depth is "deep"; expected a whole number'),
        ({"OTELMON_SPOOL__FSYNC": "maybe"}, {}, 'OTELMON_SPOOL__FSYNC: spool.fsync is "maybe"; expected true or false'),
        ({"OTELMON_BUS__KIND": "kafka", "OTELMON_BUS": "kafka"}, {}, "OTELMON_BUS__KIND: bus holds no further keys; check the name"),
        ({"OTELMON_BUS__KIND__NAME": "kafka", "OTELMON_BUS": "kafka"}, {}, "OTELMON_BUS__KIND__NAME: bus.kind holds no further keys; check the name"),
        ({"OTELMON_SUPPRESS": "["}, {}, 'OTELMON_SUPPRESS: suppress is "["; expected a list'),
        ({}, {"web.listn": "x"}, "--set web.listn: unknown setting web.listn; did you mean listen?"),
        ({}, {"assemble.idle_seconds": 0}, "--set assemble.idle_seconds: assemble.idle_seconds is 0.0; expected more than 0"),
    ],
)  # fmt: skip
def test_a_mistake_elsewhere_is_told_with_the_name(env: dict[str, str], cli: dict[str, Any], expected: str) -> None:
    assert messages(None, env, cli) == [expected]


def test_every_field_a_suppression_may_name() -> None:
    text = '[{"rule": "*", "where": {"agent": "a", "tool": "t", "environment": "e", "service": "s"}, "reason": "r", "expires": "2027-01-01"}]'
    (found,) = load_settings(None, {"OTELMON_SUPPRESS": text}, {}).config.suppress
    assert set(found.where) == {"agent", "tool", "environment", "service"}


def test_some_limits_may_be_nothing_at_all() -> None:
    config = load_settings(None, {}, {"store.batch_seconds": 0, "spool.min_free_bytes": 0}).config
    assert (config.store.batch_seconds, config.spool.min_free_bytes) == (0.0, 0)


def test_the_largest_port_is_one() -> None:
    assert load_settings(None, {}, {"web.listen": "127.0.0.1:65535"}).config.web.listen == "127.0.0.1:65535"


def test_a_door_can_be_turned_off() -> None:
    assert load_settings(None, {"OTELMON_RECEIVE__GRPC": ""}, {"receive.http": ""}).config.receive.grpc == ""


def test_a_door_that_others_can_reach_needs_a_token_and_tls() -> None:
    env = {"OTELMON_RECEIVE__TOKEN": "t", "OTELMON_RECEIVE__TLS_CERT": "c.pem", "OTELMON_RECEIVE__TLS_KEY": "k.pem"}
    config = load_settings(None, env, {"receive.http": "0.0.0.0:4318", "web.listen": ":80", "web.token": "t"}).config
    assert config.receive.http == "0.0.0.0:4318"
    for name in env:
        rest = {key: value for key, value in env.items() if key != name}
        assert len(messages(None, rest, {"receive.http": "0.0.0.0:4318"})) == 1


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert messages(tmp_path / "no.toml") == [
        "no.toml: can not be read (No such file or directory); give a readable file"
    ]


def test_secrets_are_masked_and_their_wrong_values_never_shown(tmp_path: Path) -> None:
    file = write(tmp_path, '[web]\ntoken = "open sesame"\n')
    settings = load_settings(file, {"OTELMON_KAFKA__SASL_PASSWORD": "hunter2"}, {})
    rows = {key: (value, origin) for key, value, origin in settings.describe()}
    assert rows["web.token"] == ("(set)", f"{file}:2")
    assert rows["kafka.sasl_password"] == ("(set)", "OTELMON_KAFKA__SASL_PASSWORD")
    assert rows["receive.token"] == ("", "default")
    assert "hunter2" not in str(rows)
    assert "sesame" not in str(rows)


def test_a_secret_can_stand_in_its_own_file(tmp_path: Path) -> None:
    secret = write(tmp_path, "hunter2\n", "secret")
    file = write(tmp_path, f'[kafka]\nsasl_password_file = "{secret}"\n')
    settings = load_settings(file, {"OTELMON_WEB__TOKEN_FILE": str(secret)}, {})
    assert settings.config.kafka.sasl_password == "hunter2"
    assert settings.config.web.token == "hunter2"
    assert settings.origin["web.token"] == "OTELMON_WEB__TOKEN_FILE"
    assert settings.origin["kafka.sasl_password"] == f"{file}:2"


def test_a_secret_given_twice_or_nowhere_is_told(tmp_path: Path) -> None:
    assert messages(None, {"OTELMON_WEB__TOKEN_FILE": "/nowhere/x"}) == [
        "OTELMON_WEB__TOKEN_FILE: /nowhere/x can not be read (No such file or directory); expected a file with the secret"
    ]
    secret = write(tmp_path, "x", "secret")
    (tmp_path / "latin").write_bytes(b"\xe9")
    assert messages(None, {"OTELMON_WEB__TOKEN_FILE": str(tmp_path / "latin")}) == [
        f"OTELMON_WEB__TOKEN_FILE: {tmp_path / 'latin'} can not be read (not UTF-8); expected a file with the secret"
    ]
    assert messages(None, {"OTELMON_WEB__TOKEN_FILE": str(secret), "OTELMON_WEB__TOKEN": "y"}) == [
        "OTELMON_WEB__TOKEN_FILE: web.token is given too; expected one of the two; remove token or token_file"
    ]


@pytest.mark.parametrize(("expires", "expired"), [("2026-11-29", True), ("2026-11-30", False), ("2027-01-01", False)])
def test_expired_suppressions_are_reported(tmp_path: Path, expires: str, expired: bool) -> None:
    text = f'[[suppress]]\nrule = "loop"\nreason = "known"\nexpires = "{expires}"\n'
    file = write(tmp_path, text)
    found = [str(p) for p in load_settings(file, {}, {}, TODAY).expired]
    said = f"{file}:1: the suppression of loop (known) expired on {expires}; remove it, or give it another date"
    assert found == ([said] if expired else [])


def test_every_setting_is_described_once_with_its_value(tmp_path: Path) -> None:
    file = write(
        tmp_path, '[rules.loop]\nparams = {max = 3}\n[[suppress]]\nrule = "a"\nreason = "r"\nexpires = "2027-01-01"\n'
    )
    rows = load_settings(file, {}, {}).describe()
    keys = [key for key, _, _ in rows]
    assert len(keys) == len(set(keys))
    assert keys[0] == "data"
    assert ("rules.loop.params", '{"max": 3}', f"{file}:2") in rows
    assert ("rules.loop.enabled", "true", "default") in rows
    assert ("receive.http", "127.0.0.1:4318", "default") in rows
    assert [row[2] for row in rows if row[0] == "suppress"] == [f"{file}:3"]


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("localhost", True), ("::1", True), ("0.0.0.0", False), ("::", False), ("", False), ("example.com", False)],
)  # fmt: skip
def test_loopback(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected
