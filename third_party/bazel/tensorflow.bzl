"""The installed TensorFlow as a repository: its headers, its library, and the flags that it was compiled with.

Nothing is downloaded or copied: the repository holds links into the Python installation.
"""

_QUESTION = """
import json, runpy, sys
import tensorflow as tf

print(json.dumps({
    "version": tf.__version__,
    "unsupported_reason": runpy.run_path(sys.argv[1])["unsupported_reason"](tf.__version__),
    "include": tf.sysconfig.get_include(),
    "lib": tf.sysconfig.get_lib(),
    "compile_flags": tf.sysconfig.get_compile_flags(),
    "link_flags": tf.sysconfig.get_link_flags(),
}))
"""

_BUILD = """
cc_library(
    name = "tensorflow",
    srcs = ["{library}"],
    # Half of all headers are in external/, and only TensorFlow's own sources need them.
    hdrs = glob(["include/**"], exclude = ["include/external/**"]),
    # These become -isystem: warnings in headers of others are not ours to fix.
    includes = ["include"],
    visibility = ["//visibility:public"],
)
"""

_FLAGS = """
TENSORFLOW_VERSION = {version}
TENSORFLOW_COPTS = {copts}
"""

def _find_python(ctx, root):
    """PICASSO_PYTHON, else the virtual environment of this checkout, else python3 on the PATH."""
    wanted = ctx.os.environ.get("PICASSO_PYTHON", "")
    if "/" in wanted:
        return ctx.path(wanted if wanted.startswith("/") else "%s/%s" % (root, wanted))
    in_checkout = ctx.path("%s/.venv/bin/python" % root)
    if not wanted and in_checkout.exists:
        return in_checkout
    found = ctx.which(wanted or "python3")
    if not found:
        fail("No Python was found: PATH has no `%s`; name one in the environment variable PICASSO_PYTHON." %
             (wanted or "python3"))
    return found

def _ask(ctx):
    """What TensorFlow says of itself. Stops with one sentence where it cannot be used."""
    python = _find_python(ctx, ctx.path(Label("//:WORKSPACE")).dirname)
    if not python.exists:
        fail("There is no Python `%s`: name another in the environment variable PICASSO_PYTHON." % python)
    version_file = ctx.path(Label("//:picasso_tf/version.py"))
    answer = ctx.execute([python, "-c", _QUESTION, version_file])
    if "No module named 'tensorflow'" in answer.stderr:
        fail("`%s` has no TensorFlow: install it there, or name another Python in the environment variable " % python +
             "PICASSO_PYTHON.")
    if answer.return_code != 0:
        fail("The TensorFlow of `%s` cannot be imported:\n%s" % (python, answer.stderr))
    tensorflow = json.decode(answer.stdout.strip().split("\n")[-1])
    if tensorflow["unsupported_reason"]:
        fail(tensorflow["unsupported_reason"])
    return tensorflow

def _tensorflow_repository(ctx):
    tensorflow = _ask(ctx)
    library = [flag[len("-l:"):] for flag in tensorflow["link_flags"] if flag.startswith("-l:")][0]
    ctx.symlink(tensorflow["include"], "include")
    ctx.symlink("%s/%s" % (tensorflow["lib"], library), library)
    ctx.file("BUILD", _BUILD.format(library = library))
    ctx.file("flags.bzl", _FLAGS.format(
        version = repr(tensorflow["version"]),
        copts = repr([flag for flag in tensorflow["compile_flags"] if not flag.startswith("-I")]),
    ))

tensorflow_repository = repository_rule(
    implementation = _tensorflow_repository,
    doc = "Asks the `tf.sysconfig` of a Python: PICASSO_PYTHON, else .venv/bin/python, else python3 on the PATH.",
    environ = ["PATH", "PICASSO_PYTHON"],
    # An upgrade of TensorFlow is noticed when Bazel's server starts, or by `bazel sync --configure`.
    configure = True,
    local = True,
)
