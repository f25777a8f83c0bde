"""Every exception of the project. Messages are full sentences that carry the offending value."""


class PicassoError(Exception):
    """Base class of all errors that picasso-tf raises."""


class ConfigError(PicassoError, ValueError):
    """An option has a wrong name or a wrong value, or a call came at the wrong time."""


class UnsupportedTensorFlowError(PicassoError, ImportError):
    """The installed TensorFlow is outside the supported range, or the library was built against another one."""


class BuildError(PicassoError):
    """The plugin library cannot be built or found."""


class GraphError(PicassoError):
    """A graph, a text form or a staged edit is not well formed."""


class VerifyError(PicassoError):
    """A graph breaks one of the numbered invariants of `graph_passes.ir.verify`.

    Args:
        invariant: "I1" to "I12".
        node: name of the offending node.
        message: the sentence to show, with a few lines of the text form around the node.
    """

    def __init__(self, invariant: str, node: str, message: str):
        super().__init__(f"{invariant} broken at '{node}': {message}")
        self.invariant = invariant
        self.node = node


class PassError(PicassoError):
    """A pass raised. The graph before the pass is what runs.

    Args:
        pass_name: name of the pass that failed.
        cause: what it raised.
        reproducer: folder that `picasso-tf replay` accepts, or None when none could be written.
    """

    def __init__(self, pass_name: str, cause: BaseException, reproducer: str | None):
        hint = f" Replay it with: picasso-tf replay {reproducer}" if reproducer else ""
        super().__init__(f"Pass '{pass_name}' failed ({type(cause).__name__}: {cause}).{hint}")
        self.pass_name = pass_name
        self.cause = cause
        self.reproducer = reproducer
