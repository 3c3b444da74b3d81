"""Fits on a Dask cluster of two processes that speak TLS. About two minutes on 2 busy cores."""

import contextlib
import os
import threading
import time

import dask
import dask.dataframe
import numpy as np
import pandas as pd
import pytest
from conftest import FEATURES, LONG, SAID
from distributed import Client, LocalCluster, Security
from sklearn.linear_model import LogisticRegression

import sottodp
import sottodp.dask

SHORT = {"steps": 50, "batch": 100}
NO_SPILL = {"distributed.worker.memory.target": False, "distributed.worker.memory.spill": False}


@contextlib.contextmanager
def two_workers():
    with dask.config.set(NO_SPILL):
        with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, security=Security.temporary()) as cluster:
            with Client(cluster) as client:
                yield client


@pytest.fixture(scope="module")
def client():
    with two_workers() as client:
        yield client


@pytest.fixture
def mortal():
    """Workers of one test, which kills them: what it leaves is no other test's."""
    with two_workers() as client:
        yield client


def both(client):
    """The processes of both workers; none while one is away. Dask gives up a worker that dies while it starts, so they had a moment."""
    found = list(client.run(os.getpid).values())
    if len(found) < 2:
        return []
    time.sleep(2)
    return found


def here(rows, **more):
    return sottodp.SottoClassifier(**SAID, **more).fit(rows[FEATURES], rows["ill"])


def test_one_table(client, patients, tmp_path):
    df = dask.dataframe.from_pandas(patients, npartitions=5)
    model = sottodp.dask.SottoClassifier(label="ill", **SAID, method_options=SHORT, run_dir=tmp_path / "run").fit(df)
    assert model.partitions_ == 2 and (tmp_path / "run" / "report.html").exists()
    np.testing.assert_array_equal(model.coef_, here(patients, method_options=SHORT).coef_)
    lines = model.transform(df).compute()
    np.testing.assert_array_equal(lines["prediction"], model.predict(patients[FEATURES]))
    np.testing.assert_array_equal(np.stack(lines["probability"]), model.predict_proba(patients[FEATURES]))


def test_two_workers_die(mortal, patients, deaths):
    df = dask.dataframe.from_pandas(patients, npartitions=5)
    run, killed = deaths(lambda: both(mortal))
    model = sottodp.dask.SottoClassifier(label="ill", **SAID, method_options=LONG, run_dir=run).fit(df)
    assert len(killed) == 2
    np.testing.assert_array_equal(model.coef_, here(patients, method_options=LONG).coef_)


def test_rows_that_change(mortal, patients, deaths):
    def other(rows):
        return rows.assign(age=rows["age"] + np.random.default_rng().normal(size=len(rows)))

    df = dask.dataframe.from_pandas(patients, npartitions=5).map_partitions(other, meta=patients.iloc[:0])
    first = both(mortal)  # one may die without loss, if the other has what both computed
    run, killed = deaths(lambda: first)
    with pytest.raises(sottodp.errors.MachineError, match="came back with other rows"):
        sottodp.dask.SottoClassifier(label="ill", **SAID, method_options={"steps": 1_000_000, "batch": 100}, run_dir=run).fit(df)
    assert killed


def test_rows_that_do_not_fit(client, patients):
    df = dask.dataframe.from_pandas(patients.assign(sex=["secret"] + patients["sex"].tolist()[1:]), npartitions=2)
    with pytest.raises(sottodp.errors.DataError, match=r"^partition 1 of 2: .*column sex") as found:
        sottodp.dask.SottoClassifier(label="ill", **SAID, method_options=SHORT).fit(df)
    assert "secret" not in str(found.value)


def test_clusters_that_are_refused(patients):
    df = dask.dataframe.from_pandas(patients, npartitions=2)
    model = sottodp.dask.SottoClassifier(label="ill", **SAID, method_options=SHORT)
    with dask.config.set(NO_SPILL), LocalCluster(n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None) as cluster, Client(cluster):
        with pytest.raises(ValueError, match="lacks addresses that begin with tls://; "):
            model.fit(df)
    spill = {"distributed.worker.memory.target": 0.6, "distributed.worker.memory.spill": 0.7}
    with dask.config.set(spill), LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster, Client(cluster):
        with pytest.raises(ValueError, match="lacks distributed.worker.memory.target and .spill: false"):
            model.fit(df)
    with dask.config.set(NO_SPILL), LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as cluster, Client(cluster):
        np.testing.assert_array_equal(model.fit(df).coef_, here(patients, method_options=SHORT).coef_)


def test_two_fits_at_once(patients):
    """The fit that ends first leaves the other one its rows, also those of the same frame."""
    df, found = dask.dataframe.from_pandas(patients, npartitions=5), {}
    with dask.config.set(NO_SPILL), LocalCluster(n_workers=2, threads_per_worker=3, processes=False, dashboard_address=None) as cluster, Client(cluster):
        def fit(steps):
            try:
                found[steps] = sottodp.dask.SottoClassifier(label="ill", **{**SAID, "dataset": f"of {steps}"}, method_options={"steps": steps, "batch": 100}).fit(df)
            except BaseException as error:
                found[steps] = error

        threads = [threading.Thread(target=fit, args=(steps,)) for steps in (20, 1000, 3000)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for steps, model in found.items():
        assert isinstance(model, sottodp.dask.SottoClassifier), model
        np.testing.assert_array_equal(model.coef_, here(patients.copy(), method_options={"steps": steps, "batch": 100}).coef_)


def test_labels_have_the_type_of_the_column(client, patients):
    for kind in ("int8", "bool", "float64", "string", "category"):
        rows = patients.assign(ill=patients["ill"].map({0: "no", 1: "yes"}).astype(kind) if kind in ("string", "category") else patients["ill"].astype(kind))
        said = {**SAID, "classes": ["yes", "no"] if kind in ("string", "category") else [1, 0], "dataset": kind}
        df = dask.dataframe.from_pandas(rows, npartitions=5)
        model = sottodp.dask.SottoClassifier(label="ill", **said, method_options=SHORT).fit(df)
        peer = LogisticRegression().fit(rows[["age"]], rows["ill"])
        assert model.classes_.tolist() == peer.classes_.tolist() and model.classes_.dtype == peer.classes_.dtype
        added = model.transform(df)["prediction"]
        assert added.compute().tolist() == model.predict(rows[FEATURES]).tolist() and added.dtype == added.compute().dtype == model.classes_.dtype


def test_units_are_whole(client, patients, tmp_path):
    (tmp_path / "schema.yaml").write_text(
        "dataset: visits\nunit: {name: patient, rows: 8}\nunits: 500\ncolumns:\n  - {name: patient, type: unit}\n  - {name: age, type: numeric, min: 0, max: 120}\n"
        "  - {name: ill, type: label, classes: ['0', '1']}\n"
    )
    visits = patients.assign(patient=[f"p{i % 500}" for i in range(len(patients))], ill=patients["ill"].astype(str))[["patient", "age", "ill"]]
    said = dict(schema=tmp_path / "schema.yaml", lab=True, random_state=1, method="sgd", method_options={"steps": 50, "batch": 30})
    model = sottodp.dask.SottoClassifier(**said).fit(dask.dataframe.from_pandas(visits, npartitions=5))
    assert model.partitions_ == 2 and model.guarantee_.unit == "patient"
