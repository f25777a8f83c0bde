"""Finding the library, and refusing one that does not fit."""

import threading

import pytest
import tensorflow as tf

from graph_passes.errors import BuildError, UnsupportedTensorFlowError
from picasso_tf import version
from picasso_tf.bridge import library


def test_the_library_states_its_tensorflow():
    assert library.lib().picasso_built_for_tensorflow().decode() == tf.__version__


def test_loading_from_many_threads_gives_one_library():
    found = []
    threads = [threading.Thread(target=lambda: found.append((library.ops(), library.lib()))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert all(pair == found[0] for pair in found)


def test_a_missing_library_names_the_command(tmp_path):
    with pytest.raises(BuildError, match=r"missing.*python setup.py build_ext --inplace"):
        library._load_once(tmp_path / "_picasso.so")


@pytest.mark.parametrize(
    ("content", "said"), [(b"picasso_built_for_tensorflow=2.20.0\0", "2.20.0"), (b"\x7fELF", "an unknown version")]
)
def test_a_library_for_another_tensorflow_is_not_loaded(tmp_path, content: bytes, said: str):
    path = tmp_path / "_picasso.so"
    path.write_bytes(b"\0" * 100 + content + b"\0" * 100)
    with pytest.raises(
        UnsupportedTensorFlowError, match=f"built for TensorFlow {said}, but TensorFlow .* is installed"
    ):
        library._load_once(path)


@pytest.mark.parametrize("found", ["2.21.0", "2.21.3", "2.21.0+nv25.1", "2.21.1-rc0"])
def test_supported_versions(found: str):
    version.check_tensorflow(found)


@pytest.mark.parametrize(
    "found", ["2.20.9", "2.21.0-rc1", "2.21.0-dev20260101", "2.22.0-rc0", "2.22.0", "3.0.0", "odd"]
)
def test_unsupported_versions_are_refused_in_one_sentence(found: str):
    with pytest.raises(UnsupportedTensorFlowError) as error:
        version.check_tensorflow(found)
    assert str(error.value) == (
        f"picasso-tf {version.__version__} supports TensorFlow >= 2.21.0 and < 2.22.0, but found {found}: "
        'run `pip install "tensorflow>=2.21.0,<2.22.0"`, then build picasso-tf again.'
    )
