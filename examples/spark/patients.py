"""From a Spark data frame to a report: python patients.py MASTER TABLE RUN, as local-cluster[2,1,1024] patients.csv run."""

import os
import secrets
import sys

from pyspark.sql import SparkSession

from sottodp.spark import SottoClassifier

master, table, run = sys.argv[1:]
builder = SparkSession.builder.master(master).appName("patients")
for setting in ("spark.authenticate", "spark.network.crypto.enabled", "spark.io.encryption.enabled"):
    builder = builder.config(setting, "true")
if master.startswith("local-cluster"):  # elsewhere the cluster has its secret, and its executors have the package
    builder = builder.config("spark.authenticate.secret", secrets.token_hex(32))
    for name in ("PYTHONPATH", "SOTTO_COMMAND", "PATH"):
        builder = builder.config(f"spark.executorEnv.{name}", os.environ.get(name, ""))
spark = builder.getOrCreate()
patients = spark.read.csv(table, header=True, inferSchema=True)

model = SottoClassifier(
    epsilon=1,
    delta=1e-5,
    adjacency="add-or-remove",
    dataset="clinic",
    rows=4000,
    label="readmitted",
    classes=["no", "yes"],
    domain={
        "age": (18, 100),
        "systolic": (70, 220),
        "smoker": {"levels": ["no", "former", "yes"], "missing": "no"},
    },
    run_dir=run,
).fit(patients)

print(model.guarantee_, f"the report is {run}/report.html", sep="\n")
model.transform(patients).groupBy("prediction").count().show()
spark.stop()
