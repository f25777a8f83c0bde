"""picasso-tf: a TensorFlow 2 plugin that makes recommender models fast without touching them.

    import picasso_tf
    picasso_tf.enable()

Importing the package loads the custom ops, so that a rewritten SavedModel can be loaded, and rewrites nothing.
"""

import sys
from pathlib import Path

from graph_passes.errors import (
    BuildError,
    ConfigError,
    GraphError,
    PassError,
    PicassoError,
    UnsupportedTensorFlowError,
    VerifyError,
)
from picasso_tf.version import __version__

try:
    from picasso_tf.bridge import library

    library.ops()
except PicassoError as _error:
    if Path(sys.argv[0]).name == "picasso-tf":  # the command line answers with the sentence alone
        raise SystemExit(f"picasso-tf: {_error}") from None
    raise

from graph_passes.pipeline.report import GraphReport
from picasso_tf.api import disable, enable, explain, is_enabled, optimize_graph, report
from picasso_tf.config import Config
from picasso_tf.report import Report

__all__ = [
    "BuildError",
    "Config",
    "ConfigError",
    "GraphError",
    "GraphReport",
    "PassError",
    "PicassoError",
    "Report",
    "UnsupportedTensorFlowError",
    "VerifyError",
    "__version__",
    "disable",
    "enable",
    "explain",
    "is_enabled",
    "optimize_graph",
    "report",
]
