"""Where a node runs."""

from __future__ import annotations

from functools import lru_cache

import tensorflow as tf


@lru_cache(maxsize=None)
def device_type(device: str) -> str:
    """"CPU", "GPU", ... of a device name; "" when the name leaves it open."""
    return (tf.DeviceSpec.from_string(device).device_type or "").upper()
