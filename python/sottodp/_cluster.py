"""What a fit on a cluster needs, whatever the cluster: the coordinator on the driver, a worker for each partition.

A task of the cluster has a partition as Arrow batches and starts ``sotto worker`` with them. The driver runs ``sotto fit
--workers``. Rows are in memory or in an unnamed file, and the key comes to both by standard input.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow

from . import _domain, _labels, _types, errors
from ._command import Rows, _error, _start, command
from ._estimators import _HELD_OUT, _HOLDOUT, LABEL, SottoClassifier, SottoRegressor, _json, _options, _plain, finished
from .preprocessing import warn_of_fitted_steps

_ABOUT_SHARDS = re.compile(r"waiting for the workers of |warning: shard \d+ of \d+")

WAIT = 0.2  # seconds between two looks at a process
_REFUSED = 3  # exit code of a worker whose rows the gate refuses
_ALONE = 30  # seconds that a worker waits for its coordinator

OTHER_ROWS = (
    "a task came back with other rows than the run began with. Rows of a frame that is computed again must be the same: write the "
    "frame to a table first, or persist it, and fit on that"
)


@dataclass(frozen=True)
class Work:
    """What a task needs to be a worker. The key is no part of its text."""

    spec: str
    schema: str
    address: str
    count: int
    names: Sequence[str]
    columns: Sequence[Mapping[str, Any]] | None  # as in the schema; None for a schema file
    label: str  # column of the frame
    target: str  # its name in the schema
    order: Mapping[Any, str] | None  # names of classes in the schema; None for numbers
    unit: str | None
    key: bytes = field(repr=False)

    def write(self, rows: Rows, batches: Iterable[pyarrow.RecordBatch]) -> None:
        """Write a partition as the command reads it. A partition without batches has the columns alone."""
        writer = None
        for batch in batches:
            batch = self._encode(batch)
            if writer is None:
                writer = pyarrow.ipc.new_stream(rows.file, batch.schema)
            writer.write_batch(batch)
        if writer is None:
            names = [*self.names, *([self.unit] if self.unit else []), self.target]
            writer = pyarrow.ipc.new_stream(rows.file, pyarrow.schema([(name, pyarrow.string()) for name in names]))
        writer.close()

    def _encode(self, batch: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
        none: Sequence[Mapping[str, Any] | None] = [None] * len(self.names)
        said = self.columns or none
        cells = {name: _cells(name, batch.column(name), column) for name, column in zip(self.names, said)}
        if self.unit is not None:
            cells[self.unit] = batch.column(self.unit)
        cells[self.target] = self._codes(batch.column(self.label))
        return pyarrow.record_batch(cells)

    def _codes(self, labels: pyarrow.Array) -> pyarrow.Array:
        if self.order is None:
            return labels
        values = labels.to_pylist()
        if self.columns is None:  # the schema file says what is done about other labels
            return pyarrow.array([self.order.get(v, None if _domain.absent(v) else str(v)) for v in values], pyarrow.string())
        try:
            return pyarrow.array([self.order[value] for value in values], pyarrow.string())
        except (KeyError, TypeError):
            raise ValueError(f"label: column {self.label!r}: found a label that classes does not list; add it to classes, or correct the row") from None


@dataclass(frozen=True)
class Ended:
    """How a worker ended. Its text may tell of rows: it is for the owner's terminal, not for a cluster's logs."""

    shard: int
    code: int
    text: str = field(default="", repr=False)


class Lost(RuntimeError):
    """A worker ended in the middle of a run. Its text tells nothing of rows."""


def work(
    task: Work, shard: int, batches: Iterable[pyarrow.RecordBatch], *, agree: Callable[[bool], bool] = bool, stop: Callable[[], bool] = lambda: False,
) -> Ended:
    """Be the worker of a shard until the run ends, or ``stop()`` is true.

    Once the rows are read, ``agree(read)`` says whether all workers have read theirs. Otherwise all end; the one that has
    not returns why.
    """
    with Rows() as rows, tempfile.TemporaryDirectory(prefix="sotto-") as directory:
        try:
            task.write(rows, batches)
            wrong = ""
        except (ValueError, pyarrow.ArrowInvalid, pyarrow.ArrowTypeError, pyarrow.ArrowNotImplementedError) as error:
            wrong = str(error) if isinstance(error, ValueError) and not isinstance(error, pyarrow.ArrowException) else "found columns of other types in two batches"
        if wrong:
            agree(False)
            return Ended(shard, 2, wrong)
        rows.file.flush()
        place = Path(directory)  # of public files
        (place / "schema.yaml").write_text(task.schema, encoding="utf-8")
        (place / "spec.yaml").write_text(json.dumps({**json.loads(task.spec), "schema": str(place / "schema.yaml")}), encoding="utf-8")
        arguments = ["worker", str(place / "spec.yaml"), "--hub", task.address, "--key", "-", "--shard", f"{shard + 1}/{task.count}", "--data", rows.path]
        with Process(arguments, task.key, [rows.file.fileno()], place) as worker:
            began = time.monotonic()  # it reads once it has its coordinator

            def lonely() -> bool:
                return not worker.connected() and time.monotonic() > began + _ALONE

            read = worker.says(r"^shard \d+/\d+: has its rows$", lambda: stop() or lonely()) is not None
            if not read and worker.process.poll() is None and lonely():
                raise Lost(f"shard {shard + 1} of {task.count}: found no coordinator at {task.address}; use a network in which workers reach it")
            if not agree(read):
                worker.end()
                return Ended(shard, 0 if read else worker.process.returncode or 1, "" if read else worker.rest())
            alone = 0.0  # since when there is no coordinator
            while worker.process.poll() is None:
                if stop():
                    worker.end()
                    return Ended(shard, 0)
                if worker.connected():
                    alone = 0
                elif not alone:
                    alone = time.monotonic()
                elif time.monotonic() > alone + _ALONE:
                    raise Lost(f"shard {shard + 1} of {task.count}: found no coordinator at {task.address}; use a network in which workers reach it")
                time.sleep(WAIT)
        code, text = worker.process.returncode, worker.rest()
        if code in (0, _REFUSED):  # the coordinator says on the driver why it refuses
            return Ended(shard, 0)
        raise Lost(f"shard {shard + 1} of {task.count}: {OTHER_ROWS if 'found other rows' in text else f'its worker ended with code {code}'}")


class Process:
    """A sotto command that gets a key by standard input. It ends with this process, and at the end of the block."""

    def __init__(self, arguments: Sequence[str], key: bytes, inherited: Sequence[int] = (), within: Path | None = None) -> None:
        watched, self._held = os.pipe()
        try:
            self.process = _start([command(), *arguments], watched, inherited, True, within)
        except OSError as error:
            os.close(self._held)
            raise errors.MachineError(f"sotto does not start: {error}") from error
        finally:
            os.close(watched)
        assert self.process.stdin and self.process.stdout and self.process.stderr
        try:
            self.process.stdin.write(key)
            self.process.stdin.close()
        except OSError:  # it has ended, and its words say why
            pass
        self._lines: list[str] = []
        self._out = b""
        self._readers = [threading.Thread(target=reader, daemon=True) for reader in (self._read_lines, self._read_out)]
        for thread in self._readers:
            thread.start()

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def _read_lines(self) -> None:
        assert self.process.stderr
        for line in self.process.stderr:
            self._lines.append(line.decode("utf-8", "replace"))

    def _read_out(self) -> None:
        assert self.process.stdout
        self._out = self.process.stdout.read()

    def says(self, pattern: str, stop: Callable[[], bool] = lambda: False) -> re.Match[str] | None:
        """Wait for a line on standard error; None if the process ends without it, or stop() is true."""
        while True:
            ended = self.process.poll() is not None
            if ended:
                for thread in self._readers:
                    thread.join()
            for line in list(self._lines):
                found = re.match(pattern, line)
                if found:
                    return found
            if ended or stop():
                return None
            time.sleep(WAIT / 4)

    def connected(self) -> bool:
        """Whether a worker said last that it has its coordinator."""
        return next((" connected to " in line or line.rstrip().endswith(": has its rows") for line in reversed(self._lines) if line.startswith("shard ")), False)

    def rest(self) -> str:
        """What it said on standard error, once it has ended."""
        for thread in self._readers:
            thread.join()
        return "".join(self._lines)

    def end(self) -> None:
        """End the process, gently at first: a run can be resumed then."""
        if self._held >= 0:
            os.close(self._held)
            self._held = -1
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Tasks(Protocol):
    """The workers of a fit, as tasks of a cluster."""

    def failed(self) -> BaseException | Ended | None:
        """Why the tasks cannot go on; None while they do."""

    def stop(self) -> None:
        """End the tasks that still run, and wait for them."""


def fit(
    self: Any, features: Sequence[str], label: str | None, columns: Sequence[str], count: int, listen: tuple[str, str],
    start: Callable[[Work], Tasks], type_of: Callable[[str], np.dtype[Any] | None] = lambda column: None,
) -> None:
    """Train on the columns of a frame that ``start`` gives to workers. ``listen`` is where the coordinator listens, and the host by
    which workers find it. ``type_of`` gives the type of a column's labels, None where the frame does not say it."""
    if os.name == "nt":
        raise OSError("workers of a cluster need descriptors that a process inherits, which Windows does not have; use Linux or macOS")
    self._target = label if label and _plain(label) and label not in features else LABEL
    target = self._target if self.schema is None else self._columns_of_schema()[0]
    label = target if label is None else label
    if self.run_dir and finished(Path(self.run_dir)):
        raise ValueError(f"run_dir: {self.run_dir} holds a finished run; use a new directory")
    said, order, options = _label(self, type_of(label) if label in columns else None)
    names = list(features)
    warn_of_fitted_steps()
    with tempfile.TemporaryDirectory(prefix="sotto-") as directory:
        place = Path(directory)  # holds only public files
        spec, out, target, unit = self._plan(place, "-", names, None, said, options)
        missing = [name for name in (*names, label, *([unit] if unit else [])) if name not in columns]
        if missing:
            raise ValueError(f"df: found no column {missing[0]!r}; give a frame with the columns of features and label")
        del spec["data"]
        (place / "spec.yaml").write_text(_json(spec), encoding="utf-8")
        worker_spec = {name: spec[name] for name in ("model", "privacy", "accept_delta", "accept_dropped") if name in spec}
        key = secrets.token_bytes(32)
        with self._in_words(place, Rows(), names):
            arguments = ["fit", str(place / "spec.yaml"), "--json", "--workers", listen[0], "--shards", str(count), "--key", "-", *(["--or-resume"] if self.run_dir else [])]
            with Process(arguments, key, within=place) as run:
                found = run.says(r"^waiting for the workers of \d+ shards? at (\S+)$")
                if found is None:
                    run.end()
                    raise _error(run.process.returncode, run.rest())
                port = found[1].rpartition(":")[2]
                tasks = start(Work(
                    spec=_json(worker_spec), schema=Path(spec["schema"]).read_text(encoding="utf-8"), address=f"{listen[1]}:{port}",
                    count=count, names=names, columns=self._columns, label=label, target=target, order=order, unit=unit, key=key,
                ))
                try:
                    _wait(run, tasks, count)
                finally:
                    run.end()
                    tasks.stop()
        self.feature_names_in_, self.n_features_in_ = np.asarray(names, dtype=object), len(names)
        self.partitions_ = count
        self._keep_run(out, names, unit)


def _wait(run: Process, tasks: Tasks, count: int) -> None:
    """Wait for the coordinator, and stop it if the tasks cannot go on."""
    while run.process.poll() is None:
        why = tasks.failed()
        if isinstance(why, Ended) and why.code != 0:
            raise _of_shard(_error(why.code, why.text), why.shard, count)
        if isinstance(why, BaseException):
            raise errors.MachineError(_lost(str(why))) from why
        time.sleep(WAIT)
    text = run.rest()
    if run.process.returncode != 0:
        why = tasks.failed()
        if isinstance(why, Ended) and why.code != 0:
            raise _of_shard(_error(why.code, why.text), why.shard, count)
        raise _error(run.process.returncode, "".join(line for line in text.splitlines(True) if not _ABOUT_SHARDS.match(line)))
    said = [line.removeprefix("warning: ").strip() for line in text.splitlines() if line.startswith("warning: ") and not _ABOUT_SHARDS.match(line)]
    if said:  # what the command says for the owner's terminal only
        warnings.warn("\n".join(said), errors.PrivacyWarning, stacklevel=4)


def _lost(text: str) -> str:
    """What an error of the cluster says that tells nothing of rows."""
    shard, module = re.search(r"shard \d+ of \d+: [^\n]*", text), re.search(r"No module named '[\w.]+'", text)
    if shard:
        return shard[0]
    if module:
        return f"a task found a package missing: {module[0]}; install what the driver has on all machines of the cluster"
    return "the cluster ended the tasks of the workers; the error above says why"


def _of_shard(error: Any, shard: int, count: int) -> Any:
    """An error that a worker gave, which names its partition and not its file."""
    return type(error)(f"partition {shard + 1} of {count}: {re.sub(r'^shard [0-9]+ of [0-9]+: |/dev/fd/[0-9]+: ?', '', str(error))}")


def _label(self: Any, like: np.dtype[Any] | None) -> tuple[dict[str, Any] | None, dict[Any, str] | None, dict[str, Any]]:
    """The label's line of the schema, the names of classes, and the model's options: all of them from what is said."""
    if self.schema is None and not isinstance(self.domain, Mapping):
        raise ValueError("domain: must be a dict of columns, or schema=FILE: nothing is read off the rows of a cluster")
    if isinstance(self, SottoRegressor):
        options = _options("model_options", self.model_options)
        if self.schema is not None:
            return None, None, options
        return self._range(), None, options
    assert isinstance(self, SottoClassifier)
    if self.schema is not None:
        self._set_classes(*self._classes_of_schema(np.dtype(object) if like is None else like))
        return None, self._order(), self._options(self._order())
    if self.classes is None:
        raise ValueError("classes: must be said, or schema=FILE: the classes that occur are not private")
    self._set_classes(_labels.classes(self.classes, like))
    order = self._order()
    return {"classes": self._class_names}, order, self._options(order)


def partitions(said: Any, most: int, what: str) -> int:
    """The number of workers: as said, or all that run at the same time."""
    if said is None:
        said = most
    if not isinstance(said, (int, np.integer)) or isinstance(said, bool) or said < 1:
        raise ValueError(f"partitions: found {said!r}; give a whole number above 0: how many workers hold the rows, which is public")
    if said > most:
        raise ValueError(f"partitions: found {said}; choose at most {most}, as all workers run at the same time, and {what}")
    return int(said)


def features(self: Any, columns: Sequence[str]) -> list[str]:
    """The columns to train on: those that are named, else those of domain, else all of the frame but label and unit."""
    if self.features is not None:
        found = [str(name) for name in self.features]
        twice = [name for name in found if found.count(name) > 1]
        if twice:
            raise ValueError(f"features: found {twice[0]!r} twice; name each column once")
        return found
    if isinstance(self.domain, Mapping):
        return [str(name) for name in self.domain]
    if self.schema is None:
        raise ValueError("domain: must be a dict of columns, or schema=FILE: nothing is read off the rows of a cluster")
    target, unit = self._columns_of_schema()
    return [name for name in columns if name not in (target, unit, self.label)]


def label(self: Any) -> str | None:
    """The column of the label; None for that of the schema file."""
    if self.label is None and self.schema is None:
        raise ValueError("label: must be said: the column to predict")
    return self.label if self.label is None else str(self.label)


def predictions(self: Any, frame: Any) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The prediction of each row of a pandas frame and, of a classifier that has them, the probabilities of its classes."""
    try:
        predicted = self._predicted(frame[list(self.feature_names_in_)])
    except errors.SottoError:  # its text tells of rows, and a cluster logs errors
        raise Lost("transform: found a row that does not fit the schema; predict() on its partition says which") from None
    if isinstance(self, SottoRegressor):
        return self._numbers(predicted), np.empty((0, 0))
    return self._decided(predicted), self._probabilities(predicted) if has_probabilities(self) else np.empty((0, 0))


def has_probabilities(self: Any) -> bool:
    """Whether the model gives a probability to each class."""
    return isinstance(self, SottoClassifier) and self.model not in ("svm", "huber-svm")


def value_type(self: Any) -> np.dtype[Any]:
    """The type of a prediction: that of the labels, or of a number. Texts are objects."""
    kind = np.dtype(float) if isinstance(self, SottoRegressor) else self.classes_.dtype
    return np.dtype(object) if kind.kind == "U" else kind


def documented(estimator: type, summary: str, frame: str, slots: str, examples: str) -> str:
    """The docstring of a cluster's estimator: that of the estimator for one machine, and what a cluster adds."""
    text = str(estimator.__doc__)
    _, _, text = text.partition("\n")
    text, _, _ = text.partition("    Examples\n    --------\n")
    for part in (_HOLDOUT, _HELD_OUT):  # a worker divides no rows
        text = text.replace(part, "")
    more = f"""    features : sequence of str, optional
        The columns to train on; by default those of ``domain``, or of the frame without label and unit with a schema file.
    label : str, optional
        The column to predict; by default the schema file's.
    partitions : int, optional
        How many workers hold the rows, a public number that never follows how many rows there are; by default as many as
        {slots}.
    model : str, optional
"""
    text = text.replace("    model : str, optional\n", more, 1)
    text = text.replace("X is a data frame with its columns then.", f"the {frame} has its columns.")
    return f"{summary}\n{text}    Examples\n    --------\n    {examples}\n    "


def _cells(name: str, cells: pyarrow.Array, column: Mapping[str, Any] | None) -> pyarrow.Array:
    """The cells of a column for the command."""
    if column is not None and column["type"] in ("categorical", "ordinal", "text") and not (pyarrow.types.is_string(cells.type) or pyarrow.types.is_large_string(cells.type)):
        return _domain.cells(name, cells.to_pylist(), column)
    return cells.cast(pyarrow.float64()) if pyarrow.types.is_null(cells.type) else cells
