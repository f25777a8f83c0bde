"""Times the C++ gate that spares graphs with nothing to do the way through Python."""

from __future__ import annotations

import ctypes

import tensorflow as tf

from benchmarks import compiled
from benchmarks.harness import ROOT, BenchmarkError

_REPEATS = 100


def seconds(graph: bytes) -> tuple[float, bool]:
    """Asks the gate about a graph, many times.

    The library exports no function for it, and a whole run of TensorFlow's optimizers takes a thousand times as long;
    so the gate's own source is compiled into a library of the benchmark's.

    Args:
        graph: a serialised GraphDef.

    Returns:
        Seconds of the fastest answer, and the answer: whether the graph has an op of interest.
    """
    found = ctypes.c_int()
    taken = _library().picasso_gate_seconds(graph, len(graph), _REPEATS, ctypes.byref(found))
    if taken < 0:
        raise BenchmarkError(f"The {len(graph)} bytes are not a serialised GraphDef.")
    return taken, bool(found.value)


def _library() -> ctypes.CDLL:
    sources = [ROOT / "benchmarks" / "gate_time.cc", ROOT / "picasso_tf" / "cc" / "grappler" / "gate.cc"]
    flags = tf.sysconfig.get_compile_flags(), tf.sysconfig.get_link_flags()
    library = compiled.load("gate_time", sources, *flags)
    library.picasso_gate_seconds.restype = ctypes.c_double
    library.picasso_gate_seconds.argtypes = [
        ctypes.c_char_p,
        ctypes.c_size_t,
        ctypes.c_int,
        ctypes.POINTER(ctypes.c_int),
    ]
    return library
