"""Measure what method auto reaches on the tables of its bars (methods.md#bars), and print each bar with its median.

    pip install numpy scikit-learn
    go build -o /tmp/sotto ./cmd/sotto
    python docs/measurements/bars.py --sotto /tmp/sotto --tables DIR [--maker tables.py] [--seeds 5] [--only five,rare]

DIR holds what tables.py writes; --maker runs it first. Adult and covtype-sample come from SOTTO_DATA, as in the tests. Each
run is `sotto fit --lab` with the seeds 0, 1, ..., δ = 1e-6 under add-or-remove and no other setting; scores are of the test
rows. The expected calibration error takes the larger probability of a row in 15 bins of equal width. covtype-sample has a
split of its own for each seed, 12,000 and 3,000 rows.
"""

import argparse
import csv
import gzip
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

# Of each table: the score, its bars at ε = 0.1 and 1, and whether more of it is better.
BARS = [
    ("friedman", "RMSE", 2.30, 1.60, False),
    ("linear", "RMSE", 5.18, 5.13, False),
    ("interaction", "accuracy", 0.60, 0.73, True),
    ("clusters3", "accuracy", 0.70, 0.77, True),
    ("clusters2", "accuracy", 0.86, 0.905, True),
    ("five", "accuracy", 0.50, 0.60, True),
    ("five", "log loss", 1.30, 1.08, False),
    ("five", "ECE", 0.05, 0.03, False),
    ("rare", "AUC", 0.82, 0.89, True),
    ("rare", "log loss", 0.101, 0.080, False),
    ("small1250", "log loss ratio", 1.01, 1.0, False),
    ("small5000", "log loss ratio", 1.01, 1.0, False),
    ("adult", "accuracy", 0.851, 0.859, True),
    ("adult", "AUC", None, 0.911, True),
    ("covtype-sample", "accuracy", 0.755, 0.790, True),
]
MODELS = {"friedman": "linear", "linear": "linear", "five": "softmax"}
# The ranges that the description of covtype-sample states; the columns after these have the level 1.
RANGES = (1859, 3858), (0, 360), (0, 66), (0, 1397), (-173, 601), (0, 7117), (0, 254), (0, 254), (0, 254), (0, 7173)


def covertype(data, folder, seed):
    """Write a split of covtype-sample, class 2 against the rest, with its schema."""
    with gzip.open(data / "covtype-sample" / "covtype-sample-15000.csv.gz", "rt") as f:
        names, *rows = csv.reader(f)
    order = np.random.default_rng(seed).permutation(len(rows))
    for name, part in ("train.csv", order[:12_000]), ("test.csv", order[12_000:]):
        with open(folder / name, "w") as f:
            f.write(",".join(names) + "\n")
            f.writelines(",".join(rows[i][:-1]) + f",{'two' if rows[i][-1] == '2' else 'other'}\n" for i in part)
    with open(folder / "schema.yaml", "w") as f:
        f.write("dataset: covtype-sample\nrows: 12000\ncolumns:\n")
        for j, name in enumerate(names[:-1]):
            kind = "numeric, min: %d, max: %d" % RANGES[j] if j < len(RANGES) else 'categorical, levels: ["1"], unknown: zero'
            f.write(f"  - {{name: {name}, type: {kind}}}\n")
        f.write(f"  - {{name: {names[-1]}, type: label, classes: [other, two]}}\n")
    return [str(folder / n) for n in ("train.csv", "test.csv", "schema.yaml")]


def files(name, tables, data, folder, seed):
    """Training rows, test rows and schema of a table."""
    if name == "adult":
        return [str(data / "adult" / f) for f in ("adult.data.gz", "adult.test.gz")] + [
            str(Path(__file__).parents[2] / "examples" / "adult" / "schema.yaml")]
    if name == "covtype-sample":
        return covertype(data, folder, seed)
    return [str(tables / (name + end)) for end in (".csv", "-test.csv", ".yaml")]


def last_column(path):
    with open(path) as f:
        return [row[-1] for row in csv.reader(f)][1:]


def calibration_error(labels, lines, bins=15):
    """The expected calibration error of predictions: a line has the label and the probability of each class."""
    right = np.array([line[0] for line in lines]) == np.array(labels)
    sure = np.array([[float(p) for p in line[1:]] for line in lines]).max(axis=1)
    at = np.minimum((sure * bins).astype(int), bins - 1)
    return sum(abs((right - sure.astype(float))[at == b].sum()) for b in range(bins)) / len(sure)


def share_loss(train, test):
    """The log loss of test labels under the share of each class in the training rows."""
    shares = {c: train.count(c) / len(train) for c in set(train)}
    return -np.mean([np.log(shares[c]) for c in test])


def scores(sotto, name, epsilon, seed, tables, data, settings=()):
    """All scores of one run."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        train, test, schema = files(name, tables, data, folder, seed)
        out = subprocess.run(
            [sotto, "fit", train, "--schema", schema, "--test", test, "--model", MODELS.get(name, "logistic"), "--epsilon", str(epsilon),
             "--delta", "1e-6", "--adjacency", "add-or-remove", "--lab", "--seed", str(seed), "--out", folder / "run", "--ledger",
             folder / "ledger.db", "--json", *settings],
            check=True, capture_output=True, text=True, env={**os.environ, "XDG_STATE_HOME": str(folder)})
        found = json.loads(out.stdout)["test"]
        result = {"accuracy": found.get("accuracy"), "AUC": found.get("auc"), "log loss": found.get("log_loss"), "RMSE": found.get("rmse")}
        if name == "five":
            out = subprocess.run([sotto, "predict", "--model", folder / "run", "--data", test], check=True, capture_output=True, text=True)
            result["ECE"] = calibration_error(last_column(test), list(csv.reader(out.stdout.splitlines()))[1:])
        if name.startswith("small"):
            result["log loss ratio"] = result["log loss"] / share_loss(last_column(train), last_column(test))
        return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sotto", required=True, type=os.path.abspath, help="the command")
    parser.add_argument("--tables", required=True, type=Path, help="folder of the tables")
    parser.add_argument("--maker", help="tables.py, which is run first to write them")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", help="names of tables, separated by commas")
    parser.add_argument("--set", action="append", default=[], help="a field of the spec, as in `sotto fit`")
    args = parser.parse_args()
    if args.maker:
        args.tables.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, args.maker, args.tables], check=True)
    data = Path(os.environ.get("SOTTO_DATA", ""))
    settings = [word for field in args.set for word in ("--set", field)]
    print("| table | score | ε | bar | median | least, most | |\n|---|---|---|---|---|---|---|")
    measured = {}
    for name, score, *bars, more in BARS:
        if args.only and name not in args.only.split(","):
            continue
        for epsilon, bar in zip((0.1, 1), bars):
            if bar is None:
                continue
            if (name, epsilon) not in measured:
                measured[name, epsilon] = [scores(args.sotto, name, epsilon, s, args.tables, data, settings) for s in range(args.seeds)]
            got = sorted(found[score] for found in measured[name, epsilon])
            median = float(np.median(got))
            met = median >= bar if more else median <= bar
            print(f"| {name} | {score} | {epsilon} | {bar} | {median:.4f} | {got[0]:.4f}, {got[-1]:.4f} | {'met' if met else 'missed'} |", flush=True)


if __name__ == "__main__":
    main()
