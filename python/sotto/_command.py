"""The sotto command that the wheel carries."""

import os
import subprocess
import sys
from pathlib import Path


class SottoError(RuntimeError):
    """The machine failed: disk, network, a missing command. Exit code 1 of sotto."""


class BudgetError(RuntimeError):
    """The privacy budget does not allow the run; nothing was released. Exit code 3 of sotto."""


def command():
    """The path of the sotto command: $SOTTO_COMMAND, or the one in this package."""
    named = os.environ.get("SOTTO_COMMAND")
    if named:
        return named
    return str(Path(__file__).with_name("sotto.exe" if os.name == "nt" else "sotto"))


def run(*arguments):
    """What the command prints. A mistake in what was given raises ValueError, with the command's words."""
    try:
        done = subprocess.run([command(), *map(str, arguments)], capture_output=True, encoding="utf-8")
    except OSError as error:
        raise SottoError(f"sotto does not start: {error}") from error
    if done.returncode == 0:
        return done.stdout
    words = done.stderr.strip().removeprefix("sotto: ") or f"sotto ended with code {done.returncode}"
    raise {2: ValueError, 3: BudgetError, 130: KeyboardInterrupt}.get(done.returncode, SottoError)(words)


def main():
    """The console script ``sotto``."""
    arguments = [command(), *sys.argv[1:]]
    if os.name == "nt":
        sys.exit(subprocess.call(arguments))
    os.execv(arguments[0], arguments)
