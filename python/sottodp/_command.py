"""Run the sotto command that the wheel contains."""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from . import errors


def command() -> str:
    """Return the path of the sotto command: $SOTTO_COMMAND, or the one in this package.

    Returns
    -------
    str
        The path, for ``subprocess``. The console script ``sotto`` starts the same command.

    Examples
    --------
    >>> import subprocess
    >>> from sottodp import command
    >>> subprocess.run([command(), "--version"], capture_output=True, text=True).stdout.split()[:2]
    ['sotto', 'version']
    """
    named = os.environ.get("SOTTO_COMMAND")
    if named:
        return named
    return str(Path(__file__).with_name("sotto.exe" if os.name == "nt" else "sotto"))


class Rows:
    """Rows for the command, in memory or in an unnamed file, so that none remain.

    They are written to ``file`` before they are given to `run`; ``path`` is where the command finds them.
    """

    def __init__(self, pipe: bool = os.name == "nt") -> None:
        self.file: BinaryIO = io.BytesIO() if pipe else _unnamed()
        self.path = "-" if pipe else f"/dev/fd/{self.file.fileno()}"

    def __enter__(self) -> Rows:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()


def _unnamed() -> BinaryIO:
    if hasattr(os, "memfd_create"):
        with contextlib.suppress(OSError):  # a kernel may not have it
            return os.fdopen(os.memfd_create("sotto-rows"), "w+b")
    return tempfile.TemporaryFile()


def write(rows: Rows, table: Any) -> None:
    """Write a table of pyarrow as the command reads it."""
    import pyarrow

    with pyarrow.ipc.new_stream(rows.file, table.schema) as stream:
        stream.write_table(table)


def run(*arguments: object, rows: Rows | None = None, within: Path | None = None) -> str:
    """Return what the command prints, as text: see `output`."""
    return output(*arguments, rows=rows, within=within, above=5).decode("utf-8")


def output(*arguments: object, rows: Rows | None = None, within: Path | None = None, above: int = 4) -> bytes:
    """Return what the command prints. If it fails, raise the class of ``sottodp.errors`` for that kind of error.

    The command ends when this process does, however that ends: it holds one end of a pipe. It removes the directory
    ``within`` then, which is of this call alone.
    """
    inherited: list[int] = []
    text = None
    if rows is not None and isinstance(rows.file, io.BytesIO):
        text = rows.file.getvalue()
    elif rows is not None:
        rows.file.flush()
        inherited = [rows.file.fileno()]
    watched, held = os.pipe()
    try:
        process = _start([command(), *map(str, arguments)], watched, inherited, text is not None, within)
    except OSError as error:
        os.close(held)
        raise errors.MachineError(f"sotto does not start: {error}") from error
    except BaseException:
        os.close(held)
        raise
    finally:
        os.close(watched)
    with process:
        try:
            out, err = process.communicate(text)
        finally:  # after Ctrl-C, too, as in a notebook: the command stops, and the run can be resumed
            os.close(held)
    if process.returncode == 0:
        if err.strip():  # what the command says for the owner's terminal only, as how many rows were dropped
            warnings.warn(err.decode("utf-8", "replace").strip(), errors.PrivacyWarning, stacklevel=above)
        return out
    raise _error(process.returncode, err.decode("utf-8", "replace"))


def _start(arguments: Sequence[str], watched: int, inherited: Sequence[int], piped: bool, within: Path | None = None) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "SOTTO_ERROR_KIND": "1"}
    if within is not None:
        environment["SOTTO_PARENT_DIRECTORY"] = str(within.absolute())
    options: dict[str, Any] = {
        "stdin": subprocess.PIPE if piped else subprocess.DEVNULL,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        "env": environment,
    }
    if sys.platform == "win32":
        import msvcrt

        watched = msvcrt.get_osfhandle(watched)
        os.set_handle_inheritable(watched, True)
        options["startupinfo"] = subprocess.STARTUPINFO(lpAttributeList={"handle_list": [watched]})
    else:
        options["pass_fds"] = (watched, *inherited)
    environment["SOTTO_PARENT_PIPE"] = str(watched)
    return subprocess.Popen(arguments, **options)


def _error(code: int, text: str) -> errors.SottoError | errors.Interrupted:
    """Return the error for a command with this exit code and this text on standard error."""
    text = text.strip()
    kind = re.search(r"(?:^|\n)\[([a-z-]+)\]$", text)
    if kind:
        text = text[: kind.start()].strip()
    begins = re.search(r"(?:^|\n)sotto: ", text)
    if begins:
        before, text = text[: begins.start()].strip(), text[begins.end() :]
        if before:  # for the owner's terminal only, as when the command does not fail
            warnings.warn(before, errors.PrivacyWarning, stacklevel=5)
    text = text or f"sotto ended with code {code}"
    found = errors.KINDS.get(kind[1]) if kind else None
    return (found or errors.CODES.get(code, errors.MachineError))(text)


def main() -> NoReturn:
    """The console script ``sotto``."""
    arguments = [command(), *sys.argv[1:]]
    if os.name == "nt":
        sys.exit(subprocess.call(arguments))
    os.execv(arguments[0], arguments)
