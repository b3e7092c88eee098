"""The page stands by itself, shows what was run, and takes no text for markup."""

from __future__ import annotations

import base64
from html.parser import HTMLParser

import pytest
from hand_made import REFERENCE, episode, results, sweep_of

from nbv_bench.experiments.summary.contents import report_page, report_tables
from nbv_bench.experiments.summary.sweep_report import sweep_report
from nbv_planner.report.page import GENERATOR, Picture, Section, render_page
from nbv_planner.report.tables import Column, Table

NASTY = 'file:<script>alert("1")</script>&$x.csv'
VOID = {"meta", "img", "br"}


class Reader(HTMLParser):
    """Collects tags and texts, and checks that tags are closed in order."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.texts, self.links, self.open = [], [], [], []
        self.feed(html)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.links += [
            value
            for name, value in attributes
            if name in ("src", "href", "srcset", "data", "action")
        ]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def page(episodes, failures=(), pictures=(), **sweep):
    report = sweep_report(results(episodes, sweep_of(episodes, **sweep), list(failures)))
    return report_page(report, report_tables(report), pictures)


def test_texts_of_others_stay_texts():
    failure = {
        "case": episode("<b>X</b>", NASTY)["case"],
        "error": "</table><i>boom</i>",
        "traceback": "",
    }
    html = page(
        [episode("<b>X</b>", NASTY), episode(REFERENCE, NASTY)], [failure], name="<h1>$title</h1>"
    )
    seen = Reader(html)
    assert not {"script", "b", "i"} & set(seen.tags)
    assert {"<b>X</b>", NASTY, "</table><i>boom</i>", "Sweep <h1>$title</h1>"} <= set(seen.texts)


def test_nothing_is_loaded_from_elsewhere():
    picture = Picture("coverage", "Coverage", "what it shows", b"long png", b"<svg/>")
    seen = Reader(page([episode("X")], pictures=[picture]))
    assert seen.links
    assert all(link.startswith(("#", "data:")) for link in seen.links)
    assert not {"script", "link", "iframe"} & set(seen.tags)
    assert "@import" not in "".join(seen.texts)
    assert "url(" not in "".join(seen.texts)


@pytest.mark.parametrize(
    ("png", "svg", "kind", "content"),
    [
        (b"longer", b"short", "svg+xml", b"short"),
        (b"short", b"longer", "png", b"short"),
    ],
)
def test_picture_is_embedded_in_the_smaller_format_with_its_caption(png, svg, kind, content):
    picture = Picture("p", "A < B", "bands & marks", png, svg, folded=True)
    seen = Reader(render_page("t", "l", [Section("s", "S", [picture])]))
    (source,) = [link for link in seen.links if link.startswith("data:")]
    assert source == f"data:image/{kind};base64,{base64.b64encode(content).decode()}"
    assert {"A < B", "bands & marks"} <= set(seen.texts)
    assert "details" in seen.tags


def test_digits_stand_flush_right_and_words_do_not():
    table = Table(
        "t", "T", "", (Column("a", "word"), Column("b", "number", 1)), (("x", 1.26), ("y", None))
    )
    html = render_page("t", "l", [Section("s", "S", [table])])
    assert '<th class="number">number</th>' in html
    assert '<td class="number">1.3</td>' in html
    assert "<td>x</td>" in html


def test_page_says_what_was_run_and_how_much_is_there():
    episodes = [
        episode(p, s, seed=seed)
        for p in (REFERENCE, "X")
        for s in ("one", "two")
        for seed in (0, 1)
    ]
    failure = {
        "case": episode("X", "three")["case"],
        "error": "ContourError: gone",
        "traceback": "",
    }
    texts = Reader(page(episodes, [failure])).texts
    assert "8 of 10 cases, 1 failed. 2 objects × 2 planners × 1 protocol × 2 seeds." in texts
    assert {"Sweep by hand", "ContourError: gone", "numpy", "1.2.3", "Versions", "Planners"} <= set(
        texts
    )
    assert any('"seeds": [' in text for text in texts)


def test_sweep_without_a_finished_case_still_has_a_page():
    sweep = sweep_of([episode("X")])
    report = sweep_report(results([], sweep))
    seen = Reader(report_page(report, report_tables(report), []))
    assert any(text.startswith("0 of 10 cases") for text in seen.texts)


def test_times_stay_out_of_the_page_so_that_the_same_results_give_the_same_page():
    fast, slow = episode("X"), episode("X")
    for view in slow["views"]:
        view["milliseconds"] = 123.0
    assert page([fast]) == page([slow])


def test_page_is_known_to_be_ours_and_fits_dark_screens():
    html = page([episode("X")])
    assert GENERATOR in html
    assert html.startswith("<!DOCTYPE html>")
    assert "prefers-color-scheme: dark" in html
