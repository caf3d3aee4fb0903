"""Runs the checks of a client against a server, one line of output for each. The Rust side is tests/src/client_program.rs."""

import sys
import traceback

CHECKS = []


def check(function):
    """Registers a check: a function of the kubeconfig and the name of a namespace of its own."""
    CHECKS.append(function)
    return function


def ask(what):
    """Asks the test for something, such as `restart`, and waits until it is done."""
    print(what, flush=True)
    if sys.stdin.readline() != "done\n":
        raise AssertionError(f"the test did not {what}")


def expect(actual, wanted, what):
    if actual != wanted:
        raise AssertionError(f"{what}: {actual!r}, expected {wanted!r}")


def run(make_namespace):
    """Runs all checks; ends with 1 if one failed."""
    failed = False
    for function in CHECKS:
        try:
            function(make_namespace(function.__name__.replace("_", "-")))
            print(f"{function.__name__}: ok", flush=True)
        except Exception:
            failed = True
            print(f"{function.__name__}: {traceback.format_exc()}", flush=True)
    sys.exit(failed)
