"""Loads `_picasso.so`, the library with the ops, the kernels and the Grappler plugin.

Loading registers the ops with TensorFlow and nothing else; the plugin is registered by `callback.install`.
"""

import ctypes
import functools
import mmap
import re
import threading
from pathlib import Path
from types import ModuleType

import tensorflow as tf

from graph_passes.errors import BuildError, UnsupportedTensorFlowError
from picasso_tf.version import check_tensorflow

_PATH = Path(__file__).resolve().parent.parent / "_picasso.so"
_BUILD_COMMAND = "pip install --no-build-isolation picasso-tf"
_BUILD_COMMAND_SOURCE = "python setup.py build_ext --inplace"
_LOCK = threading.Lock()


class Request(ctypes.Structure):
    """`PicassoRequest` of cc/grappler/bridge.h: change both. Names are joined by newlines."""

    _fields_ = (
        ("graph", ctypes.c_void_p),
        ("graph_size", ctypes.c_size_t),
        ("id", ctypes.c_char_p),
        ("device_type", ctypes.c_char_p),
        ("feeds", ctypes.c_char_p),
        ("fetches", ctypes.c_char_p),
        ("preserve", ctypes.c_char_p),
        ("allow_pruning", ctypes.c_int),
        ("allow_non_differentiable", ctypes.c_int),
    )


UNCHANGED, CHANGED, FAILED, SIGNAL = 0, 1, 2, 16  # PicassoResult of cc/grappler/bridge.h

# ctypes takes the interpreter lock around such a callback, on any thread.
Callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Request), ctypes.c_void_p)

_SIGNATURES = {
    "picasso_built_for_tensorflow": (ctypes.c_char_p, []),
    "picasso_register": (ctypes.c_int, []),
    "picasso_set_callback": (None, [Callback]),
    "picasso_emit": (None, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t]),
    "picasso_new_sink": (ctypes.c_void_p, []),
    "picasso_sink_data": (ctypes.c_void_p, [ctypes.c_void_p]),
    "picasso_sink_size": (ctypes.c_size_t, [ctypes.c_void_p]),
    "picasso_free_sink": (None, [ctypes.c_void_p]),
    "picasso_close": (ctypes.c_int, [ctypes.c_int]),
    "picasso_after_fork": (None, []),
    "picasso_set_max_graph_bytes": (None, [ctypes.c_int64]),
    "picasso_annotate_shapes": (
        ctypes.c_int,
        [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p],
    ),
}


def ops() -> ModuleType:
    """The generated Python functions of the library's ops, e.g. `ops().picasso_packed_lookup`.

    Raises:
        BuildError: the library has not been built.
        UnsupportedTensorFlowError: the installed TensorFlow is not supported, or not the one it was built against.
    """
    return _load()[0]


def lib() -> ctypes.CDLL:
    """The C functions of `cc/grappler/bridge.h`, with their argument types set. Raises as `ops` does."""
    return _load()[1]


def _load() -> tuple[ModuleType, ctypes.CDLL]:
    with _LOCK:  # the cache alone would let two threads load at once
        return _load_once(_PATH)


@functools.cache
def _load_once(path: Path) -> tuple[ModuleType, ctypes.CDLL]:
    check_tensorflow(tf.__version__)
    _check_built_for(path, tf.__version__)
    module = tf.load_op_library(str(path))
    functions = ctypes.CDLL(str(path))  # the same library: the loader recognises the file
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(functions, name)
        function.restype, function.argtypes = result, arguments
    return module, functions


def _check_built_for(path: Path, installed: str) -> None:
    """Reads the version out of the file, because loading a library built for another TensorFlow can crash."""
    if not path.exists():
        raise BuildError(
            f"The library of picasso-tf is missing: no file {path}; build it with `{_BUILD_COMMAND_SOURCE}` in a "
            f"checkout, or install it with `{_BUILD_COMMAND}`."
        )
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        match = re.search(rb"picasso_built_for_tensorflow=([^\0]+)\0", content)
        built_for = match[1].decode() if match else "an unknown version"
    if built_for != installed:
        raise UnsupportedTensorFlowError(
            f"{path} was built for TensorFlow {built_for}, but TensorFlow {installed} is installed: build it again "
            f"with `{_BUILD_COMMAND_SOURCE}` in a checkout, or `{_BUILD_COMMAND} --force-reinstall --no-deps`."
        )
