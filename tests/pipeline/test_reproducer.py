"""A failure is written down, loaded and replayed."""

import json
import logging
from pathlib import Path

import pytest

from graph_passes.errors import ConfigError, PassError
from graph_passes.ir import print_graph
from graph_passes.pipeline.manager import PassManager
from graph_passes.pipeline.reproducer import Reproduce, load, replay
from graph_passes.registry import BY_NAME
from tests.support.passes import AddNodes, Explode, breaking_pass
from tests.support.rewrite import graph_of

GRAPH = graph_of(
    """
    graph {feeds = [f], fetches = [a:0], preserve = [p]}
    a = Const() {dtype = int32, value = int32[](1)}
    f = Placeholder() {dtype = int32}
    p = NoOp()
    """
)


def fail(folder: Path, *pipeline) -> PassError:
    """The error of a pipeline that fails, with a reproducer."""
    manager = PassManager(pipeline, [Reproduce(folder, BY_NAME, {"tensorflow": "2.21"})], fail_open=False)
    with pytest.raises(PassError) as error:
        manager.run(GRAPH)
    return error.value


def test_a_reproducer_holds_the_graph_before_the_pass_and_how_to_replay_it(tmp_path: Path) -> None:
    error = fail(tmp_path / "failures", AddNodes(2), Explode("bang"))
    folder = tmp_path / "failures" / "explode-000"
    assert error.reproducer == str(folder)
    assert sorted(path.name for path in folder.iterdir()) == ["graph.pb", "graph.txt", "reproducer.json"]
    facts = json.loads((folder / "reproducer.json").read_text())
    traceback = "".join(facts.pop("traceback"))
    assert "raise ValueError(self.message)" in traceback
    assert facts == {
        "pass": "explode",
        "pipeline": "tests.support.passes:Explode{message='bang'}",
        "error": "ValueError: bang",
        "feeds": ["f"],
        "fetches": ["a:0"],
        "preserve": ["p"],
        "versions": {"tensorflow": "2.21"},
        "replay": f"picasso-tf replay {folder}",
    }
    assert "added_1 = NoOp()" in (folder / "graph.txt").read_text()


def test_a_reproducer_is_loaded_and_replayed(tmp_path: Path) -> None:
    folder = Path(fail(tmp_path, AddNodes(2), Explode("bang")).reproducer or "")
    graph, pipeline = load(folder, BY_NAME)
    assert pipeline == [Explode("bang")]
    assert print_graph(graph) == (folder / "graph.txt").read_text()
    assert (graph.feeds, graph.fetches, graph.preserve) == (("f",), ("a:0",), ("p",))
    with pytest.raises(PassError, match=r"^Pass 'explode' failed \(ValueError: bang\)\.$"):
        replay(folder, BY_NAME)


def test_a_pass_that_was_repaired_replays_without_a_failure(tmp_path: Path) -> None:
    folder = Path(fail(tmp_path, Explode()).reproducer or "")
    facts = json.loads((folder / "reproducer.json").read_text())
    facts["pipeline"] = "tests.support.passes:AddNodes"
    (folder / "reproducer.json").write_text(json.dumps(facts))
    run = replay(folder, BY_NAME)
    assert run.failure is None
    assert sorted(run.after.nodes) == ["a", "added_0", "f", "p"]


def test_each_failure_gets_a_folder_of_its_own(tmp_path: Path) -> None:
    found = [Path(fail(tmp_path, Explode()).reproducer or "").name for _ in range(3)]
    assert found == ["explode-000", "explode-001", "explode-002"]


def test_a_graph_with_a_cycle_has_a_reproducer_too(tmp_path: Path) -> None:
    error = fail(tmp_path, breaking_pass(), Explode())
    text = (Path(error.reproducer or "") / "graph.txt").read_text()
    assert text.splitlines()[0] == "# The graph has a cycle through or before node 'loop'."
    assert "loop = Identity(loop)" in text
    assert load(Path(error.reproducer or ""), BY_NAME)[0].nodes.keys() == {"a", "f", "p", "loop"}


def test_a_folder_that_cannot_be_written_costs_the_reproducer_only(tmp_path: Path, caplog) -> None:
    (tmp_path / "file").write_text("")
    with caplog.at_level(logging.WARNING, "picasso_tf"):
        error = fail(tmp_path / "file", Explode())
    assert error.reproducer is None
    assert str(error) == "Pass 'explode' failed (ValueError: boom)."
    assert "No reproducer could be written to" in caplog.text


DAMAGE = {
    "no json": ("reproducer.json", b"{\xff"),
    "no graph": ("graph.pb", b"{\xff"),
    "no facts": ("reproducer.json", b"{}"),
}


@pytest.mark.parametrize("damage", ["missing", *DAMAGE])
def test_what_is_no_reproducer_is_refused_in_one_sentence(tmp_path: Path, damage: str) -> None:
    folder = tmp_path / "x"
    if damage != "missing":
        folder = Path(fail(tmp_path, Explode()).reproducer or "")
        name, content = DAMAGE[damage]
        (folder / name).write_bytes(content)
    with pytest.raises(ConfigError, match=rf"^'{folder}' is not a reproducer: ") as error:
        load(folder, BY_NAME)
    assert "\n" not in str(error.value)
