"""Times the C++ gate that spares graphs with nothing to do the way through Python."""

from __future__ import annotations

import ctypes
import shutil
import subprocess

import tensorflow as tf

from benchmarks.harness import ROOT, BenchmarkError

_REPEATS = 100


def has_compiler() -> bool:
    """Whether the gate can be compiled here."""
    return shutil.which("g++") is not None


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
    target = ROOT / "build" / "benchmarks" / "gate_time.so"
    sources = [ROOT / "benchmarks" / "gate_time.cc", ROOT / "picasso_tf" / "cc" / "grappler" / "gate.cc"]
    if not target.exists() or target.stat().st_mtime < max(source.stat().st_mtime for source in sources):
        target.parent.mkdir(parents=True, exist_ok=True)
        command = ["g++", "-O3", "-shared", "-fPIC", f"-I{ROOT}", *tf.sysconfig.get_compile_flags(), *map(str, sources)]
        result = subprocess.run([*command, "-o", str(target), *tf.sysconfig.get_link_flags()], capture_output=True)
        if result.returncode:
            raise BenchmarkError(f"The gate could not be compiled: {result.stderr.decode(errors='replace')[-1000:]}")
    library = ctypes.CDLL(str(target))
    library.picasso_gate_seconds.restype = ctypes.c_double
    library.picasso_gate_seconds.argtypes = [
        ctypes.c_char_p,
        ctypes.c_size_t,
        ctypes.c_int,
        ctypes.POINTER(ctypes.c_int),
    ]
    return library
