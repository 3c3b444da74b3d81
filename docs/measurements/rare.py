"""Tables with a rare class, for methods.md#a-rare-class: python rare.py DIR (NumPy).

Writes NAME.csv (training), NAME-test.csv (the last fifth) and NAME.yaml (schema) for each.
"""
import sys

import numpy as np

rng = np.random.default_rng(77)
for name, n, d, curved, share in (
    ("linear-1", 100_000, 12, False, 0.01),
    ("linear-5", 25_000, 12, False, 0.05),
    ("curved-2", 50_000, 10, True, 0.02),
    ("curved-5", 50_000, 10, True, 0.05),
):
    X = rng.normal(size=(n, d))
    if curved:
        z = 1.2 * X[:, 0] + 1.35 * (np.abs(X[:, 1]) - 0.8) + np.where(np.abs(X[:, 2]) < 0.7, 0.8, -0.4) - 0.6 * X[:, 3]
    else:
        z = X[:, 0] + 0.8 * X[:, 1] - 0.6 * X[:, 2] + 0.4 * X[:, 3]
    z += rng.logistic(size=n)
    y, X = (z > np.quantile(z, 1 - share)).astype(int), np.clip(X, -4, 4)
    columns = [f"x{j}" for j in range(d)]
    for path, rows in ((f"{name}.csv", slice(0, n * 4 // 5)), (f"{name}-test.csv", slice(n * 4 // 5, n))):
        np.savetxt(
            f"{sys.argv[1]}/{path}",
            np.column_stack([X[rows], y[rows]]),
            fmt=["%.5g"] * d + ["%d"],
            delimiter=",",
            header=",".join([*columns, "y"]),
            comments="",
        )
    with open(f"{sys.argv[1]}/{name}.yaml", "w") as out:
        out.write(f"dataset: {name}\nrows: {n * 4 // 5}\ncolumns:\n")
        out.writelines(f"  - {{name: {c}, type: numeric, min: -4, max: 4}}\n" for c in columns)
        out.write("  - {name: y, type: label, classes: [0, 1]}\n")
