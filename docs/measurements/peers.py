"""Train diffprivlib, DP-EBM (InterpretML) or, without privacy, scikit-learn on Adult, and print accuracy and AUC on its own
test file; of scikit-learn the seconds of processor time that encoding and training took, too (`taskset -c 0` for one core).

    pip install scikit-learn && python docs/measurements/peers.py scikit-learn DIR
    pip install diffprivlib scikit-learn==1.5.2 && python docs/measurements/peers.py diffprivlib DIR
    pip install interpret-core && python docs/measurements/peers.py dp-ebm DIR

DIR holds adult.data.gz and adult.test.gz. Use one environment for each library: diffprivlib
0.6.6 does not load with the scikit-learn that interpret-core 0.7.8 requires.
"""

import gzip
import math
import statistics
import sys
import time
import warnings

import numpy as np
from sklearn.metrics import roc_auc_score

NAMES = ["age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship",
         "race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country"]
BOUNDS = {"age": (17, 90), "education-num": (1, 16), "capital-gain": (0, 99999), "capital-loss": (0, 4500),
          "hours-per-week": (1, 99)}  # of examples/adult/schema.yaml
LEFT_OUT = {"fnlwgt", "education", "native-country"}  # as in examples/adult/schema.yaml
MONEY = {"capital-gain", "capital-loss"}
EPSILONS = 0.1, 1
SEEDS = 5


def read(name):
    rows, labels = [], []
    with gzip.open(name, "rt") as f:
        for line in f:
            cells = [c.strip() for c in line.split(",")]
            if len(cells) == 15:
                rows.append(dict(zip(NAMES, cells)))
                labels.append(int(cells[14].startswith(">50K")))
    return rows, np.array(labels)


def encode(rows, levels):
    """Encode rows as Sotto does: numbers to [-1, 1], money by log1p, one-hot levels, an intercept, norm 1."""
    columns = [np.ones(len(rows))]
    for name in NAMES:
        if name in BOUNDS:
            low, high = BOUNDS[name]
            x = np.clip([float(r[name]) for r in rows], low, high)
            if name in MONEY:
                x, low, high = np.log1p(x), np.log1p(low), np.log1p(high)
            columns.append(2 * (x - low) / (high - low) - 1)
        elif name not in LEFT_OUT:
            columns += [np.array([float(r[name] == v) for r in rows]) for v in levels[name]]
    x = np.column_stack(columns)
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def report(name, epsilon, scores):
    accuracy, auc = ([s[i] for s in scores] for i in (0, 1))
    print(f"{name:30} {epsilon:5} {statistics.median(accuracy):.4f} {statistics.median(auc):.4f}", flush=True)


def score(probability, labels):
    return ((probability > 0.5) == labels).mean(), roc_auc_score(labels, probability)


def diffprivlib(train, y, test, z):
    from diffprivlib.models import LogisticRegression
    levels = {n: sorted({r[n] for r in train} - {"?"}) for n in NAMES if n not in BOUNDS}
    a, b = encode(train, levels), encode(test, levels)
    for epsilon in EPSILONS:
        for c in (0.01, 1):
            scores = []
            for seed in range(SEEDS):
                m = LogisticRegression(epsilon=epsilon, data_norm=1, C=c, fit_intercept=False, max_iter=1000,
                                       random_state=seed)
                scores.append(score(m.fit(a, y).predict_proba(b)[:, 1], z))
            report(f"LogisticRegression, C = {c}", epsilon, scores)


def dp_ebm(train, y, test, z):
    from interpret.privacy import DPExplainableBoostingClassifier
    kept = [n for n in NAMES if n not in LEFT_OUT]
    types = ["continuous" if n in BOUNDS else "nominal" for n in kept]
    bounds = {n: BOUNDS[n] for n in kept if n in BOUNDS}
    a, b = (np.array([[r[n] for n in kept] for r in rows], dtype=object) for rows in (train, test))
    for epsilon in EPSILONS:
        for name, settings in (("defaults", {}), ("learning_rate = 0.05", {"learning_rate": 0.05})):
            scores = []
            for seed in range(SEEDS):
                m = DPExplainableBoostingClassifier(kept, types, epsilon=epsilon, delta=1e-5, privacy_bounds=bounds,
                                                    random_state=seed, n_jobs=1, **settings)
                scores.append(score(m.fit(a, y).predict_proba(b)[:, 1], z))
            report("DP-EBM, " + name, epsilon, scores)


def scikit_learn(train, y, test, z):
    from sklearn.linear_model import LogisticRegression
    levels = {n: sorted({r[n] for r in train} - {"?"}) for n in NAMES if n not in BOUNDS}
    b = encode(test, levels)
    for _ in range(SEEDS):
        start = time.process_time()
        a = encode(train, levels)
        encoded = time.process_time()
        m = LogisticRegression(fit_intercept=False, max_iter=1000).fit(a, y)
        trained = time.process_time()
        report("scikit-learn", math.inf, [score(m.predict_proba(b)[:, 1], z)])
        print(f"encoding {encoded - start:.2f} s, training {trained - encoded:.2f} s")


def main(peer, folder):
    warnings.simplefilter("ignore")
    tables = read(folder + "/adult.data.gz") + read(folder + "/adult.test.gz")
    {"diffprivlib": diffprivlib, "dp-ebm": dp_ebm, "scikit-learn": scikit_learn}[peer](*tables)


main(*sys.argv[1:])
