"""A slow, readable oracle of `Picasso>PackedIndicators`."""

import numpy as np


def counts(rows, depth):
    """How often each id below `depth` is among the ids of each row, a list of lists."""
    found = np.zeros([len(rows), depth], np.float32)
    for row, ids in enumerate(rows):
        for id_ in ids:
            if 0 <= id_ < depth:
                found[row, id_] += 1
    return found
