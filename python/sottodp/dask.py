"""Differentially private learning on collections of dask.distributed.

``SottoClassifier(...).fit(df)`` trains where the rows are: each Dask worker starts one ``sotto worker`` with a partition, and the
process of the client coordinates them. Ledger, run directory and report are the client's. Dask workers need this package, too:
``pip install sottodp[dask]``. docs/how-to/clusters.md says what to turn on in Dask, and why.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal
from urllib.parse import urlsplit

import pyarrow
from numpy.random import RandomState
from sklearn.utils.validation import check_is_fitted

from . import _cluster, _estimators, _labels, _types

__all__ = ["SottoClassifier", "SottoRegressor"]

_AGAIN = 4  # times that a shard may go to another Dask worker
_PATIENT = 120  # seconds that a shard waits for one


class _Dask:
    """What both estimators share."""

    features: Sequence[str] | None
    label: str | None
    partitions: int | None
    partitions_: int

    def _fit_frame(self, df: Any) -> None:
        from distributed import default_client

        client = default_client()  # type: ignore[no-untyped-call,unused-ignore]
        address, workers = check(client)
        count = _cluster.partitions(self.partitions, len(workers), "so many workers the Dask cluster has")
        names, label = _cluster.features(self, [str(name) for name in df.columns]), _cluster.label(self)
        host = "127.0.0.1" if address.startswith("inproc") else str(_own_host(client))
        _cluster.fit(self, names, label, [str(name) for name in df.columns], count, (f"{host}:0", host), lambda work: _Futures(client, df, work), lambda name: _labels.array(df._meta[name]).dtype)

    def _transform(self, df: Any) -> Any:
        import pandas

        check_is_fitted(self, "guarantee_")
        meta = df._meta.assign(prediction=pandas.Series([], dtype=_cluster.value_type(self)))
        if _cluster.has_probabilities(self):
            meta = meta.assign(probability=pandas.Series([], dtype="object"))
        return df.map_partitions(_predicted, self, meta=meta)


def _predicted(frame: Any, fitted: Any) -> Any:
    import pandas

    values, probabilities = _cluster.predictions(fitted, frame)
    frame = frame.assign(prediction=pandas.Series(values, index=frame.index, dtype=_cluster.value_type(fitted)))
    if _cluster.has_probabilities(fitted):
        frame = frame.assign(probability=pandas.Series(list(probabilities), index=frame.index, dtype="object"))
    return frame


def check(client: Any) -> tuple[str, list[str]]:
    """Refuse a cluster in which others could read what travels or is spilled. Return the address of its scheduler and those of its
    workers. In one process (``processes=False``) nothing travels."""
    about = client.scheduler_info(n_workers=-1)
    address, workers = str(about["address"]), [str(one) for one in about["workers"]]
    if not workers:
        raise ValueError("the Dask cluster has no workers; start one or more")
    wrong = []
    if not address.startswith("inproc"):
        if not all(one.startswith("tls://") for one in [address, *workers]):
            wrong.append("addresses that begin with tls://")
        if not getattr(client.security, "require_encryption", False):
            wrong.append("Security(..., require_encryption=True)")
    if any(client.run(_spills).values()):
        wrong.append("distributed.worker.memory.target and .spill: false on its workers")
    if wrong:
        raise ValueError(
            f"the Dask cluster lacks {'; '.join(wrong)}. Use a cluster with all of them: the key of the workers and rows travel "
            "between its processes, and a worker that is short of memory would write rows to disk"
        )
    return address, workers


def _spills(dask_worker: Any) -> bool:
    return not isinstance(dask_worker.data, dict)


def _own_host(client: Any) -> Any:
    """The address by which the workers of a cluster reach this process: that of its connection to the scheduler."""
    return urlsplit(client.scheduler_comm.comm.local_address).hostname


class _Futures:
    """The workers of a fit, each as a task that is bound to one Dask worker."""

    def __init__(self, client: Any, df: Any, work: _cluster.Work) -> None:
        self._client, self._work, self._name = client, work, uuid.uuid4().hex
        columns = [*work.names, work.label, *([work.unit] if work.unit else [])]
        chosen = df[columns]
        if work.unit:  # in memory: the other shuffles write rows to disk
            chosen = chosen.shuffle(on=work.unit, npartitions=work.count, shuffle_method="tasks")
        elif chosen.npartitions != work.count:
            chosen = chosen.repartition(npartitions=work.count)
        if chosen.npartitions != work.count:
            raise ValueError(f"partitions: Dask makes {chosen.npartitions} of this collection, not {work.count}; use one whose partitions it can divide")
        self._parts = client.compute(chosen.to_delayed())
        self._again = 0
        self._alone = 0.0  # since when a shard has no Dask worker
        self._at: list[str] = []
        self._tasks: list[Any] = []
        free = self._free()
        for shard in range(work.count):
            self._at.append(free[shard])
            self._tasks.append(self._start(shard))

    def _free(self) -> list[str]:
        return [str(one) for one in self._client.scheduler_info(n_workers=-1)["workers"] if str(one) not in self._at]

    def _start(self, shard: int) -> Any:
        key = f"sotto-{self._name}-{shard}-{self._again}"
        return self._client.submit(
            _task, self._work, shard, self._parts[shard], workers=[self._at[shard]], allow_other_workers=False, pure=False, retries=0, key=key,
        )

    def failed(self) -> BaseException | _cluster.Ended | None:
        alive = {str(one) for one in self._client.scheduler_info(n_workers=-1)["workers"]}
        for shard, task in enumerate(self._tasks):
            if task.status == "finished":
                ended: _cluster.Ended = task.result()
                if ended.code != 0:
                    return ended
            elif task.status != "pending" and self._at[shard] in alive:
                return _cluster.Ended(shard, 1, "its task was ended by Dask")
            elif self._at[shard] not in alive and not self._free():
                self._alone = self._alone or time.monotonic()
                if time.monotonic() > self._alone + _PATIENT:
                    return _cluster.Ended(shard, 1, f"its Dask worker was lost, and no other was free in {_PATIENT} seconds; each shard needs one")
            elif self._at[shard] not in alive:
                self._alone = 0
                if self._again == _AGAIN:
                    return _cluster.Ended(shard, 1, f"Dask workers were lost {_AGAIN + 1} times")
                self._again += 1
                task.cancel(force=True)
                self._at[shard] = self._free()[0]
                self._tasks[shard] = self._start(shard)
        return None

    def stop(self) -> None:
        from distributed import wait

        try:
            wait(self._tasks, timeout=5)  # type: ignore[no-untyped-call,unused-ignore] # they end by themselves when the run is done
        except TimeoutError:
            self._client.cancel(self._tasks, force=True)  # those that run end when they miss the coordinator
        except Exception:  # Dask has ended a task
            pass  # failed says so
        for part in self._parts:  # only released: another fit on the same frame has the same partitions
            part.release()


def _task(work: _cluster.Work, shard: int, part: Any) -> _cluster.Ended:
    """Be a worker. It never raises: Dask would write the rows, which are an argument, to its log."""

    def batches() -> Iterator[pyarrow.RecordBatch]:
        yield from pyarrow.Table.from_pandas(part, preserve_index=False).to_batches()

    try:
        return _cluster.work(work, shard, batches())
    except _cluster.Lost as error:
        return _cluster.Ended(shard, 1, str(error))
    except Exception as error:
        return _cluster.Ended(shard, 1, f"its task ended by {type(error).__name__}")


class SottoClassifier(_Dask, _estimators.SottoClassifier):
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
        """Train on the rows of a Dask data frame where they are, and charge the client's ledger.

        Parameters
        ----------
        df : dask.dataframe.DataFrame
            Rows, with the columns of ``features`` and ``label``.

        Returns
        -------
        SottoClassifier
            The estimator itself.

        Raises
        ------
        ValueError
            If a setting of the cluster, a public fact or a privacy parameter is missing or wrong: it names all of them, and
            nothing was charged.
        BudgetError
            If the dataset's lifetime budget does not cover the fit; nothing was charged.
        MachineError
            If Dask workers are lost and do not come back with the same rows. The budget stays reserved.

        Examples
        --------
        >>> SottoClassifier(1, 1e-6, "add-or-remove", label="ill", domain={"age": (0, 120)}, classes=[0, 1], rows=5000,
        ...                 dataset="clinic").fit(df)  # doctest: +SKIP
        """
        self._fit_frame(df)
        return self

    def transform(self, df: Any) -> Any:
        """Add the columns ``prediction`` and ``probability`` to a Dask data frame.

        Parameters
        ----------
        df : dask.dataframe.DataFrame
            Rows, with the columns of ``features``.

        Returns
        -------
        dask.dataframe.DataFrame
            The frame with the class of each row, and with the probability of each class in the order of ``classes_`` unless the
            model is an SVM. They are no private release: they depend on the rows of ``df``.

        Examples
        --------
        >>> fitted.transform(df)["prediction"].compute()  # doctest: +SKIP
        """
        return self._transform(df)


class SottoRegressor(_Dask, _estimators.SottoRegressor):
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
        """Train on the rows of a Dask data frame where they are, and charge the client's ledger.

        Parameters
        ----------
        df : dask.dataframe.DataFrame
            Rows, with the columns of ``features`` and ``label``.

        Returns
        -------
        SottoRegressor
            The estimator itself.

        Raises
        ------
        ValueError
            If a setting of the cluster, a public fact or a privacy parameter is missing or wrong: it names all of them, and
            nothing was charged.
        BudgetError
            If the dataset's lifetime budget does not cover the fit; nothing was charged.
        MachineError
            If Dask workers are lost and do not come back with the same rows. The budget stays reserved.

        Examples
        --------
        >>> SottoRegressor(1, 1e-6, "add-or-remove", label="systolic", domain={"age": (0, 120)}, target_range=(60, 220), rows=5000,
        ...                dataset="clinic").fit(df)  # doctest: +SKIP
        """
        self._fit_frame(df)
        return self

    def transform(self, df: Any) -> Any:
        """Add the column ``prediction`` to a Dask data frame.

        Parameters
        ----------
        df : dask.dataframe.DataFrame
            Rows, with the columns of ``features``.

        Returns
        -------
        dask.dataframe.DataFrame
            The frame with the predicted number of each row. It is no private release: it depends on the rows of ``df``.

        Examples
        --------
        >>> fitted.transform(df)["prediction"].compute()  # doctest: +SKIP
        """
        return self._transform(df)


_EXAMPLE = """>>> import dask.dataframe  # doctest: +SKIP
    >>> df = dask.dataframe.read_parquet("patients")  # doctest: +SKIP
    >>> model = {call}.fit(df)  # doctest: +SKIP
    >>> model.transform(df)["prediction"].compute()  # doctest: +SKIP"""

SottoClassifier.__doc__ = _cluster.documented(_estimators.SottoClassifier, "A differentially private classifier on Dask data frames.", "dask.dataframe.DataFrame", "the cluster has workers", _EXAMPLE.format(
    call="""SottoClassifier(1, 1e-6, "add-or-remove", label="ill", domain={"age": (0, 120)}, classes=[0, 1], rows=5000, dataset="clinic")"""))
SottoRegressor.__doc__ = _cluster.documented(_estimators.SottoRegressor, "A differentially private regression on Dask data frames.", "dask.dataframe.DataFrame", "the cluster has workers", _EXAMPLE.format(
    call="""SottoRegressor(1, 1e-6, "add-or-remove", label="systolic", domain={"age": (0, 120)}, target_range=(60, 220), rows=5000, dataset="clinic")"""))
