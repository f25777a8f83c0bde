"""A pipeline is data: its text form comes back, and what cannot be read is one sentence."""

import pytest

from graph_passes.errors import ConfigError
from graph_passes.packing.embedding_packing import EmbeddingPacking
from graph_passes.pipeline.text import parse_pipeline, print_pipeline
from graph_passes.registry import BY_NAME, PASSES
from tests.support.passes import AddNodes

ADD_NODES = "tests.support.passes:AddNodes"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "canonicalize",
        "canonicalize, embedding_packing{max_group_size=64}, dead_nodes",
        f"{ADD_NODES}, dead_nodes, {ADD_NODES}{{count=3, prefix='x'}}",
    ],
)
def test_a_text_comes_back_as_it_was(text: str) -> None:
    assert print_pipeline(parse_pipeline(text, BY_NAME), BY_NAME) == text


def test_the_registry_comes_back() -> None:
    pipeline = [kind() for kind in PASSES]
    text = print_pipeline(pipeline, BY_NAME)
    assert text == ", ".join(kind.name for kind in PASSES)
    assert parse_pipeline(text, BY_NAME) == pipeline


def test_blanks_do_not_matter_and_defaults_are_not_printed() -> None:
    text = "  canonicalize ,embedding_packing { max_group_size = 4 } , dead_nodes  "
    pipeline = parse_pipeline(text, BY_NAME)
    assert pipeline[1] == EmbeddingPacking(4)
    assert print_pipeline(pipeline, BY_NAME) == "canonicalize, embedding_packing{max_group_size=4}, dead_nodes"
    assert print_pipeline([EmbeddingPacking(None), AddNodes(1, "added")], BY_NAME) == f"embedding_packing, {ADD_NODES}"


def test_a_pass_that_only_shares_a_registered_name_is_written_by_its_path() -> None:
    assert print_pipeline([AddNodes()], {"add_nodes": EmbeddingPacking}) == ADD_NODES


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nonsense", f"There is no pass 'nonsense'. Known passes: {', '.join(BY_NAME)}."),
        ("canonicalize dead_nodes", "The pipeline cannot be read from 'canonicalize dead_nodes' on."),
        ("canonicalize, embedding_packing{", "The pipeline cannot be read from ' embedding_packing{' on."),
        ("embedding_packing{size=3}", "Pass 'embedding_packing' cannot be made with {'size': 3}: "),
        ("embedding_packing{max_group_size=1}", "`max_group_size` must be >= 2. Received: `max_group_size=1`."),
        ("embedding_packing{max_group_size='x'}", "Pass 'embedding_packing' cannot be made with "),
        (
            "embedding_packing{max_group_size=lots}",
            "Option `max_group_size` of pass 'embedding_packing' has no readable",
        ),
        ("embedding_packing{max_group_size}", "Option `max_group_size` of pass 'embedding_packing' has no readable"),
        ("no.such.module:Pass", "There is no pass 'no.such.module:Pass': No module named 'no'."),
        ("tests.support.passes:Nothing", "There is no pass 'tests.support.passes:Nothing': module"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_pipeline(text, BY_NAME)
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)
