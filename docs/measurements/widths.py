"""Tables with numeric labels, for methods.md#how-widely-labels-lie: python widths.py DIR (NumPy).

Writes NAME.csv (training), NAME-test.csv (the last fifth) and NAME.yaml (schema) for each.
"""
import sys

import numpy as np


def chosen():
    """The tables on which the rule was chosen."""
    rng, n = np.random.default_rng(101), 25_000
    x = rng.uniform(-1, 1, (n, 10))
    y = 5 * np.sin(3 * x[:, 0]) + 4 * x[:, 1] ** 2 + 3 * np.exp(x[:, 2]) + 2 * np.abs(x[:, 3])
    yield "additive", x, y + rng.normal(size=n) * 2, (-1, 1), (-10, 25)
    x = rng.uniform(-1, 1, (n, 12))
    y = 3 * np.sin(2 * x[:, 0]) + 2 * x[:, 1]
    yield "student", x, y + rng.standard_t(2, size=n) * 2, (-1, 1), (-60, 60)
    x = rng.normal(size=(n, 10))
    y = 2.8 + 0.5 * x[:, 0] - 0.4 * x[:, 1] + 0.3 * x[:, 2] ** 2 / 2
    yield "lognormal", x, np.exp(y + 0.6 * rng.normal(size=n)), (-4, 4), (0, 500)
    x = rng.exponential(size=(n, 10))
    y = 2 * np.log1p(x[:, 0]) + 3 * np.sqrt(x[:, 1]) - x[:, 2]
    yield "skewed columns", x, y + rng.normal(size=n), (0, 8), (-10, 15)
    z = rng.normal(size=(n, 3))
    x = z @ rng.normal(size=(3, 12)) * 0.6 + 0.5 * rng.normal(size=(n, 12))
    y = z[:, 0] * 2 + np.tanh(z[:, 1]) * 3
    yield "correlated", x, y + rng.normal(size=n) * 2, (-4, 4), (-15, 15)
    x = rng.uniform(-0.1, 0.1, (n, 12))
    yield "wide bounds", x, 30 * x[:, 0] + 200 * x[:, 1] ** 2 + rng.normal(size=n), (-1, 1), (-10, 15)
    x = rng.beta(0.5, 2, (n, 10))
    y = 6 * x[:, 0] ** 2 + 5 * x[:, 1] + 4 * x[:, 2] ** 0.5
    yield "beta", x, y + rng.normal(size=n), (0, 1), (-5, 20)
    x = rng.uniform(-1, 1, (n, 10))
    y = 3 * x[:, 0] * x[:, 1] + 2 * x[:, 2] * x[:, 2] + x[:, 3]
    yield "product", x, y + rng.normal(size=n), (-1, 1), (-8, 10)


def unseen():
    """Tables that were made after it was."""
    rng, n = np.random.default_rng(404), 25_000
    x = rng.uniform(-0.05, 0.05, (n, 12))
    y = 40 * x[:, 0] + 600 * x[:, 1] ** 2 - 20 * x[:, 2]
    yield "narrow", x, y + rng.normal(size=n), (-1, 1), (-10, 12)
    x = rng.normal(size=(n, 10))
    yield "steep", x, 3 * x[:, 0] + x[:, 1] ** 2 - 2 * x[:, 2] + rng.normal(size=n), (-8, 8), (-20, 25)
    x = rng.uniform(-1, 1, (n, 8))
    yield "tails", x, 2 * np.sin(3 * x[:, 0]) + x[:, 1] + rng.standard_t(2, size=n) * 2, (-1, 1), (-200, 200)
    x = rng.uniform(0, 1, (60_000, 14))
    y = 3 + x[:, 0] - 0.8 * x[:, 1] + 0.7 * np.sin(4 * x[:, 2])
    yield "incomes", x, np.exp(y + 0.7 * rng.normal(size=60_000)), (0, 1), (0, 1000)


for tables in chosen, unseen:
    for name, x, y, (low, high), bounds in tables():
        x, y, rows = np.clip(x, low, high), np.clip(y, *bounds), len(y) * 4 // 5
        names = [f"x{j}" for j in range(x.shape[1])]
        path = f"{sys.argv[1]}/{name.replace(' ', '-')}"
        for end, a, b in ("", 0, rows), ("-test", rows, len(y)):
            np.savetxt(
                f"{path}{end}.csv",
                np.column_stack([x[a:b], y[a:b]]),
                fmt="%.5g",
                delimiter=",",
                header=",".join([*names, "y"]),
                comments="",
            )
        with open(f"{path}.yaml", "w") as out:
            out.write(f"dataset: {name.replace(' ', '-')}\nrows: {rows}\ncolumns:\n")
            out.writelines(f"  - {{name: {c}, type: numeric, min: {low}, max: {high}}}\n" for c in names)
            out.write(f"  - {{name: y, type: label, min: {bounds[0]}, max: {bounds[1]}}}\n")
