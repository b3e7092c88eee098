"""YAML with line numbers: every value knows where it stands, and nothing odd gets through."""

from __future__ import annotations

import pytest

from nbv_planner.errors import ConfigFileError, SettingError
from nbv_planner.experiments.sweep_file import read_located


@pytest.fixture
def read(tmp_path):
    """Return a function that reads YAML text."""

    def read_text(text: str):
        path = tmp_path / "x.yaml"
        path.write_bytes(text.encode())
        return read_located(path)[1]

    return read_text


def test_values_know_their_line_and_their_keys(read):
    root = read("# head\na: 1\n\nb:\n  - x\n  - {c: 2.5}\n")
    a, b = root.mapping().values()
    assert (a.line, a.path, a.scalar()) == (2, "a", 1)
    assert (b.line, b.path, b.is_sequence) == (4, "b", True)
    x, item = b.sequence()
    assert (x.line, x.text()) == (5, "x")
    c = item.mapping()["c"]
    assert (c.line, c.path, c.scalar()) == (6, "b.c", 2.5)


def test_text_is_given_back_byte_for_byte(tmp_path):
    path = tmp_path / "x.yaml"
    path.write_bytes("a: 1\r\n# ü\r\n".encode())
    assert read_located(path)[0].encode() == path.read_bytes()


def test_numbers_are_read_as_in_parameter_files(read):
    assert read("a: 1e-3").mapping()["a"].scalar() == 0.001
    assert read("a: [1, 2.5]").mapping()["a"].value() == [1, 2.5]


def test_error_inside_a_block_is_blamed_on_the_value(read):
    with pytest.raises(ConfigFileError, match=r"x\.yaml, line 2: b: not allowed$"), read("a: 1\nb: 2").mapping()[
        "b"
    ].blamed():
        raise SettingError("not\nallowed")


@pytest.mark.parametrize(
    ("text", "use", "words"),
    [
        ("", lambda v: v, ["x.yaml", "mapping"]),
        ("a: [", lambda v: v, ["x.yaml", "line"]),
        ("a: 1\n---\nb: 2", lambda v: v, ["x.yaml", "document"]),
        ("a: 1\nb: 2\na: 3", lambda v: v.mapping(), ["line 3", "a: is given twice", "line 1"]),
        ("- 1", lambda v: v.mapping(), ["line 1", "mapping"]),
        ("? [1]\n: 2", lambda v: v.mapping(), ["line 1", "key"]),
        ("a: &x {b: 1}\nc:\n  <<: *x", lambda v: v.mapping()["c"].mapping(), ["line 3", "c", "key"]),
        ("a: {}", lambda v: v.mapping()["a"].sequence(), ["line 1", "a", "list"]),
        ("a: []", lambda v: v.mapping()["a"].sequence(), ["line 1", "a", "at least one"]),
        ("\na: [1]", lambda v: v.mapping()["a"].scalar(), ["line 2", "a", "single value"]),
        ("a: 2020-01-01", lambda v: v.mapping()["a"].scalar(), ["line 1", "date", "quote"]),
        ("a: 2020-13-01", lambda v: v.mapping()["a"].scalar(), ["line 1", "a", "month"]),
        ("a: !!python/name:os.system x", lambda v: v.mapping()["a"].scalar(), ["line 1", "python"]),
        ("a: 3", lambda v: v.mapping()["a"].text(), ["line 1", "3", "text"]),
        ("a: ''", lambda v: v.mapping()["a"].text(), ["line 1", "text"]),
        ("a: 1\nq: 2", lambda v: v.known_mapping("key", ("a", "b")), ["line 2", "unknown key 'q'", "a, b"]),
    ],
)
def test_what_is_not_allowed_is_refused_with_its_line(read, text, use, words):
    with pytest.raises(ConfigFileError) as caught:
        use(read(text))
    message = str(caught.value)
    assert "\n" not in message
    assert [word for word in words if word not in message] == [], message


def test_list_that_holds_itself_does_not_hang(read):
    with pytest.raises(ConfigFileError, match="single value"):
        read("a: &a [*a]").mapping()["a"].value()
