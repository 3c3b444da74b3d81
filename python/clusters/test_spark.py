"""Fits on Spark's local-cluster mode: a driver and two executors, each a process. About ten minutes on 2 busy cores."""

import json
import os
import signal
import subprocess
import time

import numpy as np
import pandas as pd
import pytest
from conftest import FEATURES, LONG, SAID
from pyspark.sql import SparkSession, functions

import sottodp
from sottodp import _cluster, spark


@pytest.fixture(scope="module")
def away(tmp_path_factory):
    """Where the ledger would be if executors had one."""
    return tmp_path_factory.mktemp("away")


@pytest.fixture(scope="module")
def session(away):
    builder = SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.authenticate.secret", "of a test").config("spark.ui.enabled", "false")
    for name, value in spark._SETTINGS.items():
        builder = builder.config(name, value)
    for name in ("PYTHONPATH", "SOTTO_COMMAND", "PATH"):
        builder = builder.config(f"spark.executorEnv.{name}", os.environ.get(name, ""))
    for name in ("XDG_DATA_HOME", "XDG_STATE_HOME"):
        builder = builder.config(f"spark.executorEnv.{name}", str(away))
    session = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


def executors():
    """The executors of this session, by their process numbers."""
    lines = subprocess.run(["ps", "-ewwo", "pid,args"], capture_output=True, text=True, check=True).stdout.splitlines()
    return [int(line.split()[0]) for line in lines if "CoarseGrainedExecutorBackend" in line and "/java" in line.split()[1]]


def here(df, **more):
    """A fit on the rows of all partitions in one table."""
    work = _cluster.Work("", "", "", 2, FEATURES, None, "ill", "ill", None, None, b"")
    rows = spark.divided(df, work).toPandas()
    return sottodp.SottoClassifier(**SAID, **more).fit(rows[FEATURES], rows["ill"])


def test_one_table(session, patients, tmp_path):
    df = session.createDataFrame(patients)
    model = spark.SottoClassifier(label="ill", **SAID, method_options={"steps": 50, "batch": 100}, run_dir=tmp_path / "run").fit(df)
    assert model.partitions_ == 2 and (tmp_path / "run" / "report.html").exists()
    np.testing.assert_array_equal(model.coef_, here(df, method_options={"steps": 50, "batch": 100}).coef_)
    lines = model.transform(df).toPandas()
    assert list(lines.columns) == [*patients.columns, "prediction", "probability"]
    pd.testing.assert_frame_equal(lines[list(patients.columns)], patients, check_dtype=False)
    np.testing.assert_array_equal(lines["prediction"], model.predict(patients[FEATURES]))
    np.testing.assert_array_equal(np.stack(lines["probability"]), model.predict_proba(patients[FEATURES]))


def test_one_file(session, patients, tmp_path):
    (tmp_path / "schema.yaml").write_text(
        "dataset: clinic\nrows: 3000\nformat: {kind: csv, header: true}\ncolumns:\n  - {name: age, type: numeric, min: 0, max: 120}\n"
        "  - {name: pressure, type: numeric, min: 60, max: 220}\n  - {name: sex, type: categorical, levels: [f, m]}\n"
        "  - {name: ill, type: label, classes: ['0', '1']}\n"
    )
    method = {"steps": 50, "batch": 100}
    df = session.createDataFrame(patients.assign(ill=patients["ill"].astype(str)))
    spark.SottoClassifier(
        1, 1e-6, "add-or-remove", schema=tmp_path / "schema.yaml", lab=True, random_state=1, method="sgd", method_options=method, run_dir=tmp_path / "away",
    ).fit(df)
    spark.divided(df, _cluster.Work("", "", "", 2, FEATURES, None, "ill", "ill", None, None, b"")).toPandas().to_csv(tmp_path / "rows.csv", index=False)
    spec = {
        "data": "rows.csv", "schema": "schema.yaml", "model": {"name": "logistic"}, "method": {"name": "sgd", **method}, "lab": True, "seed": 1,
        "privacy": {"epsilon": 1, "delta": 1e-6, "adjacency": "add-or-remove"},
    }
    (tmp_path / "sotto.yaml").write_text(json.dumps(spec))
    subprocess.run([sottodp.command(), "fit", "sotto.yaml", "--out", "here"], cwd=tmp_path, check=True)
    assert (tmp_path / "away" / "releases.bin").read_bytes() == (tmp_path / "here" / "releases.bin").read_bytes()
    assert json.loads((tmp_path / "away" / "model.json").read_bytes())["w"] == json.loads((tmp_path / "here" / "model.json").read_bytes())["w"]


def test_the_driver_has_the_ledger(session, patients, tmp_path, away):
    said = {**SAID, "lab": False, "random_state": None, "epsilon": 1, "delta": 1e-6, "adjacency": "add-or-remove", "ledger": tmp_path / "ledger"}
    df = session.createDataFrame(patients)
    model = spark.SottoClassifier(label="ill", **said, method_options={"steps": 50, "batch": 100}).fit(df.repartition(7))
    assert model.partitions_ == 2 and (tmp_path / "ledger").exists() and not any(away.iterdir())
    # The same rows in another order and division, under another name.
    other = spark.SottoClassifier(label="ill", **{**said, "dataset": "other"}, method_options={"steps": 50, "batch": 100}, partitions=1)
    with pytest.raises(sottodp.errors.ContentProtectedError, match='knows them as "clinic"'):
        other.fit(df.orderBy("pressure"))
    few = spark.SottoClassifier(label="ill", **{**SAID, "rows": 30}, method_options={"steps": 5, "batch": 10}).fit(df.limit(30))
    assert few.partitions_ == 2  # whatever the number of rows


def test_sessions_that_are_refused(session, patients, monkeypatch):
    df, real = session.createDataFrame(patients), session.sparkContext.getConf
    for name, value in spark._SETTINGS.items():
        said = real().set(name, "false" if value == "true" else "true")
        monkeypatch.setattr(session.sparkContext, "getConf", lambda said=said: said)
        with pytest.raises(ValueError, match=f"lacks {name}={value}; "):
            spark.SottoClassifier(label="ill", **SAID).fit(df)


def test_an_executor_is_on_its_way(session, patients):
    df, method = session.createDataFrame(patients), {"steps": 50, "batch": 100}
    os.kill(executors()[0], signal.SIGKILL)
    while spark._slots_now(session.sparkContext) == 2:  # until Spark knows
        time.sleep(0.05)
    model = spark.SottoClassifier(label="ill", **SAID, method_options=method).fit(df)
    assert model.partitions_ == 2
    np.testing.assert_array_equal(model.coef_, here(df, method_options=method).coef_)


def test_two_executors_die(session, patients, deaths):
    df = session.createDataFrame(patients)
    run, killed = deaths(executors)
    model = spark.SottoClassifier(label="ill", **SAID, method_options=LONG, run_dir=run).fit(df)
    assert len(killed) == 2
    np.testing.assert_array_equal(model.coef_, here(df, method_options=LONG).coef_)


def test_rows_that_change(session, patients, deaths):
    @functions.pandas_udf("double")
    def other(column: pd.Series) -> pd.Series:
        return column + np.random.default_rng().normal(size=len(column))

    df = session.createDataFrame(patients).withColumn("age", other("age"))
    first = list(executors())  # one may die without loss, if the other has what both computed
    run, killed = deaths(lambda: first)
    with pytest.raises(sottodp.errors.MachineError, match="came back with other rows .* write the frame to a table first"):
        spark.SottoClassifier(label="ill", **SAID, method_options={"steps": 1_000_000, "batch": 100}, run_dir=run).fit(df)
    assert killed


def test_rows_that_do_not_fit(session, patients):
    df = session.createDataFrame(patients).withColumn("sex", functions.when(functions.col("age") > 119, "secret").otherwise(functions.col("sex")))
    with pytest.raises(sottodp.errors.DataError, match=r"^partition \d of 2: .*column sex") as found:
        spark.SottoClassifier(label="ill", **SAID, method_options={"steps": 50, "batch": 100}).fit(df)
    assert "secret" not in str(found.value)


def test_labels_have_the_type_of_the_column(session, patients):
    for kind, classes in (("tinyint", [1, 0]), ("boolean", [True, False]), ("double", [1, 0]), ("string", ["1", "0"])):
        df = session.createDataFrame(patients).withColumn("ill", functions.col("ill").cast(kind))
        said = {**SAID, "classes": classes, "dataset": kind}
        model = spark.SottoClassifier(label="ill", **said, method_options={"steps": 50, "batch": 100}).fit(df)
        assert model.classes_.tolist() == sorted(classes) and model.classes_.dtype == {"tinyint": "int8", "boolean": "bool", "double": "float64", "string": "O"}[kind]
        added = model.transform(df)
        assert added.schema["prediction"].dataType.simpleString() == kind
        assert added.toPandas()["prediction"].tolist() == model.predict(patients[FEATURES]).tolist()


def test_units_are_whole(session, patients, tmp_path):
    (tmp_path / "schema.yaml").write_text(
        "dataset: visits\nunit: {name: patient, rows: 8}\nunits: 500\ncolumns:\n  - {name: patient, type: unit}\n  - {name: age, type: numeric, min: 0, max: 120}\n"
        "  - {name: ill, type: label, classes: ['0', '1']}\n"
    )
    visits = patients.assign(patient=[f"p{i % 500}" for i in range(len(patients))], ill=patients["ill"].astype(str))[["patient", "age", "ill"]]
    said = dict(schema=tmp_path / "schema.yaml", lab=True, random_state=1, method="sgd", method_options={"steps": 50, "batch": 30})
    model = spark.SottoClassifier(**said).fit(session.createDataFrame(visits))
    assert model.partitions_ == 2 and model.guarantee_.unit == "patient"
