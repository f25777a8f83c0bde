"""What the wrappers accept as a variable."""

from typing import Any

import tensorflow as tf

from graph_passes.errors import ConfigError


def as_variable(value: Any, argument: str) -> tf.Variable:
    """The `tf.Variable` that `value` is, or that a Keras 3 variable holds. `argument` names it in the ConfigError."""
    variable = value if isinstance(value, tf.Variable) else getattr(value, "value", None)
    if not isinstance(variable, tf.Variable):
        raise ConfigError(f"`{argument}` must be a tf.Variable or a Keras variable. Received: {value!r}.")
    return variable
