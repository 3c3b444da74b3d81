"""Intervals of histograms of all columns of Adult, by `sotto describe` and by OpenDP, at one ε and δ.

    pip install opendp pandas
    python docs/measurements/describe_peers.py SOTTO DIR

SOTTO is the command, DIR has adult.data.gz. OpenDP adds discrete Gaussian noise to all counts as one vector, whose
ℓ2 sensitivity is the root of the number of columns; its scale is the least with which OpenDP certifies (ε, δ).

    pip install smartnoise-sql        (an environment of its own: it asks for an older OpenDP)
    python docs/measurements/describe_peers.py smartnoise

SmartNoise SQL answers `SELECT column, COUNT(*) … GROUP BY column` for each column, every query with an ε of its own: the
largest for which its own odometer keeps the twelve within (ε, δ), with its Laplace or its Gaussian noise, whichever is less.
"""

import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path

import opendp.prelude as dp
import pandas


def smartnoise():
    from snsql import Privacy
    from snsql.sql._mechanisms import Gaussian, Laplace
    from snsql.sql.odometer import OdometerHeterogeneous

    columns, delta = 12, 1e-6
    for epsilon in (0.1, 1.0):
        def most(of_each):  # the largest ε of a query
            low, high = epsilon / columns, epsilon
            for _ in range(60):
                middle = (low + high) / 2
                odometer = OdometerHeterogeneous(Privacy(epsilon=middle, delta=delta))
                for _ in range(columns):
                    odometer.spend(Privacy(epsilon=middle, delta=of_each))
                low, high = (middle, high) if odometer.spent[0] <= epsilon else (low, middle)
            return low
        laplace = Laplace(most(0), sensitivity=1).accuracy(0.05)
        gaussian = Gaussian(most(delta / 2 / columns), delta=delta / 2 / columns, sensitivity=1).accuracy(0.05)
        print(f"ε = {epsilon}, δ = {delta}, {columns} columns: smartnoise {2 * laplace:.1f} wide with Laplace noise, {2 * gaussian:.1f} with Gaussian")


if sys.argv[1] == "smartnoise":
    smartnoise()
    sys.exit()

dp.enable_features("contrib")
sotto, folder = sys.argv[1], Path(sys.argv[2])
delta, runs = 1e-6, 20
schema = Path(__file__).parents[2] / "examples" / "adult" / "schema.yaml"


def scale_of(epsilon, columns):
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")

    def certified(scale):
        return dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, scale=scale)), delta=delta)

    return dp.binary_search_param(certified, d_in=math.sqrt(columns), d_out=(epsilon, delta))


for epsilon in (0.1, 1.0):
    widths, held, counts = [], 0, 0
    exact = None
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as work:
            out = Path(work) / "out"
            said = subprocess.run(
                [sotto, "describe", folder / "adult.data.gz", "--schema", schema, "--epsilon", str(epsilon), "--delta", str(delta), "--adjacency", "add-or-remove",
                 "--ledger", Path(work) / "ledger.db", "--out", out, "--json"], check=True, capture_output=True, text=True).stdout
            record = json.loads(said)
            figures = pandas.read_csv(out / "description.csv", keep_default_na=False)
        columns = len(record["figures"]["columns"])
        if exact is None:
            names = ["age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship", "race", "sex",
                     "capital-gain", "capital-loss", "hours-per-week", "native-country", "income"]
            table = pandas.read_csv(folder / "adult.data.gz", names=names, skipinitialspace=True, na_values="?")
            exact = {}
            for column in record["figures"]["columns"]:
                kept = table[column["name"]]
                for cell in column["cells"]:
                    if "from" not in cell:
                        exact[column["name"], cell["name"]] = int((kept == cell["name"]).sum())
                    else:
                        inside = kept.clip(column["cells"][0]["from"], column["cells"][-1]["to"])
                        last = cell is column["cells"][-1]
                        exact[column["name"], cell["name"]] = int(((inside >= cell["from"]) & ((inside < cell["to"]) | last)).sum())
        for line in figures[figures["statistic"].isin(["bin", "level"])].itertuples():
            truth = exact[line.column, line.name]
            counts, held = counts + 1, held + (float(line.low) <= truth <= float(line.high))
            if truth > 500:  # away from 0, where an interval is cut
                widths.append(float(line.high) - float(line.low))
    scale = scale_of(epsilon, columns)
    print(f"ε = {epsilon}, δ = {delta}, {columns} columns: sotto {sum(widths) / len(widths):.1f} wide, {held / counts:.3f} of {counts} intervals hold; "
          f"opendp {2 * 1.959964 * scale:.1f} wide")
