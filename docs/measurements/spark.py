"""Spark's MLlib beside sottodp.spark, and beside one machine: python docs/measurements/spark.py ROWS [DIR] (pyspark 3.5, Java 17, sottodp).

Makes a Parquet table of 20 columns of float32 with a label of two classes in DIR, and prints seconds by the clock in local[2]: MLlib's
logistic regression to convergence and SottoClassifier of sottodp.spark on the same rows, in turns, transform of both, in turns, and
SottoClassifier of sottodp from memory.
"""

import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
from pyspark.ml.classification import LogisticRegression
from pyspark.ml.feature import VectorAssembler
from pyspark.sql import SparkSession

import sottodp
import sottodp.spark

NAMES = [f"x{i}" for i in range(20)]


def table(path, rows):
    draw = np.random.default_rng(0)
    with pyarrow.parquet.ParquetWriter(path, pyarrow.schema([*((name, pyarrow.float32()) for name in NAMES), ("y", pyarrow.int64())])) as file:
        for start in range(0, rows, 100_000):
            x = draw.uniform(0, 1, (min(100_000, rows - start), len(NAMES))).astype(np.float32)
            y = x[:, 0] + x[:, 1] + 0.5 * draw.normal(size=len(x)) > 1
            file.write_table(pyarrow.table({**{name: x[:, i] for i, name in enumerate(NAMES)}, "y": y.astype(np.int64)}))


def timed(name, what):
    began = time.monotonic()
    made = what()
    print(f"{name}: {time.monotonic() - began:.2f} s", flush=True)
    return made


def written(frame):
    frame.select("prediction", "probability").write.format("noop").mode("overwrite").save()


def main(rows, place, made):
    warnings.simplefilter("ignore")
    path = Path(place) / f"{rows}.parquet"
    if not path.exists():
        table(path, rows)
    settings = {"spark.driver.memory": "6g", "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    builder = SparkSession.builder.master("local[2]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    frame = session.read.parquet(str(path))
    vectors = VectorAssembler(inputCols=NAMES, outputCol="features")
    said = {
        "label": "y", "domain": {name: (0, 1) for name in NAMES}, "classes": [0, 1], "rows": rows, "dataset": "spark", "lab": True,
        "random_state": 1, "hats": 0, "ledger": Path(place) / "ledger.db",
    }
    few = vectors.transform(frame.limit(1000))  # Spark and its classes have begun then
    LogisticRegression(labelCol="y").fit(few).transform(few).count()
    for i in range(2):
        model = LogisticRegression(labelCol="y", maxIter=1000)
        converged = timed("MLlib fit to convergence", lambda: model.fit(vectors.transform(frame)))
        away = sottodp.spark.SottoClassifier(1, 1e-8, "add-or-remove", **said, partitions=2, run_dir=Path(made) / str(i))
        timed("sotto fit on Spark", lambda: away.fit(frame))
    steps = len((Path(made) / "0" / "steps.jsonl").read_text().splitlines())
    print("passes:", converged.summary.totalIterations, "iterations of L-BFGS,", steps, "steps of Sotto")
    for _ in range(2):
        timed("MLlib transform", lambda: written(converged.transform(vectors.transform(frame))))
        timed("sotto transform", lambda: written(away.transform(frame)))
    session.stop()
    whole = pyarrow.parquet.read_table(path).to_pandas()
    del said["label"]
    timed("sotto fit in one process, from memory", lambda: sottodp.SottoClassifier(1, 1e-8, "add-or-remove", **said).fit(whole[NAMES], whole["y"]))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        main(int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else made, made)
