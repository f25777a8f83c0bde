"""Several processes that dump into one folder never share one of their own."""

import multiprocessing
import subprocess
import sys
from pathlib import Path

from picasso_tf.dumps import DumpRoot

CLAIM = """
import sys, pathlib
from picasso_tf.dumps import DumpRoot
print(DumpRoot(pathlib.Path(sys.argv[1])).graph_folder("g"))
"""


def _claim_elsewhere(folder: Path) -> str:
    done = subprocess.run([sys.executable, "-c", CLAIM, str(folder)], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1]


def test_a_second_process_gets_a_folder_of_its_own_and_a_later_one_the_first_again(tmp_path):
    mine = DumpRoot(tmp_path)
    assert mine.graph_folder("g") == tmp_path / "process_0" / "g"
    assert mine.graph_folder("h") == tmp_path / "process_0" / "h"
    assert _claim_elsewhere(tmp_path) == str(tmp_path / "process_1" / "g")
    del mine
    assert _claim_elsewhere(tmp_path) == str(tmp_path / "process_0" / "g")


def test_a_forked_child_claims_anew(tmp_path):
    root = DumpRoot(tmp_path)
    root.graph_folder("g")
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=lambda: queue.put(str(root.graph_folder("g"))))
    child.start()
    assert queue.get() == str(tmp_path / "process_1" / "g")
    child.join()
    assert root.graph_folder("g") == tmp_path / "process_0" / "g"
