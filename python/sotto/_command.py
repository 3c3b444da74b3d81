"""The sotto command that the wheel carries."""

import os
import re
import subprocess
import sys
from pathlib import Path

from . import errors


def command():
    """The path of the sotto command: $SOTTO_COMMAND, or the one in this package."""
    named = os.environ.get("SOTTO_COMMAND")
    if named:
        return named
    return str(Path(__file__).with_name("sotto.exe" if os.name == "nt" else "sotto"))


def run(*arguments):
    """What the command prints. Where it ends with an error, its kind's class of ``sotto.errors`` is raised."""
    try:
        done = subprocess.run(
            [command(), *map(str, arguments)], capture_output=True, encoding="utf-8",
            env={**os.environ, "SOTTO_ERROR_KIND": "1"},
        )
    except OSError as error:
        raise errors.MachineError(f"sotto does not start: {error}") from error
    if done.returncode == 0:
        return done.stdout
    raise _error(done.returncode, done.stderr)


def _error(code, text):
    """The error of a command that ended with this code and wrote this text to standard error."""
    text = text.strip()
    kind = re.search(r"(?:^|\n)\[([a-z-]+)\]$", text)
    if kind:
        text = text[: kind.start()].strip()
    text = text.removeprefix("sotto: ") or f"sotto ended with code {code}"
    found = errors.KINDS.get(kind[1]) if kind else None
    return (found or errors.CODES.get(code, errors.MachineError))(text)


def main():
    """The console script ``sotto``."""
    arguments = [command(), *sys.argv[1:]]
    if os.name == "nt":
        sys.exit(subprocess.call(arguments))
    os.execv(arguments[0], arguments)
