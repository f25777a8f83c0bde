"""Benchmarks: every figure is measured in the run that prints it, next to what it is compared with.

    python -m benchmarks.forward      lookups and concatenation against Keras 3, tf_keras and FBGEMM
    python -m benchmarks.one_table    a train step over one large table
    python -m benchmarks.criteo_step  a train step over 26 tables of a thousand to a million rows
    python -m benchmarks.pass_time    how long the passes take on graphs of 1,000 to 100,000 nodes

`--quick` gives a short run of each. Nothing here imports TensorFlow at the top of a module that the harness loads: the
arms of a race live in processes of their own, some under another interpreter.
"""
