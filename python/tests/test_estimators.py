"""The estimators under the real scikit-learn: `bash .ci/python` runs them against the installed wheel."""

import importlib.util
import json
import os
import pickle
import re
import signal
import subprocess
import sys
import time
import warnings
from importlib import metadata
from pathlib import Path

import matplotlib
import nbclient
import nbformat
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import sottodp
from sottodp import BudgetError, SottoClassifier, SottoRegressor, SottoSearchCV, command, errors, plots, preprocessing
from sottodp._command import Rows, _error, run

CLINIC = Path(__file__).parents[2] / "examples" / "clinic"


@parametrize_with_checks([SottoClassifier(lab=True), SottoRegressor(lab=True)])
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture
def clinic():
    frame = pd.read_csv(CLINIC / "patients.csv")
    return frame.drop(columns="readmitted"), frame["readmitted"]


def table(rows=400, seed=1):
    draw = np.random.default_rng(seed)
    X = draw.uniform(-1, 1, (rows, 3))
    return X, X @ [2.0, -1.0, 0.5]


def public(**more):
    given = {"epsilon": 1, "delta": 1e-5, "adjacency": "add-or-remove", "rows": 400, "domain": (-1, 1), "classes": [False, True], "dataset": "table"}
    return SottoClassifier(**{**given, **more})


def test_schema(clinic):
    c = SottoClassifier(1, 1e-5, "add-or-remove", schema=CLINIC / "schema.yaml").fit(*clinic)
    held = pd.read_csv(CLINIC / "heldout.csv")
    held, truth = held.drop(columns="readmitted"), held["readmitted"]
    assert c.classes_.tolist() == ["no", "yes"]
    assert c.score(held, truth) > 0.8  # 0.88 to 0.91
    g = c.guarantee_
    assert (g.epsilon, g.delta, g.adjacency, g.unit, g.dataset, g.lab) == (1, 1e-5, "add-or-remove", "record", "clinic", False)
    assert "any set of outcomes by at most a factor of 2.719, plus 0.00001. All that the ledger knows" in str(g) and len(g.assumptions) > 10
    assert 0.26 < g.mu < 0.27 and g.outside == g.regret == 0  # Gaussian noise on all records: the μ that costs (1, 1e-5)


def test_unit(tmp_path):
    schema = CLINIC.parent / "visits" / "schema.yaml"
    (tmp_path / "visits.csv").write_text(run("synth", "--schema", schema, "--units", "2000", "--seed", "1"), encoding="utf-8")
    X = pd.read_csv(tmp_path / "visits.csv")
    y = X.pop("readmitted")
    c = SottoClassifier(1, 1e-5, "replace-one", schema=schema).fit(X, y)
    assert (c.guarantee_.unit, c.guarantee_.unit_rows) == ("patient", 8)
    assert "any one patient" in str(c.guarantee_)
    alone = X.drop(columns="patient_id")  # rows to predict need not say whose they are
    assert (c.predict(alone) == c.predict(X)).all()


def test_domain(clinic):
    X, y = clinic
    X = X[["age", "smoker"]]
    domain = {"age": (18, 100), "smoker": ["no", "former", "yes"]}
    c = SottoClassifier(1, 1e-5, "add-or-remove", domain=domain, classes=["no", "yes"], rows=4000, dataset="clinic")
    X = X[X["smoker"].notna()]
    assert set(c.fit(X, y[X.index]).predict(X.head())) <= {"no", "yes"}
    with pytest.raises(ValueError, match="age"):
        c.set_params(domain={"smoker": ["no", "former", "yes"]}).fit(X, y[X.index])


@pytest.mark.parametrize("missing", ["domain", "classes", "rows", "dataset", "epsilon", "delta", "adjacency"])
def test_public_facts_are_never_read_off_the_rows(missing):
    X, y = table()
    with pytest.raises(ValueError, match=missing):
        public().set_params(**{missing: None}).fit(X, y > 0)


def test_the_same_bounds_give_the_same_schema_whatever_the_rows(tmp_path):
    X, y = table()
    said = []
    for scale in (1, 1e6):
        c = public(epsilon=0.1).fit(X * scale, y > 0)
        said.append((c.guarantee_.assumptions, c.guarantee_.epsilon))
    assert said[0] == said[1]


def test_errors_quote_no_cell(clinic):
    X, y = clinic
    with pytest.raises(ValueError, match="text where numbers") as error:
        public().fit(X[["smoker", "ward"]].fillna("no"), y)
    assert "former" not in str(error.value)


def test_seed_is_for_the_lab():
    X, y = table()
    with pytest.raises(ValueError, match="random_state"):
        public(random_state=1).fit(X, y > 0)
    lab = public(lab=True, random_state=1)
    p = lab.fit(X, y > 0).predict_proba(X)
    assert np.array_equal(p, clone(lab).fit(X, y > 0).predict_proba(X))
    assert lab.guarantee_.lab and "none" in str(lab.guarantee_)


def test_budget(tmp_path):
    X, y = table()
    public().fit(X, y > 0)
    run("ledger", "budget", "table", "--epsilon", "1.5", "--delta", "1e-4", "--adjacency", "add-or-remove")
    with pytest.raises(BudgetError):
        public().fit(X, y > 0)


def test_ledger_of_a_relative_path(tmp_path, monkeypatch):
    """It is below the working directory, as everywhere in Python, and stays."""
    X, y = table()
    monkeypatch.chdir(tmp_path)
    c = public(ledger="own.db").fit(X, y > 0)
    assert "(ε 1, " in c.guarantee_.lifetime
    c.evaluate_private(X, y > 0, epsilon=1)
    assert json.loads(run("ledger", "show", "table", "--json", "--ledger", tmp_path / "own.db"))["dataset"]["spent"]["epsilon"] == 2


def test_run_directory(tmp_path):
    X, y = table()
    first = public(run_dir=tmp_path / "run").fit(X, y > 0)
    run("verify", tmp_path / "run")
    spent = lambda: json.loads(run("ledger", "show", "table", "--json"))["dataset"]["spent"]["epsilon"]  # noqa: E731
    again = public(run_dir=tmp_path / "run").fit(X, y > 0)  # loads it
    assert again.guarantee_.run == first.guarantee_.run and np.array_equal(again.coef_, first.coef_) and spent() == 1
    assert again.predict(X).tolist() == first.predict(X).tolist()
    other = "is not the table that this run began with; .* Use that table, or a new run directory$"
    for rows, labels in [(X[::-1], (y > 0)[::-1]), (X[:399], y[:399] > 0), (X, y > 0.1)]:
        with pytest.raises(ValueError, match="^X: " + other):
            public(run_dir=tmp_path / "run").fit(rows, labels)
    for more, what in [({"epsilon": 2}, "privacy"), ({"hats": 3}, "schema"), ({"method": "sgd"}, "method"), ({"model": "svm"}, "model"), ({"lab": True}, "lab"), ({"domain": (-2, 1)}, "schema")]:
        with pytest.raises(ValueError, match=f"^run_dir: .* holds a run with another {what} than this spec"):
            public(run_dir=tmp_path / "run", **more).fit(X, y > 0)
    assert spent() == 1
    lab = public(lab=True, random_state=1, dataset="lab", run_dir=tmp_path / "lab", void=True)
    p = lab.fit(X, y > 0).predict_proba(X)
    assert np.array_equal(clone(lab).fit(X, y > 0).predict_proba(X), p)
    with pytest.raises(ValueError, match="^X: " + other):
        clone(lab).fit(X, y > 0.1)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match="^run_dir: .* is not empty"):
        public(run_dir=tmp_path / "mine").fit(X, y > 0)


def test_regression():
    X, y = table(4000)
    r = SottoRegressor(4, 1e-5, "add-or-remove", domain=[(-1, 1)] * 3, target_range=(-4, 4), rows=4000, dataset="numbers")
    assert r.fit(X, y).score(*table(4000, seed=2)) > 0.5
    mine = r.predict(X)
    mine -= y  # the array is the caller's
    np.testing.assert_array_equal(mine + y, r.predict(X) - y + y)
    with pytest.raises(ValueError, match="domain"):
        clone(r).set_params(domain=[(-1, 1)] * 2).fit(X, y)


def test_pairs_of_a_schema_fit_what_two_columns_do_together(tmp_path):
    matplotlib.use("Agg")
    rng = np.random.default_rng(7)
    X = pd.DataFrame(rng.uniform(-1, 1, (4000, 2)), columns=["left", "right"])
    y = np.where(X["left"] * X["right"] > 0, "same", "other")
    other = pd.DataFrame(rng.uniform(-1, 1, (4000, 2)), columns=X.columns)
    truth = np.where(other["left"] * other["right"] > 0, "same", "other")
    schema = tmp_path / "schema.yaml"
    for pairs, least, most in ("[[left, right]]", 0.9, 1), ("none", 0, 0.58):
        schema.write_text(
            f"dataset: crossed\nrows: 4000\npairs: {pairs}\ncolumns:\n"
            + "".join(f"  - {{name: {name}, type: numeric, min: -1, max: 1}}\n" for name in X.columns)
            + "  - {name: y, type: label, classes: [other, same]}\n", encoding="utf-8",
        )
        model = SottoClassifier(10, 1e-5, "add-or-remove", schema=schema, lab=True, random_state=1).fit(X, y)
        assert least <= np.mean(model.predict(other) == truth) <= most
        cells = [line for line in model.effects() if line["kind"] == "cell"]
        assert len(cells) == (25 if pairs != "none" else 0)
        if cells:
            assert cells[5]["column"] == "left × right" and cells[5]["value"] == "-0.5 × -1" and "left × right at 5 5" in model.coef_names_
            drawn = plots.plot_effects(model, "left × right")
            assert drawn.images[0].get_array().shape == (5, 5) and [t.get_text() for t in drawn.get_yticklabels()] == ["-1", "-0.5", "0", "0.5", "1"]


def test_bumps_fit_what_is_no_line():
    X = np.random.default_rng(1).uniform(-1, 1, (4000, 2))
    y = np.abs(X[:, 0]) > 0.5
    line, curve = (public(epsilon=5, rows=4000, hats=hats, lab=True, random_state=1) for hats in (0, 8))
    other = np.random.default_rng(2).uniform(-1, 1, (4000, 2))
    truth = np.abs(other[:, 0]) > 0.5
    assert line.fit(X, y).score(other, truth) < 0.7 and curve.fit(X, y).score(other, truth) > 0.9
    with pytest.raises(ValueError, match="hats: found 1; write a whole number from 2 to 64"):
        clone(curve).set_params(hats=1).fit(X, y)


def test_effects():
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (3000, 2))
    y = X[:, 0] > 0
    model = SottoClassifier(epsilon=1, lab=True, random_state=1, hats=0).fit(X, y)
    first, second = model.effects()
    assert first["kind"] == "slope" and first["low"] < first["effect"] < first["high"]
    assert first["low"] > 1 > abs(second["effect"]) and first["ratio"] == pytest.approx(np.exp(first["effect"]), rel=1e-4)
    with pytest.raises(ValueError, match="several margins"):
        SottoClassifier(epsilon=1, lab=True, random_state=1).fit(X, (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)).effects()


@pytest.mark.parametrize("of", [
    lambda t: t.astype("m8[s]"), lambda t: t.astype("m8[s]").astype("m8[ns]"), lambda t: t.astype("M8[s]"), lambda t: t + 5j, lambda t: [np.timedelta64(int(v), "s") for v in t],
    lambda t: pd.Series(t.astype("m8[s]").astype("m8[ns]")), lambda t: pl.Series(t.astype("m8[s]").astype("m8[us]")), lambda t: np.array([complex(v) for v in t], object),
])
def test_targets_without_a_unit(of):
    t = np.random.default_rng(6).integers(0, 100, 300)
    fresh = SottoRegressor(5, 1e-5, "add-or-remove", domain=(0, 100), target_range=(0, 100), rows=300, dataset="targets")
    with pytest.raises(ValueError, match="^y: found "):
        fresh.fit(t[:, None], of(t))
    lab = SottoRegressor(lab=True, random_state=1, domain=(0, 100), target_range=(0, 100)).fit(t[:, None], t)
    with pytest.raises(ValueError, match="^y: found "):
        lab.score(t[:, None], of(t))


def test_errors_quote_no_rows():
    X, y = table(seed=8)
    secret = 0.123456789
    X[0, 0] = secret
    fitted = public(hats=0, dataset="quoted").fit(X, y > 0)
    for wrong in (X[:, 0], X + 0j, X[0]):
        for call in (lambda: public(dataset="quoted").fit(wrong, y > 0), lambda: fitted.predict(wrong), lambda: fitted.score(wrong, y > 0)):
            with pytest.raises(ValueError) as error:
                call()
            assert "0.1234" not in str(error.value) and "X: " in str(error.value)


def test_loaded_columns_named_as_arrays_are(tmp_path):
    X, y = table(seed=9)
    frame = pd.DataFrame(X, columns=["x0", "x1", "x2"])
    public(domain={name: (-1, 1) for name in frame}, dataset="named", run_dir=tmp_path / "run").fit(frame, y > 0)
    loaded = SottoClassifier.load(tmp_path / "run")
    assert np.array_equal(loaded.predict(frame), loaded.predict(X))
    with pytest.raises(ValueError, match="feature names should match"):
        loaded.predict(frame[["x1", "x0", "x2"]])


def rows_of(X):
    """Rows as the schema encodes them: bounds are -1 and 1 already, and then the norm is 1."""
    rows = np.c_[X, np.ones(len(X))]
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_coefficients_and_margins():
    X, y = table()
    c = public(hats=0).fit(X, y > 0)
    assert c.coef_.shape == (1, 4) and c.intercept_.shape == (1,) and list(c.coef_names_) == ["x0", "x1", "x2", "(intercept)"]
    z, p = c.decision_function(X), c.predict_proba(X)
    assert np.allclose(1 / (1 + np.exp(-z)), p[:, 1], rtol=1e-12) and ((z > 0) == c.predict(X)).all()
    assert np.allclose(rows_of(X) @ c.coef_[0] + c.intercept_, z, rtol=1e-4, atol=1e-4)
    X, y = table(seed=3)
    three = public(hats=0, classes=[0, 1, 2], dataset="three").fit(X, np.digitize(y, [-1, 1]))
    assert three.coef_.shape == (3, 4) and three.decision_function(X).shape == (400, 3)
    X, y = table(seed=8)
    centered = clone(three).set_params(classes=[2, 0, 1], method_options={"center": "mean"}, dataset="seeded", random_state=1, lab=True)
    centered.fit(X, np.digitize(y, [-1, 1]))
    margins = rows_of(X) @ centered.coef_.T + centered.intercept_  # an intercept for each class, in the order of classes_
    assert len(set(centered.intercept_)) == 3
    odds = np.exp(margins - margins.max(axis=1, keepdims=True))
    assert np.allclose(odds / odds.sum(axis=1, keepdims=True), centered.predict_proba(X), rtol=1e-3, atol=1e-4)
    number = SottoRegressor(4, 1e-5, "add-or-remove", domain=(-1, 1), target_range=(-4, 4), rows=400, dataset="numbers", hats=0)
    number.fit(*table(seed=4))
    assert number.coef_.shape == (4,) and isinstance(number.intercept_, float)
    assert not hasattr(public(model="mlp", model_options={"layers": ["4 relu"]}, method="sgd", dataset="net").fit(table(seed=5)[0], y > 0), "coef_")


def test_levels_and_missing_values():
    X, y = table()
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1] > 0, "c": np.where(y > 0, "u", "v")})
    frame.loc[7, "a"] = np.nan
    domain = {"a": {"bounds": (-1, 1), "missing": 0}, "b": [False, True], "c": pd.CategoricalDtype(["u", "v"])}
    c = public(domain=domain, hats=0).fit(frame, y > 0)
    assert list(c.coef_names_) == ["a", "b=False", "b=True", "c=u", "c=v", "(intercept)"] and (c.predict(frame) == (y > 0)).mean() > 0.9
    assert (c.predict(frame.astype({"c": "category"})) == c.predict(frame)).all()
    with pytest.raises(ValueError, match="^X: row 8: column a: found a missing value"):
        public(domain={**domain, "a": (-1, 1)}).fit(frame, y > 0)
    method = frame.rename(columns={"a": "toarray"})  # no column's name makes a frame sparse
    with pytest.raises(ValueError, match="nothing is said of the columns 'toarray', 'b', 'c'"):
        public(domain={"a": (-1, 1)}).fit(method, y > 0)
    with pytest.raises(ValueError, match="nothing is said of the columns 'b', 'c'"):
        public(domain={"a": (-1, 1)}).fit(frame, y > 0)
    Xm, y = table(seed=6)
    Xm[3, 1] = np.nan
    ruled = [(-1, 1), {"bounds": (-1, 1), "missing": "zero"}, (-1, 1)]
    assert public(domain=ruled, dataset="gaps").fit(Xm, y > 0).predict(Xm).shape == (400,)
    with pytest.raises(ValueError, match="NaN"):
        public().fit(Xm, y > 0)


def test_class_and_sample_weights():
    X, y = table()
    plain, heavy = (public(epsilon=5, class_weight=w).fit(X, y > 1) for w in (None, {True: 30}))
    assert heavy.predict(X).sum() > plain.predict(X).sum()
    with pytest.raises(ValueError, match="class_weight: found 'balanced'.*no charge covers that"):
        public(class_weight="balanced").fit(X, y > 0)
    with pytest.raises(ValueError, match="sample_weight: found it; use class_weight"):
        public().fit(X, y > 0, sample_weight=np.ones(400))
    assert public().fit(X, y > 0, sample_weight=None).n_features_in_ == X.shape[1]


def test_truth_values_as_numbers():
    """An array or a column of truth values under bounds is a number, and so is a sparse column of pandas."""
    X = np.random.default_rng(5).uniform(-1, 1, (400, 2)) > 0
    y = X[:, 0]
    c = SottoClassifier(lab=True, random_state=1, domain=(0, 1), epsilon=20, delta=1e-5, adjacency="add-or-remove").fit(X, y)
    assert (c.predict(X) == y).all() and c.predict(X).tolist() == c.predict(X.astype(float)).tolist()
    frame = pd.DataFrame({"age": pd.arrays.SparseArray(X[:, 0].astype(int)), "dose": X[:, 1]})
    c = SottoClassifier(lab=True, random_state=1, domain={"age": (0, 1), "dose": (0, 1)}, epsilon=20, delta=1e-5, adjacency="add-or-remove").fit(frame, y)
    assert (c.predict(frame) == y).all() and c.predict(frame).tolist() == c.predict(frame.astype(float)).tolist()


FRAME = pd.DataFrame({"age": table()[0][:, 0], "sex": np.where(table()[0][:, 1] > 0, "f", "m")})
DOMAIN = {"age": (-1, 1), "sex": ["f", "m"]}

# Parameters, X in place of the table, y in place of its labels, and how the error begins.
WRONG = [
    ({"epsilon": -1}, None, None, "epsilon: found -1"),
    ({"epsilon": "one"}, None, None, 'epsilon: found "one"'),
    ({"delta": 2}, None, None, "delta: found 2"),
    ({"adjacency": "swap"}, None, None, 'adjacency: found "swap"'),
    ({"rows": "many"}, None, None, "rows: found 'many'; give a whole number"),
    ({"rows": 399, "adjacency": "replace-one"}, None, None, "X: rows: found more rows; expected exactly 399"),
    ({"dataset": ""}, None, None, "dataset: found ''; give the table's name"),
    ({"domain": (1, -1)}, None, None, "domain: column 'x0': max: found -1"),
    ({"domain": [(-1, 1)] * 2}, None, None, "domain: found 2 entries; give"),
    ({"domain": "0-1"}, None, None, "domain: found str; give (low, high)"),
    ({"domain": DOMAIN}, None, None, "X: found no column names; give a data frame"),
    ({"domain": {**DOMAIN, "sex": ["f", "f", "m"]}}, FRAME, None, "domain: column 'sex': levels[1]: found \"f\" a second time"),
    ({"domain": {**DOMAIN, "sex": ["f", "x"]}}, FRAME, None, "X: row 2: column sex: found a level that domain does not list"),
    ({"domain": {**DOMAIN, "sex": (0, 1)}}, FRAME, None, "X: row 1: column sex: found text that is not a number"),
    ({"domain": {**DOMAIN, "age": {"bounds": (-1, 1), "mising": 0}}}, FRAME, None, "domain: column 'age': unknown 'mising'; beside 'bounds', choose from missing"),
    ({"domain": {**DOMAIN, "age": {"bounds": (-1, 1), "missing": 7}}}, FRAME, None, "domain: column 'age': missing: found \"7\"; write"),
    ({"domain": DOMAIN}, FRAME.assign(age=[1, "a secret"] * 200), None, "X: column 'age': found cells of several types; use"),
    ({"domain": DOMAIN}, pd.concat([FRAME, FRAME], axis=1), None, "X: found the column 'age' a second time; give"),
    ({"domain": DOMAIN}, FRAME.assign(age=pd.to_timedelta(range(400), unit="s"), sex=pd.to_timedelta(1, unit="s")), None, 'X: column "age" holds durations'),
    ({"domain": DOMAIN}, pa.Table.from_pandas(FRAME), None, "X: found Table; give a data frame or an array: X.to_pandas()"),
    ({"domain": DOMAIN}, pl.from_pandas(FRAME).lazy(), None, "X: found LazyFrame; give a data frame or an array: X.collect()"),
    ({"domain": DOMAIN}, dict(FRAME), None, "X: found dict; give a data frame or an array: pandas.DataFrame(X)"),
    ({"domain": DOMAIN}, (row for row in FRAME.to_numpy()), None, "X: found generator; give a data frame or an array"),
    ({"domain": DOMAIN}, scipy.sparse.csr_array(table()[0]), None, "X: found the sparse csr_array; give a data frame or an array: X.toarray()"),
    ({"domain": DOMAIN}, FRAME, [True] * 10, "y: found 10 labels; give one for each of the 400 rows"),
    ({}, np.full((400, 3), np.nan), None, "X: found NaN where numbers should be; let domain say what replaces it"),
    ({}, None, ["a secret"] * 400, "y: its labels are texts, and classes lists truth values; give both the same type"),
    ({"classes": [1, 1]}, None, None, "classes: found [1, 1]; give a list of two labels"),
    ({"model": "forest"}, None, None, 'model: unknown model "forest"; choose logistic'),
    ({"model_options": {"l3": 1}}, None, None, 'model_options: unknown "l3"; choose l2'),
    ({"model_options": {"threshold": {"x": 0.2}}}, None, None, "model_options: threshold: found 'x'; choose from the classes False, True"),
    ({"method": "nope"}, None, None, 'method: unknown method "nope"; choose auto'),
    ({"method": "sgd", "method_options": {"steps": -3}}, None, None, "method_options: steps: found -3"),
    ({"method": "sgd", "method_options": {"stepz": 3}}, None, None, 'method_options: unknown "stepz"; choose steps'),
    ({"hats": "many"}, None, None, 'hats: found "many"; write'),
    ({"row_scaling": "what"}, None, None, 'row_scaling: found "what"'),
    ({"class_weight": {"x": 1}}, None, None, "class_weight: found 'x'; choose from the classes False, True"),
    ({"class_weight": {True: -1}}, None, None, "class_weight: a class weight is -1; write finite numbers above 0"),
    ({"run_dir": CLINIC}, None, None, "run_dir: "),
    ({"schema": "none.yaml"}, FRAME, None, "schema: none.yaml: found no file to read"),
    ({"disclosure": {"purpos": ""}}, None, None, 'disclosure: unknown "purpos"; choose purpose'),
    ({"random_state": 1}, None, None, "random_state: found it without lab=True; leave it out"),
]


@pytest.mark.parametrize(("given", "X", "y", "message"), WRONG, ids=[message for *_, message in WRONG])
def test_errors_name_parameters(given, X, y, message):
    """A mistake is an error that begins with the parameter, says what is allowed, and names no file of ours and no cell."""
    rows, score = table()
    with pytest.raises(ValueError, match="^" + re.escape(message)) as found:
        public(**given).fit(rows if X is None else X, score > 0 if y is None else y)
    assert not re.search(r"sotto-|/dev/fd|spec\.yaml|secret", str(found.value))


def test_errors_of_a_regression_quote_no_number():
    X, y = table()
    r = SottoRegressor(4, 1e-5, "add-or-remove", domain=(-1, 1), target_range=(4, -4), rows=400, dataset="numbers")
    with pytest.raises(ValueError, match="^target_range: max: found -4; write a number above min"):
        r.fit(X, y)
    with pytest.raises(ValueError, match="^target_range: found 'wide'; give a pair"):
        clone(r).set_params(target_range="wide").fit(X, y)
    with pytest.raises(ValueError, match="^y: found what is no number; give numbers$"):
        clone(r).set_params(target_range=(-4, 4)).fit(X, ["a secret"] * 400)


def test_lifetime_after_a_grid():
    """GridSearchCV charges every fit; the last estimator says so."""
    X, y = table()
    public().fit(X, y > 0)
    run("ledger", "show", "table")
    with pytest.warns(UserWarning, match="SottoSearchCV to choose a method"):  # by default it goes on without a score
        found = GridSearchCV(public(), {"hats": [0, 2]}, cv=2).fit(X, y > 0).best_estimator_.guarantee_
    assert found.epsilon == 1 and "All runs so far are together (ε 6, " in found.lifetime and found.lifetime in str(found)
    assert "not made by steps that were fitted to the same rows" in found.assumptions[-1]


def test_steps_that_learn_are_warned_of():
    X, y = table()
    own = make_pipeline(preprocessing.PublicScaler((-1, 1)), preprocessing.PublicImputer(), public())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        own.fit(X, y > 0)
    with pytest.warns(errors.PrivacyWarning, match="the step 'standardscaler' of the pipeline learned"):
        make_pipeline(StandardScaler(), public()).fit(X, y > 0)


@parametrize_with_checks([preprocessing.PublicScaler(), preprocessing.PublicImputer()])
def test_public_steps(estimator, check):
    check(estimator)


def test_public_encoder():
    encoder = preprocessing.PublicEncoder([["no", "yes"], [1, 2, 3]])
    frame = pd.DataFrame({"a": ["yes", "other"], "b": [3, 1]})
    assert encoder.fit_transform(frame).tolist() == [[0, 1, 0, 0, 1], [0, 0, 1, 0, 0]]
    assert list(encoder.get_feature_names_out()) == ["a_no", "a_yes", "b_1", "b_2", "b_3"]
    with pytest.raises(ValueError, match="levels: found 1 entries; give one for each of 2 columns"):
        preprocessing.PublicEncoder([["no"]]).fit(frame)


def test_holdout(tmp_path):
    X = np.random.default_rng(3).uniform(-1, 1, (2000, 2))
    c = public(rows=2000, holdout=np.float32(0.25), run_dir=tmp_path / "run").fit(X, X[:, 0] > 0)
    spec = json.loads((tmp_path / "run" / "run.json").read_text())
    assert spec["holdout"]["share"] == 0.25 and sorted(c.holdout_["accuracy"]) == ["high", "low", "value"]
    assert [one["class"] for one in c.holdout_["classes"]] == [False, True]
    assert type(c.holdout) is np.float32  # a fit changes no parameter
    loaded = SottoClassifier.load(tmp_path / "run")
    assert loaded.holdout == 0.25 and loaded.holdout_ == c.holdout_
    r = SottoRegressor(1, 1e-6, "add-or-remove", domain=(-1, 1), rows=2000, dataset="numbers", target_range=(-100, 100), target_scale=1, holdout=0.25, run_dir=tmp_path / "numbers").fit(X, X[:, 0])
    label = json.loads((tmp_path / "numbers" / "run.json").read_text())["schema"]["columns"][-1]
    assert label["scale"] == 1 and "rmse" in r.holdout_
    assert SottoRegressor.load(tmp_path / "numbers").target_scale == 1
    assert not hasattr(c.set_params(dataset="whole", holdout=None, run_dir=None).fit(np.random.default_rng(4).uniform(-1, 1, (2000, 2)), X[:, 0] > 0), "holdout_")


@pytest.mark.parametrize(("more", "says"), [({"holdout": 0.9}, "holdout: "), ({"holdout": "a fifth"}, "holdout: found 'a fifth'; give a number"),
                                            ({"holdout": True}, "holdout: found True; give a number")])
def test_wrong_holdouts(more, says):
    with pytest.raises(ValueError, match=says):
        public(rows=100, **more).fit(np.zeros((100, 2)), [False, True] * 50)


def test_private_evaluation(tmp_path):
    X, y = table(4000)
    c = public(rows=4000).fit(X, y > 0)
    held, truth = table(4000, seed=9)
    exact = c.score(held, truth > 0)
    figures = c.evaluate_private(held, truth > 0, epsilon=1, dataset="held", out=tmp_path / "evaluation")
    run("verify", tmp_path / "evaluation")
    assert figures["accuracy"]["low"] < exact < figures["accuracy"]["high"] and abs(figures["accuracy"]["value"] - exact) < 0.02
    assert [one["class"] for one in figures["classes"]] == [False, True]
    assert json.loads(run("ledger", "show", "held", "--json"))["dataset"]["spent"] == {"epsilon": 1, "delta": 1e-5}
    with pytest.raises(errors.ContentProtectedError, match="Say dataset='table'"):
        c.evaluate_private(X, y > 0, epsilon=1, dataset="other")
    frame = pd.DataFrame({"a": X[:, 0], "c": np.where(X[:, 1] > 0, "u", "v")})
    numbers = SottoRegressor(4, 1e-5, "add-or-remove", domain={"a": (-1, 1), "c": ["u", "v"]}, target_range=(-4, 4), rows=4000, dataset="numbers")
    figures = numbers.fit(frame, y).evaluate_private(frame, y, epsilon=8, by="c")
    assert figures["rmse"]["low"] < figures["rmse"]["value"] < figures["rmse"]["high"]


def test_pictures():
    matplotlib.use("Agg")
    X, y = table(4000)
    c = public(rows=4000, hats=4).fit(X, y > 0)
    curve = plots.plot_effects(c, "x0")
    assert curve.get_xlabel() == "x0" and len(curve.lines) == 2 and len(curve.collections) == 1
    with pytest.raises(ValueError, match="column: found 'x9'; choose 'x0', 'x1', 'x2'"):
        plots.plot_effects(c, "x9")
    g = c.guarantee_
    fpr, tpr = plots.plot_trade_off(g).lines[0].get_data()
    assert (tpr >= fpr).all() and (tpr <= np.exp(g.epsilon) * fpr + g.delta + 1e-12).all()
    profile = plots.plot_privacy_profile(g)
    delta, epsilon = profile.lines[0].get_data()
    assert (np.diff(epsilon) < 0).all() and np.interp(np.log(1e-5), np.log(delta), epsilon) == pytest.approx(1, abs=0.01)
    assert plots._epsilon(1, plots._delta(1, 2)) == pytest.approx(2) and plots._delta(1, 0) == pytest.approx(0.3829249)  # 2Φ(1/2) − 1
    X, y = table(seed=8)
    lab = public(lab=True, dataset="lab").fit(X, y > 0).guarantee_
    for draw in (plots.plot_trade_off, plots.plot_privacy_profile):
        with pytest.raises(ValueError, match="promises nothing"):
            draw(lab)


@pytest.mark.parametrize("notebook", sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_notebooks(notebook, tmp_path, monkeypatch):
    """Every notebook runs from its beginning to its end."""
    monkeypatch.setenv("SOTTO_EXAMPLES", str(CLINIC.parent.resolve()))
    content = nbformat.read(notebook, as_version=4)
    assert not any(cell.get("outputs") for cell in content.cells), "a notebook is stored without outputs"
    nbclient.NotebookClient(content, timeout=3600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert "an example of this notebook" in (tmp_path / "run" / "disclosure.html").read_text(encoding="utf-8")


def test_search():
    X, y = table(4000)
    said = public(epsilon=3, rows=4000, dataset="searched")
    s = SottoSearchCV(said, ["nag", {"name": "sgd", "steps": 30, "label": "short"}], mean=3).fit(X, y > 0)
    assert s.best_method_ in ("1: nag", "short") and s.best_score_ < 0 < s.score_noise_
    assert s.guarantee_.epsilon == 3 and "(ε 3, " in s.guarantee_.lifetime  # all of the search
    held, truth = table(400, seed=2)
    assert s.score(held, truth > 0) > 0.9 and (s.predict(X) == (s.decision_function(X) > 0)).all()
    for wrong, message in [(public(lab=True), "lab"), (public(method="nag"), "method of its own")]:
        with pytest.raises(ValueError, match=message):
            SottoSearchCV(wrong, ["nag"]).fit(X, y > 0)


def test_search_does_not_resume(tmp_path, monkeypatch):
    """A search that was stopped, or a second one, in the same run_dir is refused before anything is charged."""
    X, y = table(1000)
    out = tmp_path / "run"
    said = public(epsilon=3, dataset="stopped", run_dir=out)
    with pytest.raises(ValueError, match="methods"):
        SottoSearchCV(said, ["no such method"], mean=1.5).fit(X, y > 0)
    assert not out.exists()  # it was refused, so the next fit may have the directory

    def stop(*arguments, **options):
        raise errors.Interrupted

    with monkeypatch.context() as patched:
        patched.setattr("sottodp._estimators.run", stop)
        with pytest.raises(errors.Interrupted):
            SottoSearchCV(said, ["nag"], mean=1.5).fit(X, y > 0)
    with pytest.raises(ValueError, match="run_dir: .* exists, and a search cannot be resumed.*Use a new directory"):
        SottoSearchCV(said, ["nag"], mean=1.5).fit(X, y > 0)
    out.rmdir()
    search = SottoSearchCV(said, ["nag"], mean=1.5).fit(X, y > 0)
    assert (out / "run.json").exists() and "(ε 3, " in search.guarantee_.lifetime  # charged once
    with pytest.raises(ValueError, match="a search cannot be resumed"):
        SottoSearchCV(said, ["nag"], mean=1.5).fit(X, y > 0)


def test_pipeline_pickle_and_folds():
    X, y = table()
    p = make_pipeline(FunctionTransformer(np.tanh), public(epsilon=5))
    with pytest.raises(errors.ContentProtectedError, match="the ledger knows them, .* as \"table\""):  # the second fold was trained on by then
        cross_val_score(p, X, y > 0, cv=2, error_score="raise")
    assert cross_val_score(clone(p).set_params(sottoclassifier__lab=True, sottoclassifier__dataset="lab"), *(lambda t: (t[0], t[1] > 0))(table(seed=3)), cv=2).mean() > 0.6
    fitted = public().fit(X, y > 0)
    assert np.array_equal(pickle.loads(pickle.dumps(fitted)).predict(X), fitted.predict(X))


ADVICE = r"Use evaluate_private\(X, y, epsilon=\.\.\.\), .* SottoSearchCV to choose a method, .* void=True scores them all the same, which ends the guarantee forever$"


def test_scores_of_protected_rows():
    """An exact score of rows that the ledger protects is refused, in whatever order, number and type they come."""
    X, y = table()
    held, truth = table(seed=2)
    frame = pd.DataFrame(X, columns=list("abc"))
    statement = lambda: json.loads(run("ledger", "show", "table", "--json"))["dataset"]["statement"]  # noqa: E731
    c = public().fit(X, y > 0)
    before = statement()
    for rows in (slice(None), slice(None, None, -1), slice(30), slice(1), slice(200, 400)):
        with pytest.raises(errors.ContentProtectedError, match='^X: these rows are protected: .* as "table"\\. An exact score .*' + ADVICE):
            c.score(X[rows], (y > 0)[rows])
    for rows, labels in [(np.r_[X, held[:1]], np.r_[y > 0, truth[:1] > 0]), (X, (y > 0).astype(int)), (X.tolist(), (y > 0).tolist())]:
        with pytest.raises(errors.ContentProtectedError, match=ADVICE):
            c.score(rows, labels)
    assert c.score(held, truth > 0) == np.mean(c.predict(held) == (truth > 0))
    weights = np.arange(400)
    assert c.score(held, truth > 0, sample_weight=weights) == np.average(c.predict(held) == (truth > 0), weights=weights)
    with pytest.raises(errors.ContentProtectedError, match=ADVICE):
        pickle.loads(pickle.dumps(c)).score(X, y > 0)
    with pytest.raises(errors.ContentProtectedError, match=ADVICE):
        make_pipeline(FunctionTransformer(), c).score(X, y > 0)
    with pytest.raises(errors.ContentProtectedError, match=ADVICE):  # of another dataset, with names
        public(dataset="other", domain={name: (-1, 1) for name in "abc"}).fit(pd.DataFrame(held, columns=list("abc")), truth > 0).score(pd.DataFrame(held, columns=list("abc")), truth > 0)
    with pytest.raises(ValueError, match="^y: found a label that classes does not list"):
        c.score(held, [2] * 400)
    number = SottoRegressor(4, 1e-5, "add-or-remove", domain={name: (-1, 1) for name in "abc"}, target_range=(-4, 4), rows=400, dataset="numbers")
    other, target = table(seed=3)
    other = pd.DataFrame(other, columns=list("abc"))
    number.fit(other, target)
    with pytest.raises(errors.ContentProtectedError, match=ADVICE):
        number.score(other, target)
    assert number.score(frame, y + 9) < number.score(frame, y)
    assert statement() == before  # nothing is recorded, nothing has ended


def test_search_scores_are_refused():
    X, y = table()
    s = SottoSearchCV(public(epsilon=3), ["nag"], mean=1.5).fit(X, y > 0)
    with pytest.raises(errors.ContentProtectedError, match=ADVICE):
        s.score(X, y > 0)


NUMPY = [
    {"epsilon": np.float64(1)}, {"epsilon": np.float32(1)}, {"epsilon": np.int64(1)}, {"epsilon": np.array(1.0)}, {"delta": np.float32(2**-17)}, {"delta": np.float64(1e-5)},
    {"rows": np.int64(400)}, {"rows": np.uint16(400)}, {"hats": np.int8(2)}, {"domain": (np.float64(-1), np.int64(1))}, {"domain": np.array([-1.0, 1.0])},
    {"domain": np.array([[-1, 1]] * 3)}, {"domain": [{"bounds": np.array([-1, 1]), "missing": np.float64(0)}] * 3}, {"classes": np.array([False, True])},
    {"dataset": np.str_("table")}, {"adjacency": np.str_("add-or-remove")}, {"accept_delta": np.bool_(True)}, {"accept_dropped": np.bool_(False)}, {"void": np.bool_(False)},
    {"model_options": {"l2": np.float64(1e-4)}}, {"method": np.str_("sgd"), "method_options": {"steps": np.int64(9), "batch": np.uint8(64)}},
    {"class_weight": {np.bool_(True): np.float64(2)}}, {"class_weight": {True: np.int32(2)}}, {"model_options": {"threshold": {np.True_: np.float32(0.25)}}},
    {"lab": np.bool_(True), "random_state": np.int64(3)}, {"row_scaling": np.str_("project")}, {"disclosure": {"purpose": np.str_("a test")}},
]


@pytest.mark.parametrize("given", NUMPY, ids=str)
def test_parameters_may_be_of_numpy(given):
    """A NumPy scalar is the number that it holds, as in scikit-learn's own parameters."""
    def python(said):
        if isinstance(said, dict):
            return {python(key): python(value) for key, value in said.items()}
        if isinstance(said, (np.generic, np.ndarray)):
            return said.tolist()
        return type(said)(map(python, said)) if isinstance(said, (list, tuple)) else said

    X, y = table()
    c, peer = (public(**{"hats": 0, **one}).fit(X, y > 0) for one in (given, python(given)))
    mine, its = c.guarantee_, peer.guarantee_
    assert (mine.epsilon, mine.delta, mine.dataset, mine.lab, mine.assumptions) == (its.epsilon, its.delta, its.dataset, its.lab, its.assumptions)


def test_numpy_in_searches_and_evaluations():
    X, y = table()
    said = public(epsilon=np.float64(9), rows=np.int64(400))
    methods = [{"name": "sgd", "steps": np.int64(9)}, np.str_("nag")]
    s = SottoSearchCV(said, methods, mean=np.float64(2), loss_bound=np.int64(3)).fit(X, y > 0)
    figures = s.best_estimator_.evaluate_private(X, y > 0, epsilon=np.float64(1), delta=np.float64(1e-6), rows=np.int64(400), dataset=np.str_("table"))
    assert figures["epsilon"] == 1 and s.guarantee_.epsilon == 9
    r = SottoRegressor(np.int64(4), 1e-5, "add-or-remove", domain=(-1, 1), target_range=np.array([-4, 4]), rows=400, dataset="numbers").fit(*table(seed=2))
    assert r.guarantee_.epsilon == 4


def test_void_opens_protected_rows():
    X, y = table()
    held, truth = table(seed=2)
    show = lambda: json.loads(run("ledger", "show", "table", "--json"))["dataset"]  # noqa: E731
    c = public(void=True).fit(X, y > 0)
    assert c.score(held, truth > 0) > 0.8 and "void" not in show()  # they match nothing
    with pytest.warns(errors.PrivacyWarning, match="table"):
        assert c.score(X, y > 0) == np.mean(c.predict(X) == (y > 0))
    assert "score of a model" in show()["void"]["why"] and "There is no lifetime guarantee" in show()["statement"]
    X, y = table(seed=3)
    public(dataset="third").fit(X, y > 0)
    with pytest.raises(errors.ContentProtectedError, match="void=True accesses them all the same"):
        public(dataset="lab", lab=True).fit(X, y > 0)
    assert public(dataset="lab", lab=True, void=True).fit(X, y > 0).guarantee_.lab
    assert "void" in json.loads(run("ledger", "show", "third", "--json"))["dataset"]


def test_no_probabilities_of_a_margin():
    X, y = table()
    c = public(model="svm").fit(X, y > 0)
    assert not hasattr(c, "predict_proba") and c.predict(X).dtype == bool


def test_mistakes_are_value_errors():
    X, y = table()
    with pytest.raises(ValueError, match="epsilon"):
        public(epsilon=-1).fit(X, y > 0)
    with pytest.raises(ValueError, match="a label that classes does not list"):
        public().fit(X, np.where(y > 0, 2, 1))


def test_adult():
    """Adult, from the wheel to a guarantee; SOTTO_DATA names the folder of datasets."""
    schema = Path(__file__).parents[2] / "examples" / "adult" / "schema.yaml"
    names = re.findall(r"name: ([\w-]+)", schema.read_text())

    def read(file):
        path = Path(os.environ["SOTTO_DATA"]) / "adult" / file
        frame = pd.read_csv(path, names=names, skipinitialspace=True, comment="|", dtype=str, keep_default_na=False)
        return frame.drop(columns=names[-1]), frame[names[-1]].str.rstrip(".")

    c = SottoClassifier(1, 1e-5, "add-or-remove", schema=schema).fit(*read("adult.data.gz"))
    assert c.score(*read("adult.test.gz")) > 0.84  # .8474 in the median


def test_the_wheel_carries_its_command():
    if "SOTTO_COMMAND" not in os.environ:
        assert Path(command()).parent.name == "sottodp"
    assert run("--version").startswith("sotto version")


def test_the_package_has_its_own_name():
    """On PyPI the name sotto belongs to another project."""
    assert sottodp.__version__ != "0+source" and metadata.version("sottodp") == sottodp.__version__
    assert importlib.util.find_spec("sotto") is None


def test_each_kind_is_an_exception_of_its_own(tmp_path):
    """D5. TestErrorKinds in cli compares the kinds with those of the command."""
    assert len(set(errors.KINDS.values())) == len(errors.KINDS)
    for kind, found in errors.KINDS.items():
        error = _error(3, f"sotto: why\n[{kind}]\n")
        assert type(error) is found and str(error) == "why"
    assert type(_error(3, "sotto: why\n[of-a-newer-command]\n")) is errors.PrivacyError
    assert type(_error(2, "sotto: why\n")) is errors.InputError
    with pytest.raises(errors.InputError, match="no-such") as e:
        run("fit", tmp_path / "no-such.yaml")
    assert isinstance(e.value, ValueError) and isinstance(e.value, errors.SottoError)
    (tmp_path / "table.csv").write_text("no table")
    with pytest.raises(errors.DataError):
        run("schema", "check", tmp_path / "table.csv")
    (tmp_path / "ledger.db").write_text("no ledger")
    with pytest.raises(errors.NotALedgerError):
        run("ledger", "verify", "--ledger", tmp_path / "ledger.db")
    X, y = table()
    with pytest.raises(errors.DeltaError):
        public(delta=0.1).fit(X, y > 0)
    run("ledger", "budget", "table", "--epsilon", "1.5", "--delta", "1e-4", "--adjacency", "add-or-remove")
    public().fit(X, y > 0)
    with pytest.raises(errors.BudgetError):
        public().fit(X, y > 0)
    with pytest.raises(errors.ContentProtectedError):
        public().set_params(dataset="other").fit(X, y > 0)
    X, y = table(seed=2)
    assert public(delta=0.1, accept_delta=True).set_params(dataset="third").fit(X, y > 0).guarantee_.delta == 0.1
    (tmp_path / "sotto" / "ledger.db").write_bytes(b"")
    with pytest.raises(errors.LedgerWitnessError):
        public().fit(X, y > 0)


def test_dropped_rows(clinic, tmp_path):
    X, y = clinic
    X = X.copy()
    X.loc[:99, "smoker"] = "misspelt"
    schema = tmp_path / "schema.yaml"
    schema.write_text((CLINIC / "schema.yaml").read_text() + "\non_bad_row: drop\n")
    c = SottoClassifier(1, 1e-5, "add-or-remove", schema=schema)
    with pytest.raises(errors.DroppedRowsError, match="smoker"):
        c.fit(X, y)
    with pytest.warns(errors.PrivacyWarning, match="smoker"):
        c.set_params(accept_dropped=True).fit(X, y)


def test_the_same_rows_by_pipe(tmp_path, monkeypatch):
    """D5: rows may come through a pipe, as on Windows; the fit and its predictions are the same."""
    X, y = table()
    by_file = public(lab=True, random_state=1).fit(X, y > 0)
    probabilities = by_file.predict_proba(X)
    monkeypatch.setattr("sottodp._estimators.Rows", lambda: Rows(pipe=True))
    by_pipe = public(lab=True, random_state=1).fit(X, y > 0)
    assert np.array_equal(by_pipe.predict_proba(X), probabilities)


FIT = """
import os, sys, numpy as np
from sottodp import SottoClassifier
X = np.random.default_rng(1).uniform(-1, 1, (400, 3))
SottoClassifier(1, 1e-5, "add-or-remove", domain=(-1, 1), classes=[False, True], rows=400, dataset="table",
                method="sgd", method_options={"steps": int(sys.argv[2]), "batch": 64}, run_dir=sys.argv[1] or None).fit(X, X[:, 0] > 0)
"""


@pytest.mark.skipif(os.name == "nt", reason="there is no kill -9")
def test_after_kill(tmp_path):
    """D5: after kill -9 of Python the command stops, and no file holds rows."""
    out, temporary = tmp_path / "run", tmp_path / "temporary"
    temporary.mkdir()
    python = subprocess.Popen([sys.executable, "-c", FIT, out, "2000000"], env={**os.environ, "TMPDIR": str(temporary)})

    until("a step", lambda: (out / "steps.jsonl").exists() and (out / "steps.jsonl").stat().st_size > 0)
    files = [f for f in temporary.rglob("*") if f.is_file()]
    assert files and not [f for f in files if b"PAR1" in f.read_bytes()]
    python.send_signal(signal.SIGKILL)
    python.wait()
    until("the end of the run", lambda: json.loads((out / "run.json").read_text())["status"] == "interrupted")
    until("the end of the command", lambda: not list(temporary.iterdir()))


def until(what, holds):
    end = time.monotonic() + 600
    while not holds():
        assert time.monotonic() < end, f"timed out waiting for {what}"
        time.sleep(0.05)


@pytest.mark.skipif(os.name == "nt", reason="there is no kill -9")
def test_after_kill_without_a_run_directory(tmp_path):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    python = subprocess.Popen([sys.executable, "-c", FIT, "", "2000000"], env={**os.environ, "TMPDIR": str(temporary)})
    until("a step", lambda: any(f.stat().st_size > 0 for f in temporary.rglob("steps.jsonl")))
    python.send_signal(signal.SIGKILL)
    python.wait()
    until("the end of the command", lambda: not list(temporary.iterdir()))


def stopped(tmp_path, steps=400_000):
    """A run directory whose run was stopped after some of its steps."""
    out = tmp_path / "run"
    python = subprocess.Popen([sys.executable, "-c", FIT, out, str(steps)])
    until("a step", lambda: (out / "steps.jsonl").exists() and (out / "steps.jsonl").stat().st_size > 0)
    python.send_signal(signal.SIGKILL)
    python.wait()
    until("the end of the run", lambda: json.loads((out / "run.json").read_text())["status"] != "running")
    return out


@pytest.mark.skipif(os.name == "nt", reason="there is no kill -9")
def test_a_repeated_fit_goes_on(tmp_path):
    """With run_dir, the same fit on the same rows continues a run that stopped, and charges nothing more."""
    out = stopped(tmp_path)
    assert json.loads((out / "run.json").read_text())["status"] == "interrupted"
    X = np.random.default_rng(1).uniform(-1, 1, (400, 3))
    with pytest.raises(errors.InputError, match=r"the program that started this run gave it its rows, through /dev/fd/\d+, .*: repeat the same fit there, in Python with run_dir="):
        run("fit", "--resume", out)
    same = public(method="sgd", method_options={"steps": 400_000, "batch": 64}, run_dir=out)
    begun = json.loads((out / "run.json").read_text())["id"]
    with pytest.raises(ValueError, match="^X: is not the table that this run began with"):
        clone(same).fit(X[::-1], X[::-1, 0] > 0)
    with pytest.raises(ValueError, match="^run_dir: .* holds a run with another method than this spec"):
        clone(same).set_params(method_options={"steps": 9, "batch": 64}).fit(X, X[:, 0] > 0)
    with open(os.devnull) as other:  # another descriptor
        c = same.fit(X, X[:, 0] > 0)
        assert other
    assert c.guarantee_.run == begun and (c.predict(X) == (X[:, 0] > 0)).mean() > 0.8
    shown = json.loads(run("ledger", "show", "table", "--json"))["dataset"]
    assert shown["spent"]["epsilon"] == 1 and shown["runs"] == 1 and shown["open"] == 0
    run("verify", out)
    assert np.array_equal(clone(same).fit(X, X[:, 0] > 0).coef_, c.coef_)
