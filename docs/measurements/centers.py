"""Rows of more than two classes less their noisy mean, by a simulation, for methods.md#centers-of-many-classes.

    pip install numpy scikit-learn
    go build -o /tmp/sotto ./cmd/sotto
    python docs/measurements/centers.py --sotto /tmp/sotto --epsilon 0.1 [--only quantiles] [--seeds 3]
    python docs/measurements/centers.py --sotto /tmp/sotto --epsilon 0.1 --files train.csv test.csv schema.yaml

`sotto fit --lab` with `pairs: none` gives encoding, clip norm, steps, rate, momentum and noise of a softmax run by `auto`.
The same steps are then taken in floating point, on rows as they are, and on rows less their mean: that is released with a
share of the budget, and clip norm and rate follow from its length as method/center.go has it for two classes. Printed are
accuracy of the tail average, and its log loss with the best factor on margins; smoothing is left out.
"""

import argparse
import csv
import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from sklearn import datasets

SHARES = 0.1, 0.05, 0.02
POINTS, FALL = 8, 0.7  # schema/waves.go


def tables():
    """Name, columns, labels and bounds of each table."""
    rng = np.random.default_rng(99)
    quantiles = datasets.make_gaussian_quantiles
    x, y = quantiles(n_samples=30_000, n_features=10, n_classes=3, random_state=1)
    yield "quantiles", x, y, 5
    x, y = quantiles(n_samples=25_000, n_features=6, n_classes=4, random_state=5)
    yield "spheres", x, y, 5
    x = rng.normal(size=(25_000, 10))
    yield "nothing", x, rng.integers(0, 3, 25_000), 4
    x = rng.uniform(-1, 1, (25_000, 10))
    z = np.stack([3 * x[:, 0] ** 2 - 1, 2 * x[:, 1] ** 2 + 0.4 * x[:, 2], 0 * x[:, 0]], 1) * 2
    yield "even", x, (z + rng.gumbel(size=z.shape)).argmax(1), 1
    x = rng.normal(size=(25_000, 8))
    z = np.stack([x[:, 0] + 0.5 * np.sin(2 * x[:, 1]), x[:, 2] - 0.5 * x[:, 3] ** 2, 0.7 * x[:, 4]], 1) * 1.2
    yield "mixed", x, (z + rng.gumbel(size=z.shape)).argmax(1), 4
    make = datasets.make_classification
    kinds = {"n_samples": 25_000, "n_clusters_per_class": 2}
    x, y = make(n_features=12, n_informative=6, n_classes=3, class_sep=0.8, flip_y=0.1, random_state=31, **kinds)
    yield "clusters of three", x, y, 7
    x, y = make(n_features=16, n_informative=8, n_classes=4, class_sep=1.0, random_state=32, **kinds)
    yield "clusters of four", x, y, 7


def write(folder, x, y, bound, seed):
    """Write a split of a table, four fifths for training, with its schema."""
    order, rows = np.random.default_rng(2000 + seed).permutation(len(x)), len(x) * 4 // 5
    names = [f"x{j}" for j in range(x.shape[1])]
    for name, part in ("train.csv", order[:rows]), ("test.csv", order[rows:]):
        with open(folder / name, "w") as f:
            f.write(",".join([*names, "y"]) + "\n")
            f.writelines(",".join(f"{v:.4g}" for v in np.clip(x[i], -bound, bound)) + f",{y[i]}\n" for i in part)
    with open(folder / "schema.yaml", "w") as f:
        f.write(f"dataset: made\nrows: {rows}\ncolumns:\n")
        f.writelines(f"  - {{name: {c}, type: numeric, min: {-bound}, max: {bound}}}\n" for c in names)
        f.write(f"  - {{name: y, type: label, classes: [{', '.join(map(str, range(max(y) + 1)))}]}}\n")
    return [str(folder / n) for n in ("train.csv", "test.csv", "schema.yaml")]


def bumps(x, count):
    """Bumps of a number from -1 to 1 at equal distances, linear between them."""
    knots = np.linspace(-1, 1, count)
    return [np.interp(x, knots, one) for one in np.eye(count)]


def waves(x, count):
    """Waves of a number from -1 to 1, drawn through the centers of eight bumps."""
    shapes, i = [], np.arange(POINTS)
    for turns in range(2 + count):
        v = np.cos(np.pi * turns * (i + 0.5) / POINTS) if turns > 1 else [np.ones(POINTS), i - (POINTS - 1) / 2][turns]
        for b in shapes:
            v = v - (v @ b) * b
        shapes.append(v / np.sqrt(v @ v))
    knots = np.linspace(-1, 1, POINTS)
    return [np.interp(x, knots, FALL ** (t + 1) * np.sqrt(POINTS / 2) * s) for t, s in enumerate(shapes[2:])]


def encode(path, columns):
    """Rows of norm 1, the intercept last, and their labels; columns are those of the run's schema."""
    with open(path) as f:
        names, *rows = csv.reader(f)
    features = []
    for name, c in zip(names[:-1], columns, strict=False):
        x = np.array([float(r[names.index(name)]) for r in rows])
        if c["type"] == "numeric":
            low, high = c["bounds"]["min"], c["bounds"]["max"]
            x = np.clip((2 * x - low - high) / (high - low), -1, 1)
            features += [x, *bumps(x, c.get("hats", 0)), *waves(x, c.get("waves", 0))]
        else:  # a level of 0 or 1
            features.append(x)
    x = np.stack([*features, np.ones(len(rows))], 1)
    return (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32), [r[-1] for r in rows]


def softmax(z):
    e = np.exp(z - z.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def steps(x, y, test, labels, run, share, rng):
    """Accuracy and log loss of the run's steps, on rows less their mean if share is above 0."""
    rows, d = x.shape
    clip, rate, beta, count = (run[k] for k in ("clip", "rate", "momentum", "steps"))
    whole = run["noise_multiplier"] / rows / np.sqrt(count)  # of one mean gradient of clip norm 1
    if share:
        variance = whole * whole / share
        mean = x.mean(0) + rng.normal(size=d) * np.sqrt(variance)
        mean[-1] = 0  # every row has the intercept
        mean *= max(0, 1 - (d - 2) * variance / (mean @ mean))
        part = max(0.25, 1 - mean @ mean)
        x, test = (x - mean).astype(np.float32), test - mean
        clip, rate, whole = clip * np.sqrt(part), rate / part, whole / np.sqrt(1 - share)
    length, one = np.linalg.norm(x, axis=1), np.eye(y.max() + 1, dtype=np.float32)[y]
    w = np.zeros((y.max() + 1, d))
    before, tail = w.copy(), w.copy()
    for t in range(count):
        g = softmax(x @ w.T.astype(np.float32)) - one
        g *= np.minimum(1, clip / np.maximum(1e-9, np.linalg.norm(g, axis=1) * length))[:, None]
        noisy = g.T @ x / rows + rng.normal(size=w.shape) * whole * np.sqrt(count) * clip
        w, before = w - rate * noisy + beta * (w - before), w
        if t >= count // 2:
            tail += w
    z = test @ (tail / (count - count // 2)).T
    losses = [-np.log(softmax(a * z)[np.arange(len(z)), labels] + 1e-12).mean() for a in np.geomspace(0.2, 2, 15)]
    return (z.argmax(1) == labels).mean(), min(losses)


def measure(sotto, epsilon, files, seed, folder):
    """Both scores of rows as they are, and less their mean at each share."""
    train, test, schema = files
    command = f"{sotto} fit {train} --schema {schema} --model softmax --epsilon {epsilon} --delta 1e-6"
    command += f" --adjacency add-or-remove --set pairs=none --lab --seed {seed}"
    command += f" --out {folder}/run --ledger {folder}/ledger.db"
    subprocess.run(command.split(), check=True, capture_output=True)
    record = json.loads((folder / "run" / "run.json").read_text())
    run, columns = record["config"], record["schema"]["columns"]
    (x, y), (other, labels) = encode(train, columns), encode(test, columns)
    names, y = np.unique(y, return_inverse=True)
    labels = np.searchsorted(names, labels)
    return [steps(x, y, other, labels, run, share, np.random.default_rng(100 + seed)) for share in (0, *SHARES)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sotto", required=True)
    parser.add_argument("--epsilon", type=float, default=0.1)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--files", nargs=3)
    a = parser.parse_args()
    made = [("files", None, None, None)] if a.files else [t for t in tables() if a.only in ("", t[0])]
    for name, x, y, bound in made:
        scores = []
        for seed in range(a.seeds):
            with tempfile.TemporaryDirectory() as f:
                files = a.files or write(Path(f), x, y, bound, seed)
                scores.append(measure(a.sotto, a.epsilon, files, seed, Path(f)))
        s = np.array(scores)
        print(f"{name}, ε = {a.epsilon}: as they are {s[:, 0, 0].mean():.4f} {s[:, 0, 1].mean():.4f}", end="")
        for i, share in enumerate(SHARES):
            d = s[:, i + 1] - s[:, 0]
            error = d.std(0, ddof=1) / np.sqrt(a.seeds)
            print(f"; {share}", *(f"{m:+.4f} ± {e:.4f}" for m, e in zip(d.mean(0), error, strict=True)), end="")
        print(flush=True)


if __name__ == "__main__":
    main()
