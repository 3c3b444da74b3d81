# Measures what a label's bounds and scale do to R²: python skewed_label.py SOTTO BANK_FULL_CSV REPEATS (docs/measurements/methods.md).
# The first table is made up: a log-normal label. The second is Bank Marketing of the UCI repository: the duration of a call.
import os, statistics, subprocess, sys, tempfile
import numpy as np, pandas as pd

sotto, bank, repeats = os.path.abspath(sys.argv[1]), pd.read_csv(sys.argv[2], sep=None, engine="python"), int(sys.argv[3])
os.chdir(tempfile.mkdtemp())
os.environ["XDG_STATE_HOME"] = os.getcwd()
rnd = np.random.default_rng(45)

def incomes(n):
    age, edu, city = rnd.integers(18, 81, n), rnd.integers(0, 11, n), rnd.random(n) < .4
    hours = np.clip(rnd.normal(38, 10, n).round(), 1, 80)
    log = .02 * (age - 45) + .1 * (edu - 5) + .02 * (hours - 38) + .2 * city + .6 * rnd.normal(size=n)
    return pd.DataFrame({"age": age, "edu": edu, "hours": hours, "city": np.where(city, "yes", "no"), "income": np.round(24000 * np.exp(log))})

bank = bank.sample(frac=1, random_state=1)
numeric = {"age": (18, 100), "balance": (-10000, 100000), "day": (1, 31), "campaign": (1, 60), "pdays": (-1, 1000), "previous": (0, 300)}
schemas = {"incomes": ["{name: age, type: numeric, min: 18, max: 80}", "{name: edu, type: numeric, min: 0, max: 10}", "{name: hours, type: numeric, min: 1, max: 80}", "{name: city, type: boolean}"],
           "bank": []}
for c in bank.columns.drop("duration"):
    if c in numeric:
        transform = {"balance": ", transform: signed_log1p", "campaign": ", transform: log1p", "previous": ", transform: log1p"}.get(c, "")
        schemas["bank"].append("{name: %s, type: numeric, min: %g, max: %g%s}" % (c, *numeric[c], transform))
    elif set(bank[c]) <= {"yes", "no"}:
        schemas["bank"].append('{name: "%s", type: boolean}' % c)
    else:
        schemas["bank"].append("{name: %s, type: categorical, levels: [%s]}" % (c, ", ".join(sorted(set(bank[c])))))
tables = {"incomes": (incomes(4000), incomes(20000), "income"), "bank": (bank[:36000], bank[36000:], "duration")}
cases = [("incomes", "max: 150000"), ("incomes", "max: 1e6"), ("incomes", "max: 1e6, scale: 35000"), ("incomes", "max: 1e7"), ("incomes", "max: 1e7, scale: 35000"),
         ("bank", "max: 7200"), ("bank", "max: 7200, scale: 300")]
runs = 0
for name, bounds in cases:
    train, test, label = tables[name]
    train.to_csv("train.csv", index=False), test.to_csv("test.csv", index=False)
    with open("schema.yaml", "w") as f:
        f.write("dataset: %s\nrows: %d\ncolumns:\n" % (name, len(train)) + "".join("  - %s\n" % line for line in schemas[name] + ["{name: %s, type: label, min: 0, %s}" % (label, bounds)]))
    for epsilon in ["1", "0.1"]:
        found = []
        for _ in range(repeats):
            runs += 1
            out = "run%d" % runs
            subprocess.run([sotto, "fit", "train.csv", "--schema", "schema.yaml", "--model", "linear", "--epsilon", epsilon, "--delta", "1e-6",
                            "--adjacency", "add-or-remove", "--out", out, "--ledger", out + ".db", "--quiet"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            subprocess.run([sotto, "predict", "--model", out, "--data", "test.csv", "--out", out + ".csv"], check=True, stderr=subprocess.DEVNULL)
            y, p = test[label].to_numpy(float), pd.read_csv(out + ".csv").iloc[:, 0].to_numpy(float)
            found.append(1 - ((y - p) ** 2).sum() / ((y - y.mean()) ** 2).sum())
        print(name, bounds, epsilon, "median %.3f, from %.3f to %.3f" % (statistics.median(found), min(found), max(found)), flush=True)
