"""Threads, forks and the end of the interpreter, each in a process of its own."""

import subprocess

PREAMBLE = """
    import atexit, os, threading, time
    import numpy as np
    import tensorflow as tf
    from picasso_tf.bridge import callback, library
    from tests.bridge.models import lookup_times
"""


def assert_done(result: subprocess.CompletedProcess) -> None:
    assert (result.stdout, result.returncode) == ("done\n", 0), result.stderr


def test_sixteen_threads_trace_at_once(run_script):
    result = run_script(
        PREAMBLE,
        """
    calls, threads_seen, most_inside, inside = 0, set(), 0, 0
    lock = threading.Lock()

    def optimize(request):
        global calls, most_inside, inside
        with lock:
            calls, inside = calls + 1, inside + 1
            most_inside = max(most_inside, inside)
            threads_seen.add(threading.get_ident())
        time.sleep(0.01)
        with lock:
            inside -= 1
        return request.graph

    wrong = []

    def work():
        for factor in range(5):
            compute, sums = lookup_times(float(factor + 2))
            if not np.array_equal(compute(), sums * (factor + 2)):
                wrong.append(factor)

    callback.install(optimize)
    tf.config.optimizer.set_experimental_options({"use_plugin_optimizers": True})
    workers = [threading.Thread(target=work) for _ in range(16)]
    for worker in workers: worker.start()
    for worker in workers: worker.join()
    assert wrong == [], wrong
    assert calls == 16 * 5, calls
    assert most_inside > 1, "calls must not wait for each other"
    print("done")
    """,
    )
    assert_done(result)


def test_a_forked_child_does_not_wait_for_threads_that_it_does_not_have(run_script):
    result = run_script(
        PREAMBLE,
        """
    inside, leave = threading.Event(), threading.Event()

    def optimize(request):
        inside.set()
        leave.wait()

    callback.install(optimize)
    tf.config.optimizer.set_experimental_options({"use_plugin_optimizers": True})
    worker = threading.Thread(target=lookup_times(2.0)[0])
    worker.start()
    inside.wait()
    lib = library.lib()
    child = os.fork()
    if child == 0:
        graph = tf.compat.v1.GraphDef(node=[tf.compat.v1.NodeDef(name="a", op="NoOp")]).SerializeToString()
        works = len(callback.annotate_shapes(graph, (), ("a",))) > 0
        os._exit(10 * works + lib.picasso_close(60_000))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 10
    assert lib.picasso_close(1) == 1, "the parent's own thread is still inside"
    leave.set()
    worker.join()
    assert lib.picasso_close(1) == 0
    print("done")
    """,
    )
    assert_done(result)


def test_a_fork_inside_the_callback(run_script):
    result = run_script(
        PREAMBLE,
        """
    def optimize(request):
        child = os.fork()
        if child == 0:
            os._exit(library.lib().picasso_close(60_000))
        codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    codes = []
    callback.install(optimize)
    tf.config.optimizer.set_experimental_options({"use_plugin_optimizers": True})
    lookup_times(2.0)[0]()
    assert codes == [0], codes
    print("done")
    """,
    )
    assert_done(result)


# TensorFlow's own bindings abort now and then when a daemon thread comes back from C++ after the interpreter has ended,
# with or without this plugin. So these two look at the state right after our own exit handler, and leave there.
AT_EXIT = """
    calls, running = 0, 0

    def optimize(request):
        global calls, running
        calls, running = calls + 1, running + 1
        time.sleep(DURATION)
        running -= 1

    def work():
        while True:
            lookup_times(2.0)[0]()

    def report():
        before = calls
        time.sleep(1)  # the threads trace on, but nothing comes to Python any more
        print(f"running {running}, new {calls - before}", flush=True)
        os._exit(0)

    atexit.register(report)  # handlers run in reverse order: after the bridge's own
    callback.install(optimize)
    tf.config.optimizer.set_experimental_options({"use_plugin_optimizers": True})
    for _ in range(4):
        threading.Thread(target=work, daemon=True).start()
    while calls < 4:
        time.sleep(0.01)
"""


def test_the_end_of_the_interpreter_waits_for_running_calls(run_script):
    result = run_script("DURATION = 0.5\n", PREAMBLE, AT_EXIT)
    assert (result.stdout, result.returncode) == ("running 0, new 0\n", 0), result.stderr


def test_the_end_of_the_interpreter_does_not_wait_for_ever(run_script):
    result = run_script("DURATION = 600\n", PREAMBLE, "callback._CLOSE_TIMEOUT_MS = 100\n", AT_EXIT)
    assert (result.stdout, result.returncode) == ("running 4, new 0\n", 0), result.stderr
