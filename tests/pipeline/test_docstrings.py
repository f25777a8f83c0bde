"""The Before and After in the docstring of each pass are what the pass does."""

import inspect
import re

import pytest

from graph_passes import registry
from graph_passes.pipeline.base import Pass
from graph_passes.registry import BY_NAME, PASSES
from tests.support.rewrite import check_rewrite

_BLOCK = re.compile(r"^Before:\n(?P<before>(?:[ ]{4}.*\n)+)After:\n(?P<after>(?:[ ]{4}.*\n?)+)", re.MULTILINE)


@pytest.mark.parametrize("kind", PASSES, ids=lambda kind: kind.name)
def test_docstring_of_a_pass_shows_what_it_does(kind: type[Pass]) -> None:
    blocks = list(_BLOCK.finditer(inspect.cleandoc(kind.__doc__ or "")))
    assert blocks, f"The docstring of {kind.__name__} must show a graph in `Before:` and `After:`."
    for block in blocks:
        assert block["before"] != block["after"]
        check_rewrite(kind(), block["before"], block["after"])


@pytest.mark.parametrize("kind", PASSES, ids=lambda kind: kind.name)
def test_every_pass_can_be_made_without_options_and_found_by_name(kind: type[Pass]) -> None:
    assert kind().options() == {}
    assert BY_NAME[kind.name] is kind


def test_every_pass_explains_its_place_in_the_order() -> None:
    source = inspect.getsource(registry)
    lines = [line for line in source.splitlines() if re.match(r"    \w+,", line)]
    assert len(lines) == len(PASSES)
    assert all(re.match(r"    \w+,  # \S+", line) for line in lines), lines
