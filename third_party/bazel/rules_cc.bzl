"""Replaces @rules_cc where .bazelrc asks for it.

`--override_repository` would do, but Debian's Bazel takes only absolute paths there.
"""

_REPLACED = """
def replace_rules_cc():
    native.local_repository(name = "rules_cc", path = "third_party/bazel/rules_cc")
"""

_KEPT = """
def replace_rules_cc():
    pass
"""

def _rules_cc_choice(ctx):
    ctx.file("BUILD")
    ctx.file("choice.bzl", _REPLACED if ctx.os.environ.get("PICASSO_RULES_CC") == "native" else _KEPT)

rules_cc_choice = repository_rule(
    implementation = _rules_cc_choice,
    doc = "Offers `replace_rules_cc`, which does something only under --repo_env=PICASSO_RULES_CC=native.",
    environ = ["PICASSO_RULES_CC"],
)
