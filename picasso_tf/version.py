"""The version of picasso-tf and the TensorFlow range that it supports, stated once.

`setup.py` executes this file before anything is installed, so it imports nothing at the top.
"""

import re

__version__ = "0.1.0"

TENSORFLOW_MIN = "2.21.0"  # the first supported version
TENSORFLOW_MAX = "2.22.0"  # the first unsupported version above it
TENSORFLOW_REQUIREMENT = f"tensorflow>={TENSORFLOW_MIN},<{TENSORFLOW_MAX}"


def unsupported_reason(found: str) -> str | None:
    """Says why a TensorFlow version cannot be used.

    Args:
        found: a version as TensorFlow states it, e.g. "2.21.0" or "2.21.0-rc1".

    Returns:
        One sentence with the version found, the range supported and the command that installs a fitting one, or None
        when `found` is supported.
    """
    if _is_supported(found):
        return None
    return (
        f"picasso-tf {__version__} supports TensorFlow >= {TENSORFLOW_MIN} and < {TENSORFLOW_MAX}, but found {found}: "
        f'run `pip install "{TENSORFLOW_REQUIREMENT}"`, then build picasso-tf again.'
    )


def check_tensorflow(found: str) -> None:
    """Raises when a TensorFlow version is outside the supported range.

    Args:
        found: the installed version, usually `tf.__version__`.

    Raises:
        UnsupportedTensorFlowError: with the sentence of `unsupported_reason`.
    """
    reason = unsupported_reason(found)
    if reason is None:
        return
    from graph_passes.errors import UnsupportedTensorFlowError  # here, so that setup.py can execute this file

    raise UnsupportedTensorFlowError(reason)


def _is_supported(found: str) -> bool:
    match = re.fullmatch(r"(\d+)\.(\d+)\.(\d+)(.*)", found)
    if match is None:
        return False
    release = tuple(int(part) for part in match.groups()[:3])
    low, high = (tuple(int(part) for part in bound.split(".")) for bound in (TENSORFLOW_MIN, TENSORFLOW_MAX))
    # A pre-release of the first supported version may still have another binary interface.
    is_prerelease_of_low = release == low and match[4] != "" and not match[4].startswith("+")
    return low <= release < high and not is_prerelease_of_low
