"""YAML with line numbers: every value knows where it stands, and nothing odd gets through."""

from __future__ import annotations

import pytest

from nbv_planner.errors import ConfigFileError, SettingError
from nbv_planner.files.located_yaml import dumped, read_located


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
    with (
        pytest.raises(ConfigFileError, match=r"x\.yaml, line 2: b: not allowed$"),
        read("a: 1\nb: 2").mapping()["b"].errors_here(),
    ):
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
        (
            "a: &x {b: 1}\nc:\n  <<: *x",
            lambda v: v.mapping()["c"].mapping(),
            ["line 3", "c", "key"],
        ),
        ("a: {}", lambda v: v.mapping()["a"].sequence(), ["line 1", "a", "list"]),
        ("a: []", lambda v: v.mapping()["a"].sequence(), ["line 1", "a", "at least one"]),
        ("\na: [1]", lambda v: v.mapping()["a"].scalar(), ["line 2", "a", "single value"]),
        ("a: 2020-01-01", lambda v: v.mapping()["a"].scalar(), ["line 1", "date", "quote"]),
        ("a: 2020-13-01", lambda v: v.mapping()["a"].scalar(), ["line 1", "a", "month"]),
        ("a: !!python/name:os.system x", lambda v: v.mapping()["a"].scalar(), ["line 1", "python"]),
        ("a: 3", lambda v: v.mapping()["a"].text(), ["line 1", "3", "text"]),
        ("a: ''", lambda v: v.mapping()["a"].text(), ["line 1", "text"]),
        (
            "a: 1\nq: 2",
            lambda v: v.known_mapping("key", ("a", "b")),
            ["line 2", "unknown key 'q'", "a, b"],
        ),
    ],
)
def test_what_is_not_allowed_is_refused_with_its_line(read, text, use, words):
    with pytest.raises(ConfigFileError) as caught:
        use(read(text))
    message = str(caught.value)
    assert "\n" not in message
    assert [word for word in words if word not in message] == [], message


def laughs(levels: int, first: str = "[x, x, x, x, x, x, x, x, x]") -> str:
    """Each line holds the one before nine times."""
    lines = [f"a0: &a0 {first}"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, levels)]
    return "\n".join(lines) + "\n"


HOSTILE = {
    "date": (
        "a: 1\nb: 2024-02-31\n",
        "line 2: b: '2024-02-31' is no timestamp: day (is out|31 must be in) ",
    ),
    "digits": (f"a: 1\nb: {'9' * 5000}\n", "line 2: b: .*must have 100 characters or fewer"),
    "hexadecimal": (f"b: 0x{'f' * 5000}\n", "line 1: b: .*must have 100 characters or fewer"),
    "brackets": ("a: 1\nb: " + "[" * 2000, "line 2: values are nested more than 50 deep"),
    "dashes": ("a: 1\n" + "- " * 2000, "line 2: "),
    "python": ("a: 1\nb: !!python/object/apply:os.getcwd []\n", "line 2: the tag .*python/object"),
    "list of itself": ("a: 1\nb: &b [*b]\n", "line 2: a value contains itself"),
    "mapping of itself": ("b: &b\n  c: *b\n", "line 2: a value contains itself"),
    "aliases": (laughs(9), "line 7: aliases make more than 1000000 values"),
    "levels": (
        "\n".join(["a0: &a0 [1]"] + [f"a{i}: &a{i} [*a{i - 1}]" for i in range(1, 60)]),
        "50 levels",
    ),
    "nothing": ('a: 1\nb: "x\\0y"\n', "line 2: .*has a character that is not allowed in text"),
    "half a character": (
        'a: 1\nb: "\\ud800"\n',
        "line 2: .*has a character that is not allowed in text",
    ),
    "beyond characters": ('b: "\\UFFFFFFFF"\n', "cannot read"),
    "control": ("b: \x07\n", "cannot read"),
    "no integer": ("a: 1\nb: !!int ''\n", "line 2: b: '' is no int"),
    "no bool": ("b: !!bool 7\n", "line 1: b: '7' is no bool"),
    "no moment": ("b: !!timestamp x\n", "line 1: b: 'x' is no timestamp"),
    "key": ("? [1, 2]\n: 3\n", "line 1: a key must be a plain word"),
    "merged": ("b:\n  <<: 7\n", "line 2: b: must be a mapping"),
    "no end": ("a: [1,\n", "line 2: while parsing"),
}


@pytest.mark.parametrize(("text", "words"), HOSTILE.values(), ids=HOSTILE)
def test_whatever_a_text_holds_it_ends_in_one_short_line(read, text, words):
    with pytest.raises(ConfigFileError, match=words) as caught:
        read(text).plain()
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 600


def test_what_aliases_name_is_one_value_within_the_limits(read):
    found = read(laughs(4) + "b: *a3\n").plain()
    assert found["b"] == found["a3"]
    assert len(found["a1"]) == 9


def test_merged_values_stand_behind_own_ones(read):
    assert read("a: &a {x: 1, y: 2}\nb: {y: 3, <<: *a}").plain()["b"] == {"x": 1, "y": 3}


@pytest.mark.parametrize("text", ["y", "Y", "yes", "on", "true"])
def test_truth_is_read_as_ros_reads_it(read, text):
    assert read(f"a: {text}").mapping()["a"].scalar() is True
    assert read(f"y: {text.replace('y', 'n').replace('Y', 'N')}").mapping()["y"].line == 1


def test_what_would_be_read_as_something_else_is_quoted(read):
    values = {"a": "y", "b": "1e-3", "c": "1.5", "d": [1e-3, True, "no"], "y": 1}
    assert read(dumped(values)).plain() == values


def test_numbers_are_finite_and_as_many_as_needed(read):
    root = read("a: [1, 2.5]\nb: [1, x]\nc: .inf\nd: " + str(list(range(1000)))).mapping()
    assert root["a"].numbers(2) == [1.0, 2.5]
    for name, asked in (("b", "a finite number"), ("d", "2 finite numbers")):
        with pytest.raises(ConfigFileError, match=f"{name}: .*must be {asked}$") as caught:
            root[name].numbers(2)
        assert len(str(caught.value)) < 400
    with pytest.raises(ConfigFileError, match="c: inf must be a finite number"):
        root["c"].number()
