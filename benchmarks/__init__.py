"""Benchmarks: every figure is measured in the run that prints it, next to what it is compared with.

    python -m benchmarks.forward         lookups and concatenation against Keras 3, tf_keras and FBGEMM
    python -m benchmarks.pooled          20 ids per field, summed, against stock TensorFlow and FBGEMM
    python -m benchmarks.latency         inference: the median and the 99th percentile of a call
    python -m benchmarks.one_table       a train step over one large table
    python -m benchmarks.criteo_step     a train step over 26 tables of a thousand to a million rows
    python -m benchmarks.embedding_step  lookups, concatenation and update against Keras, FBGEMM and the memory's speed
    python -m benchmarks.zoo             train steps of DLRM, DeepFM, DCN, Wide & Deep and more, with their dense parts
    python -m benchmarks.wide_model      a train step of a thousand fields
    python -m benchmarks.xla_step        steps that XLA compiles, and how soon the first one is done
    python -m benchmarks.first_step      the first step, the nodes that run, and the memory
    python -m benchmarks.pass_time       how long the passes take on graphs of 1,000 to 100,000 nodes

`--quick` gives a short run of each. Nothing here imports TensorFlow at the top of a module that the harness loads: the
arms of a race live in processes of their own, some under another interpreter.
"""
