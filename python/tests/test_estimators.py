"""The estimators under the real scikit-learn: `bash .ci/python` runs them against the installed wheel."""

import os
import pickle
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from sotto import BudgetError, SottoClassifier, SottoRegressor, command
from sotto._command import run

CLINIC = Path(__file__).parents[2] / "examples" / "clinic"


@pytest.fixture(autouse=True)
def ledger(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))


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
    budget = {"epsilon": 1, "delta": 1e-5, "adjacency": "add-or-remove"}
    return SottoClassifier(domain=(-1, 1), classes=[False, True], rows=400, dataset="table", **{**budget, **more})


def test_schema(clinic):
    c = SottoClassifier(1, 1e-5, "add-or-remove", schema=CLINIC / "schema.yaml").fit(*clinic)
    held = pd.read_csv(CLINIC / "heldout.csv")
    held, truth = held.drop(columns="readmitted"), held["readmitted"]
    assert c.classes_.tolist() == ["no", "yes"]
    assert c.score(held, truth) > 0.8  # 0.88 to 0.91
    g = c.guarantee_
    assert (g.epsilon, g.delta, g.adjacency, g.unit, g.dataset, g.lab) == (1, 1e-5, "add-or-remove", "record", "clinic", False)
    assert "factor of 2.719" in str(g) and len(g.assumptions) > 10


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
        public().fit(X[["smoker", "ward"]], y)
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


def test_run_directory(tmp_path):
    X, y = table()
    public(run_dir=tmp_path / "run").fit(X, y > 0)
    run("verify", tmp_path / "run")
    with pytest.raises(ValueError, match="run"):
        public(run_dir=tmp_path / "run").fit(X, y > 0)


def test_regression():
    X, y = table(4000)
    r = SottoRegressor(4, 1e-5, "add-or-remove", domain=[(-1, 1)] * 3, target_range=(-4, 4), rows=4000, dataset="numbers")
    assert r.fit(X, y).score(X, y) > 0.5
    with pytest.raises(ValueError, match="domain"):
        clone(r).set_params(domain=[(-1, 1)] * 2).fit(X, y)


def test_pipeline_pickle_and_folds():
    X, y = table()
    p = make_pipeline(FunctionTransformer(np.tanh), public(epsilon=5))
    assert cross_val_score(p, X, y > 0, cv=2).mean() > 0.6
    fitted = public().fit(X, y > 0)
    assert np.array_equal(pickle.loads(pickle.dumps(fitted)).predict(X), fitted.predict(X))


def test_no_probabilities_of_a_margin():
    X, y = table()
    c = public(model="svm").fit(X, y > 0)
    assert not hasattr(c, "predict_proba") and c.predict(X).dtype == bool


def test_mistakes_are_value_errors():
    X, y = table()
    with pytest.raises(ValueError, match="epsilon"):
        public(epsilon=-1).fit(X, y > 0)
    with pytest.raises(ValueError, match="none of classes"):
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
        assert Path(command()).parent.name == "sotto"
    assert run("--version").startswith("sotto version")
