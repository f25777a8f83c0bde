"""Where a node runs."""

from __future__ import annotations

from functools import cache

import tensorflow as tf


@cache
def device_type(device: str) -> str:
    """ "CPU", "GPU", ... of a device name; "" when the name leaves it open."""
    return (tf.DeviceSpec.from_string(device).device_type or "").upper()
