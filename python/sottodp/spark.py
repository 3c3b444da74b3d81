"""Differentially private learning on Spark data frames.

``SottoClassifier(...).fit(df)`` trains where the rows are: a barrier stage starts one ``sotto worker`` for each partition, and
the driver coordinates them. Ledger, run directory and report are the driver's. Executors need this package, too. It needs
pyspark 3.5 or later: ``pip install sottodp[spark]``. docs/how-to/clusters.md says what to turn on in Spark, and why.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pyarrow
from numpy.random import RandomState
from sklearn.utils.validation import check_is_fitted

from . import _cluster, _estimators, _types

__all__ = ["SottoClassifier", "SottoRegressor"]

_PATIENT = 120  # seconds that a fit waits for executors
_FEWER_SLOTS = "SPARK-24819"  # in what Spark says of a stage whose tasks cannot run at once


class _Spark:
    """What both estimators share."""

    features: Sequence[str] | None
    label: str | None
    partitions: int | None
    partitions_: int

    def _fit_frame(self, df: Any) -> None:
        session = df.sparkSession
        if not hasattr(session, "sparkContext") or not hasattr(df, "mapInArrow"):
            raise ValueError("df: found a frame of Spark Connect or of an earlier version; use one of a classic session of Spark 3.5 or later")
        context = session.sparkContext
        check(context.master, context.getConf().get, str(context.version))
        count = _cluster.partitions(self.partitions, _slots(context), "so many tasks Spark runs at once")
        names, label = _cluster.features(self, df.columns), _cluster.label(self)
        host = context.getConf().get("spark.driver.host", "127.0.0.1")
        listen = context.getConf().get("spark.driver.bindAddress", host)
        _cluster.fit(self, names, label, df.columns, count, (f"{listen}:0", host), lambda work: _Stage(divided(df, work), work), lambda name: _TYPES.get(df.schema[name].dataType.typeName()))

    def _transform(self, df: Any) -> Any:
        import pandas
        from pyspark.sql import functions, types

        check_is_fitted(self, "guarantee_")
        names = [str(name) for name in self.feature_names_in_]  # type: ignore[attr-defined]
        value = next((name for name, kind in _TYPES.items() if kind == _cluster.value_type(self)), "string")
        fields = [types.StructField("prediction", getattr(types, f"{value.capitalize()}Type")())]
        classes = [f"p{i}" for i in range(len(self.classes_))] if _cluster.has_probabilities(self) else []  # type: ignore[attr-defined]
        fields += [types.StructField(name, types.DoubleType()) for name in classes]

        def predict(frames: Iterator[Any]) -> Iterator[Any]:
            for frame in _together(frames):
                values, probabilities = _cluster.predictions(self, frame)
                yield pandas.DataFrame({"prediction": values, **dict(zip(classes, probabilities.T))})

        predict.__annotations__ = {"frames": Iterator[pandas.DataFrame], "return": Iterator[pandas.DataFrame]}  # by which Spark knows its kind
        made_by: Any = functions
        udf = made_by.pandas_udf(predict, types.StructType(fields))
        made = f"sotto-{uuid.uuid4().hex}"
        answered = df.withColumn(made, udf(functions.struct(*[functions.col(_quoted(name)) for name in names])))
        new = {"prediction": functions.col(f"`{made}`.prediction")}
        if classes:  # Spark makes the arrays: of pandas' it would convert each number by itself
            none = functions.lit(float("nan"))  # of a row that the schema drops
            new["probability"] = functions.array(*[functions.coalesce(functions.col(f"`{made}`.{name}"), none) for name in classes])
        kept = [functions.col(_quoted(name)) for name in df.columns if name not in new]
        return answered.select(*kept, *[column.alias(name) for name, column in new.items()])


_AT_ONCE = 100_000  # rows that one process predicts: Spark's own batches have 10,000


def _together(frames: Iterator[Any]) -> Iterator[Any]:
    """Frames of about so many rows, in the same order."""
    import pandas

    some: list[Any] = []
    for frame in frames:
        some.append(frame)
        if sum(map(len, some)) >= _AT_ONCE:
            yield pandas.concat(some)
            some = []
    if some:
        yield pandas.concat(some)


# Spark's types of labels, as NumPy has them.
_TYPES = {name: np.dtype(kind) for name, kind in (
    ("string", object), ("boolean", bool), ("byte", "int8"), ("short", "int16"), ("integer", "int32"), ("long", "int64"), ("float", "float32"), ("double", "float64"),
)}

# What a session has to say, so that nothing un-noised is readable outside its processes.
_SETTINGS = {
    "spark.authenticate": "true",
    "spark.network.crypto.enabled": "true",
    "spark.io.encryption.enabled": "true",
    "spark.speculation": "false",
    "spark.dynamicAllocation.enabled": "false",
}


def check(master: str, get: Callable[[str, str], str], version: str) -> None:
    """Refuse a session in which others could read what travels. In ``local[n]`` all is one process, and nothing travels."""
    if master.startswith("local") and not master.startswith("local-cluster"):
        return
    wrong = []
    for name, want in _SETTINGS.items():
        found = get(name, "false").strip().lower()
        if name == "spark.network.crypto.enabled" and found != want and int(version.partition(".")[0]) >= 4:
            found = get("spark.ssl.rpc.enabled", "false").strip().lower()  # TLS; earlier versions do not know the setting
        if found != want:
            wrong.append(f"{name}={want}")
    if wrong:
        raise ValueError(
            f"the Spark session lacks {', '.join(wrong)}; start a session with all of them: the key of the "
            "workers and rows travel between its processes, and a second copy of a task would be a second worker"
        )


def divided(df: Any, work: _cluster.Work) -> Any:
    """The rows of a frame in as many partitions as there are workers, each a function of the rows alone: where a row is and
    in which order follows from its content (with a unit, from the unit's), so a partition that is computed again is the same."""
    from pyspark.sql import functions

    columns = [*work.names, work.label, *([work.unit] if work.unit else [])]
    by = [work.unit] if work.unit else columns
    chosen = df.select(*[functions.col(_quoted(name)) for name in columns])
    return chosen.repartition(work.count, *[functions.col(_quoted(name)) for name in by]).sortWithinPartitions(
        *[functions.col(_quoted(name)) for name in columns]
    )


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _slots(context: Any) -> int:
    """How many tasks run at once. Executors may be still on their way; Spark says how many are to be there, unless its user has
    set another number."""
    now = _slots_now(context)
    return now if now and context.getConf().contains("spark.default.parallelism") else max(now, int(context.defaultParallelism))


def _slots_now(context: Any) -> int:
    """How many tasks the executors that are there run at once."""
    backend = context._jsc.sc()
    return int(backend.maxNumConcurrentTasks(backend.resourceProfileManager().defaultResourceProfile()))


class _Stage:
    """The barrier stage of the workers."""

    def __init__(self, rows: Any, work: _cluster.Work) -> None:
        from pyspark import InheritableThread

        self._context = rows.sparkSession.sparkContext
        self._group = f"sotto-{uuid.uuid4().hex}"
        self._wrong: BaseException | None = None
        self._ended: list[_cluster.Ended] = []
        self._over = threading.Event()
        late = time.monotonic() + _PATIENT

        def run() -> None:
            try:
                self._context.setJobGroup(self._group, "workers of a Sotto fit", True)
                while not self._over.is_set():
                    while _slots_now(self._context) < work.count and time.monotonic() < late and not self._over.wait(_cluster.WAIT):
                        pass  # executors are on their way, as after a loss; Spark itself would not wait for them
                    if self._over.is_set():
                        return
                    # Spark runs a stage of workers again when it loses one, but not the last stage of a job: so the answers go
                    # through another.
                    stage = rows.mapInArrow(_task(work), "shard bigint, code bigint, text string", barrier=True).repartition(1)
                    try:
                        self._ended = [_cluster.Ended(int(line.shard), int(line.code), str(line.text)) for line in stage.collect()]
                        return
                    except Exception as error:  # an executor may have gone since
                        if _FEWER_SLOTS not in str(error) or time.monotonic() > late:
                            raise
            except BaseException as error:  # of the stage; the thread of fit raises it
                self._wrong = error

        self._thread = InheritableThread(target=run, daemon=True)
        self._thread.start()

    def failed(self) -> BaseException | _cluster.Ended | None:
        if self._wrong is not None:
            return self._wrong
        return next((one for one in self._ended if one.code != 0), None)

    def stop(self) -> None:
        self._over.set()
        self._thread.join(5)  # they end by themselves when the run is done
        while self._thread.is_alive():
            self._context.cancelJobGroup(self._group)
            self._thread.join(1)


def _task(work: _cluster.Work) -> Callable[[Iterable[Any]], Iterator[pyarrow.RecordBatch]]:
    def task(batches: Iterable[Any]) -> Iterator[pyarrow.RecordBatch]:
        from pyspark import BarrierTaskContext

        context = BarrierTaskContext.get()

        def agree(read: bool) -> bool:
            return all(said == "read" for said in context.allGather("read" if read else "not read"))

        ended = _cluster.work(work, context.partitionId(), batches, agree=agree)
        yield pyarrow.RecordBatch.from_pydict({"shard": [ended.shard], "code": [ended.code], "text": [ended.text]})

    return task


class SottoClassifier(_Spark, _estimators.SottoClassifier):
    def __init__(
        self, epsilon: float | None = None, delta: float | None = None, adjacency: _types.Adjacency | None = None, *,
        features: Sequence[str] | None = None, label: str | None = None, partitions: int | None = None,
        model: str | None = None, method: str = "auto", model_options: Mapping[str, Any] | None = None,
        method_options: Mapping[str, Any] | None = None, schema: _types.Path | None = None, domain: _types.Domain | None = None,
        hats: int | None = None, classes: Sequence[Any] | None = None, rows: int | None = None, dataset: str | None = None,
        row_scaling: Literal["scale", "project"] = "scale", ledger: _types.Path | None = None, run_dir: _types.Path | None = None,
        lab: bool = False, random_state: int | RandomState | None = None, accept_delta: bool = False, accept_dropped: bool = False,
        class_weight: Mapping[Any, float] | None = None, disclosure: Mapping[str, Any] | None = None, void: bool = False,
    ) -> None:
        self._keep(locals())

    def fit(self, df: Any) -> SottoClassifier:  # type: ignore[override]
        """Train on the rows of a Spark data frame where they are, and charge the driver's ledger.

        Parameters
        ----------
        df : pyspark.sql.DataFrame
            Rows, with the columns of ``features`` and ``label``.

        Returns
        -------
        SottoClassifier
            The estimator itself.

        Raises
        ------
        ValueError
            If a setting of the session, a public fact or a privacy parameter is missing or wrong: it names all of them, and
            nothing was charged.
        BudgetError
            If the dataset's lifetime budget does not cover the fit; nothing was charged.
        MachineError
            If executors are lost and do not come back with the same rows. The budget stays reserved.

        Examples
        --------
        >>> SottoClassifier(1, 1e-6, "add-or-remove", label="ill", domain={"age": (0, 120)}, classes=[0, 1], rows=5000,
        ...                 dataset="clinic").fit(df)  # doctest: +SKIP
        """
        self._fit_frame(df)
        return self

    def transform(self, df: Any) -> Any:
        """Add the columns ``prediction`` and ``probability`` to a Spark data frame.

        Parameters
        ----------
        df : pyspark.sql.DataFrame
            Rows, with the columns of ``features``.

        Returns
        -------
        pyspark.sql.DataFrame
            The frame with the class of each row, and with the probability of each class in the order of ``classes_`` unless the
            model is an SVM. They are no private release: they depend on the rows of ``df``.

        Examples
        --------
        >>> fitted.transform(df).select("prediction").show()  # doctest: +SKIP
        """
        return self._transform(df)


class SottoRegressor(_Spark, _estimators.SottoRegressor):
    def __init__(
        self, epsilon: float | None = None, delta: float | None = None, adjacency: _types.Adjacency | None = None, *,
        features: Sequence[str] | None = None, label: str | None = None, partitions: int | None = None,
        model: str | None = None, method: str = "auto", model_options: Mapping[str, Any] | None = None,
        method_options: Mapping[str, Any] | None = None, schema: _types.Path | None = None, domain: _types.Domain | None = None,
        hats: int | None = None, target_range: tuple[float, float] | None = None, rows: int | None = None, dataset: str | None = None,
        row_scaling: Literal["scale", "project"] = "scale", ledger: _types.Path | None = None, run_dir: _types.Path | None = None,
        lab: bool = False, random_state: int | RandomState | None = None, accept_delta: bool = False, accept_dropped: bool = False,
        target_scale: float | None = None, disclosure: Mapping[str, Any] | None = None, void: bool = False,
    ) -> None:
        self._keep(locals())

    def fit(self, df: Any) -> SottoRegressor:  # type: ignore[override]
        """Train on the rows of a Spark data frame where they are, and charge the driver's ledger.

        Parameters
        ----------
        df : pyspark.sql.DataFrame
            Rows, with the columns of ``features`` and ``label``.

        Returns
        -------
        SottoRegressor
            The estimator itself.

        Raises
        ------
        ValueError
            If a setting of the session, a public fact or a privacy parameter is missing or wrong: it names all of them, and
            nothing was charged.
        BudgetError
            If the dataset's lifetime budget does not cover the fit; nothing was charged.
        MachineError
            If executors are lost and do not come back with the same rows. The budget stays reserved.

        Examples
        --------
        >>> SottoRegressor(1, 1e-6, "add-or-remove", label="systolic", domain={"age": (0, 120)}, target_range=(60, 220), rows=5000,
        ...                dataset="clinic").fit(df)  # doctest: +SKIP
        """
        self._fit_frame(df)
        return self

    def transform(self, df: Any) -> Any:
        """Add the column ``prediction`` to a Spark data frame.

        Parameters
        ----------
        df : pyspark.sql.DataFrame
            Rows, with the columns of ``features``.

        Returns
        -------
        pyspark.sql.DataFrame
            The frame with the predicted number of each row. It is no private release: it depends on the rows of ``df``.

        Examples
        --------
        >>> fitted.transform(df).select("prediction").show()  # doctest: +SKIP
        """
        return self._transform(df)


_EXAMPLE = """>>> from pyspark.sql import SparkSession  # doctest: +SKIP
    >>> df = SparkSession.builder.getOrCreate().read.parquet("patients")  # doctest: +SKIP
    >>> model = {call}.fit(df)  # doctest: +SKIP
    >>> model.transform(df).select("prediction").show()  # doctest: +SKIP"""

SottoClassifier.__doc__ = _cluster.documented(_estimators.SottoClassifier, "A differentially private classifier on Spark data frames.", "pyspark.sql.DataFrame", "tasks that Spark runs at once", _EXAMPLE.format(
    call="""SottoClassifier(1, 1e-6, "add-or-remove", label="ill", domain={"age": (0, 120)}, classes=[0, 1], rows=5000, dataset="clinic")"""))
SottoRegressor.__doc__ = _cluster.documented(_estimators.SottoRegressor, "A differentially private regression on Spark data frames.", "pyspark.sql.DataFrame", "tasks that Spark runs at once", _EXAMPLE.format(
    call="""SottoRegressor(1, 1e-6, "add-or-remove", label="systolic", domain={"age": (0, 120)}, target_range=(60, 220), rows=5000, dataset="clinic")"""))
