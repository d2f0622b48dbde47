"""What SQL texts, shell commands and HTTP methods do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otelmon.checks.lib.shelltext import classify_argv, classify_shell, http_method
from otelmon.checks.lib.sqltext import classify_sql
from otelmon.checks.lib.verbs import STRENGTH


@pytest.mark.parametrize(
    ("text", "effect", "repeat"),
    [
        ("select 1", "read", "absolute"),
        ("select * from drop_log where note = 'delete from x'", "read", "absolute"),
        ("with a as (select 1) select * from a", "read", "absolute"),
        ("-- tidy up\ndelete from x", "destructive", "absolute"),
        ("SELECT 1; DROP TABLE a", "destructive", "absolute"),
        ("with d as (delete from a returning *) select * from d", "destructive", "absolute"),
        ("truncate table a", "destructive", "absolute"),
        ("alter table a add b int", "write", "absolute"),
        ("alter table a drop column b", "destructive", "absolute"),
        ("revoke all on a from b", "destructive", "absolute"),
        ("delete a from a join b on a.id = b.id", "destructive", "absolute"),
        ("merge into a using b on a.i = b.i when matched then delete", "destructive", "absolute"),
        ("with a as (delete from b returning *) select * from a", "destructive", "absolute"),
        ("select * from a for update", "read", "absolute"),
        ("insert into a values (1)", "write", "additive"),
        ("insert into a values (1) on conflict do nothing", "write", "absolute"),
        ("update a set b = 5", "write", "absolute"),
        ("update a set b = b - 5 where id = 1", "write", "additive"),
        ("create table a as select 1", "write", "absolute"),
        ("select * into b from a", "write", "absolute"),
        ("explain delete from a", "read", "absolute"),
        ("explain analyze delete from a", "destructive", "absolute"),
        ("describe a", "read", "absolute"),
        ("vacuum", "write", "absolute"),
        ("call close_books(2027)", "write", "additive"),
        ("with x as ((( select 1", "read", "absolute"),
        ("delete from a where ((", "destructive", "absolute"),
        ("insert into t " + "x" * 30_000, "write", "additive"),
    ],
)
def test_the_strongest_statement_decides(text: str, effect: str, repeat: str) -> None:
    found = classify_sql(text)
    assert found is not None
    assert (found.effect, found.repeat) == (effect, repeat)


@pytest.mark.parametrize(
    "text", ["", "pumps and filters", "delete the old notes please", "update me on this", "select one"]
)
def test_prose_is_no_sql(text: str) -> None:
    assert classify_sql(text) is None


@pytest.mark.parametrize(
    ("line", "effect", "repeat"),
    [
        ("ls -la | grep x", "read", "absolute"),
        ("cat a 2>/dev/null | sort 2>&1", "read", "absolute"),
        ("grep -r 'rm -rf' .", "read", "absolute"),
        ('echo "a > b"', "read", "absolute"),
        ("cat a > b", "write", "absolute"),
        ("echo 'batch done' >> ledger.txt", "write", "additive"),
        ("mv a b && ls", "write", "absolute"),
        ("rm -rf /tmp/x", "destructive", "absolute"),
        ("sudo rm x", "destructive", "absolute"),
        ("ls; find . | xargs rm", "destructive", "absolute"),
        ("find . -name '*.pyc' -delete", "destructive", "absolute"),
        ("find . -exec rm {} +", "destructive", "absolute"),
        ("bash -c 'rm x'", "destructive", "absolute"),
        ("echo $(rm x)", "destructive", "absolute"),
        ("for f in *; do rm $f; done", "destructive", "absolute"),
        ("cat <<EOF > f\nrm x\nEOF\n", "write", "absolute"),
        ("git status && git diff", "read", "absolute"),
        ("git push", "write", "absolute"),
        ("git push --force origin main", "destructive", "absolute"),
        ("git commit -m 'rm x'", "write", "additive"),
        ("git branch -D old", "destructive", "absolute"),
        ("curl https://example.com | jq .", "read", "absolute"),
        ("curl -X POST https://example.com", "write", "additive"),
        ("curl --request=DELETE https://example.com", "destructive", "absolute"),
        ("curl -d a=b https://example.com", "write", "additive"),
        ("kubectl get pods", "read", "absolute"),
        ("kubectl delete pod x", "destructive", "absolute"),
        ("aws s3 rm s3://b/k", "destructive", "absolute"),
        ("aws ec2 describe-instances", "read", "absolute"),
        ("psql -c 'drop table x'", "destructive", "absolute"),
        ("sed -i s/a/b/ f", "write", "absolute"),
        ("tee -a log", "write", "additive"),
        ("tar tzf a.tgz", "read", "absolute"),
        ("tar xzf a.tgz", "write", "absolute"),
        ("FOO=1 env", "read", "absolute"),
        ("mail -s hi kim@example.com", "external_send", "additive"),
        ("python script.py", "unknown", "additive"),
        ("bash deploy.sh", "unknown", "additive"),
        ("docker", "read", "absolute"),
        ("aws lambda invoke f", "unknown", "additive"),
        ("aws sqs send-message", "write", "additive"),
        ("git stash list", "read", "absolute"),
        ("git remote -v", "read", "absolute"),
        ("git branch", "read", "absolute"),
        ("npm install", "write", "absolute"),
        ("docker rmi a", "destructive", "absolute"),
        ("ls && ./deploy.sh", "unknown", "additive"),
        ("echo 'open quote", "unknown", "additive"),
        ("env X=1 rm a", "destructive", "absolute"),
        ("env", "read", "absolute"),
        ("eval 'rm a'", "destructive", "absolute"),
        ("ssh -i key -p 22 host rm a", "destructive", "absolute"),
        ("ssh host ls", "read", "absolute"),
        ("ssh host", "unknown", "additive"),
        ("mkfs.ext4 /dev/sda", "destructive", "absolute"),
        ("gcloud compute instances delete x", "destructive", "absolute"),
        ("gcloud compute instances list", "read", "absolute"),
        ("aws s3 cp a s3://b", "write", "additive"),
        ("redis-cli -h a FLUSHALL", "destructive", "absolute"),
        ("redis-cli get a", "read", "absolute"),
        ("redis-cli set a b", "write", "absolute"),
        ("psql <<< 'delete from t'", "destructive", "absolute"),
        ("rsync -a --delete a b", "destructive", "absolute"),
        ("curl -s -G https://x -d a=1", "read", "absolute"),
        ("curl -o a https://x", "write", "absolute"),
        ("wget https://x", "write", "absolute"),
        ("wget -qO- https://x", "read", "absolute"),
        ("wget -O - https://x", "read", "absolute"),
        ("python --version", "read", "absolute"),
        ("Remove-Item a", "destructive", "absolute"),
        ("Get-Process", "read", "absolute"),
        ("Stop-Process -Name x", "destructive", "absolute"),
        ("", "unknown", "additive"),
    ],
)
def test_the_strongest_part_of_a_line_decides(line: str, effect: str, repeat: str) -> None:
    found = classify_shell(line)
    assert (found.effect, found.repeat) == (effect, repeat)


def test_a_program_with_its_arguments_as_a_list() -> None:
    assert classify_argv(["/bin/rm", "-rf", "x"]).effect == "destructive"
    assert classify_argv([]).effect == "unknown"


def test_nesting_is_bounded() -> None:
    line = "rm x"
    for _ in range(40):
        line = f"bash -c '{line}'" if "'" not in line else f"echo $({line})"
    assert classify_shell(line).effect in STRENGTH


@pytest.mark.parametrize(
    ("method", "effect"), [("get", "read"), ("POST", "write"), ("Delete", "destructive"), ("PUT", "write")]
)
def test_methods(method: str, effect: str) -> None:
    found = http_method(method)
    assert found is not None
    assert found.effect == effect


@given(st.text(max_size=200))
def test_any_text_is_judged_without_an_error(text: str) -> None:
    assert classify_shell(text).effect in STRENGTH
    found = classify_sql(text)
    assert found is None or found.effect in STRENGTH


@pytest.mark.parametrize(
    "text",
    ["/*" * 9_999, "*/" + "/*" * 9_999, "(" * 20_000, "select " + "(" * 9_000 + "1", "with a as (" * 1_800, "$(" * 9_999,
     "<<a\n" * 5_000, "`" * 19_999, "'" * 19_999, "a;" * 9_999, "delete from t where " + "a=1 and " * 2_400 + "b=2"],
)  # fmt: skip
def test_texts_written_to_be_slow_are_not(text: str) -> None:
    """The time limit of the test run is the bar; a quadratic pattern takes minutes here."""
    for _ in range(3):
        classify_sql(text)
        classify_shell(text)
