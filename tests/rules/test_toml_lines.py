"""On which line a value of a TOML file stands."""

from __future__ import annotations

import tomllib

from otelmon.rules.toml_lines import toml_lines

TEXT = """\
# a comment
data = "x"
many = [
  "[not.a.table]",
  "b",
]
text = '''
key = 1
[neither]
'''

[a]
one = 1

[a.b]  # with a comment
"two words" = {x = 1, y = [1, 2]}
c.d = 3

[[list]]
name = 1
[list.inner]
deep = 1
[[list]]
name = 2
[list.inner]
deep = 2
"""


def test_every_table_and_value_has_its_line() -> None:
    tomllib.loads(TEXT)
    found = toml_lines(TEXT)
    assert found[("data",)] == 2
    assert found[("many",)] == found[("many", 1)] == 3
    assert found[("text",)] == 7
    assert found[("a",)] == 12
    assert found[("a", "one")] == 13
    assert found[("a", "b")] == 15
    assert found[("a", "b", "two words", "x")] == found[("a", "b", "two words", "y", 1)] == 16
    assert found[("a", "b", "c", "d")] == 17
    assert found[("list", 0)] == 19
    assert found[("list", 0, "name")] == 20
    assert found[("list", 0, "inner", "deep")] == 22
    assert found[("list", 1)] == 23
    assert found[("list", 1, "inner", "deep")] == 26
    assert ("key",) not in found
    assert ("neither",) not in found
