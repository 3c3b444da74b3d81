"""What people do in notebooks: names of labels, cells that run twice, paid models, arrays after frames, words of other libraries."""

import inspect
import json
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from sottodp import SottoClassifier, SottoRegressor, SottoSearchCV, _foreign, errors
from sottodp._command import run

DRAW = np.random.default_rng(3).uniform(-1, 1, (400, 2))
FRAME = pd.DataFrame(DRAW, columns=["age", "dose"])
NUMBERS = (DRAW[:, 0] > 0).astype(int)
TEXTS = np.where(NUMBERS, "yes", "no")


def classifier(**more):
    return SottoClassifier(**{"epsilon": 1, "delta": 1e-5, "adjacency": "add-or-remove", "dataset": "trial", "rows": 400,
                              "domain": {"age": (-1, 1), "dose": (-1, 1)}, "classes": ["yes", "no"], **more})


def regressor(**more):
    return SottoRegressor(1, 1e-5, "add-or-remove", dataset="trial", rows=400, domain={"age": (-1, 1), "dose": (-1, 1)}, target_range=(-1, 1), **more)


@pytest.mark.parametrize("said, y, label, names", [
    ({}, pd.Series(TEXTS, name="readmitted"), "readmitted", ["no", "yes"]),
    ({}, pd.DataFrame({"readmitted": TEXTS}), "readmitted", ["no", "yes"]),
    ({}, pl.Series("readmitted", TEXTS.tolist()), "readmitted", ["no", "yes"]),
    ({}, TEXTS, "sotto-label", ["no", "yes"]),
    ({"label": "readmitted"}, TEXTS, "readmitted", ["no", "yes"]),
    ({"label": "said"}, pd.Series(TEXTS, name="own"), "said", ["no", "yes"]),
    ({}, pd.Series(TEXTS, name="age"), "sotto-label", ["no", "yes"]),  # as a feature
    ({}, pd.Series(TEXTS, name=7), "sotto-label", ["no", "yes"]),
    ({}, pd.Series(TEXTS, name=" \n"), "sotto-label", ["no", "yes"]),
    ({"classes": [1, 0]}, NUMBERS, "sotto-label", ["0", "1"]),
    ({"classes": [10, 2]}, np.where(NUMBERS, 10, 2), "sotto-label", ["2", "10"]),
    ({"classes": [True, False]}, NUMBERS > 0, "sotto-label", ["false", "true"]),
    ({"classes": ["1", "1.0"]}, np.where(NUMBERS, "1", "1.0"), "sotto-label", ["0", "1"]),  # the same class to a schema
    ({"classes": [" yes", "yes"]}, np.where(NUMBERS, " yes", "yes"), "sotto-label", ["0", "1"]),
    ({"classes": ["", "yes"]}, np.where(NUMBERS, "", "yes"), "sotto-label", ["0", "1"]),
    ({"classes": ["NA", "yes"]}, np.where(NUMBERS, "NA", "yes"), "sotto-label", ["0", "1"]),
])
@pytest.mark.filterwarnings("ignore")
def test_names_of_label_and_classes(said, y, label, names, tmp_path):
    """The command prints them, and the disclosure says them."""
    c = classifier(run_dir=tmp_path / "run", **said).fit(FRAME, y)
    FRAME.to_csv(tmp_path / "rows.csv", index=False)
    header = run("predict", "--model", tmp_path / "run", "--data", tmp_path / "rows.csv").splitlines()[0]
    assert header == ",".join([label, *(f"P({name})" for name in names)])
    assert f"has the public classes {', '.join(names)}" in str(c.guarantee_.assumptions)
    run("disclose", tmp_path / "run")
    assert f"has the public classes {', '.join(names)}" in (tmp_path / "run" / "disclosure.json").read_text(encoding="utf-8")
    assert set(c.predict(FRAME).tolist()) <= set(np.asarray(y).ravel().tolist())
    figures = pickle.loads(pickle.dumps(c)).evaluate_private(FRAME, y, epsilon=1)
    assert [one["class"] for one in figures["classes"]] == c.classes_.tolist()


@pytest.mark.parametrize("wrong, says", [(7, "label: found 7"), ("", "label: found ''"), ("age", "X: found a column 'age', which is the label's name")])
def test_label_that_is_no_name(wrong, says):
    with pytest.raises(ValueError, match=says):
        classifier(label=wrong).fit(FRAME, TEXTS)


def test_a_cell_that_runs_twice(tmp_path):
    """From the second fit on, a warning has the total; a budget, a finished run_dir and the lab have none."""
    def said(estimator, y=TEXTS, X=FRAME):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            estimator.fit(X, y)
        return [str(w.message) for w in found if issubclass(w.category, errors.PrivacyWarning)]

    kept = classifier(run_dir=tmp_path / "run")
    assert said(kept) == []
    assert said(kept) == [] and json.loads(run("ledger", "show", "trial", "--json"))["dataset"]["runs"] == 1
    assert [text.partition(". A fit")[0] for text in said(classifier())] == [
        "this was run 2 on the dataset 'trial', which has no lifetime budget: together its runs have ε = 2, δ = 0.00002"]
    assert any("run 3" in text for text in said(SottoSearchCV(classifier(), ["sgd"], mean=2))) and any("run 4" in text for text in said(regressor(), DRAW[:, 0]))
    assert not [text for text in said(SottoClassifier(lab=True, random_state=1, domain={"age": (-1, 1), "dose": (-1, 1)}), X=FRAME / 3) if "this was run" in text]
    run("ledger", "budget", "trial", "--epsilon", 100, "--delta", 1e-2, "--adjacency", "add-or-remove")
    assert said(classifier()) == []
    noisy = said(classifier(epsilon=0.005))  # noise decides
    assert len(noisy) == 1 and "a constant may predict better; choose ε ≥ " in noisy[0]


@pytest.mark.parametrize("classes, found, numbered", [
    (["NA", "x"], [0, 1], True), (["a", "a "], [0, 1], True), (["1", "1.0"], [0, 1], True),  # a table cannot tell them apart, or from a missing label
    (["0", "1"], [0, 1], False), (["01", "2"], ["01", "2"], False), ([0, 1], [0, 1], False),
])
def test_load_with_classes(classes, found, numbered, tmp_path):
    y = np.where(NUMBERS, *classes) if isinstance(classes[0], str) else NUMBERS
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        c = classifier(classes=classes, run_dir=tmp_path / "run").fit(FRAME, y)
    assert any("call them 0, 1, in this order" in str(w.message) for w in said) == numbered
    assert SottoClassifier.load(tmp_path / "run").classes_.tolist() == found
    paid = SottoClassifier.load(tmp_path / "run", classes=classes[::-1])
    assert paid.classes_.tolist() == c.classes_.tolist() and paid.predict(FRAME).tolist() == c.predict(FRAME).tolist()


@pytest.mark.filterwarnings("ignore")
def test_load(tmp_path):
    """A paid model comes back, for frames and arrays, of Python and of the command, and is not charged."""
    for name, c, X, y in (
        ("frame", classifier(), FRAME, TEXTS), ("numbers", classifier(classes=[1, 0]), FRAME, NUMBERS), ("truths", classifier(classes=[True, False]), FRAME, NUMBERS > 0),
        ("array", classifier(domain=(-1, 1)), DRAW, TEXTS), ("regression", regressor(), FRAME, DRAW[:, 0]),
        ("levels", classifier(domain={"age": {"levels": ["a", "b"], "ordered": True, "missing": "a"}, "dose": [False, True]}),
         pd.DataFrame({"age": ["a", "b"] * 200, "dose": [True, False] * 200}), TEXTS),
        ("dates", classifier(domain={"age": {"bounds": ("2020-01-01", "2021-06-01"), "cycles": ["week"]}, "dose": {"dimension": 4}}),
         pd.DataFrame({"age": pd.to_datetime(["2020-05-01", "2021-01-01"] * 200), "dose": ["one two", "three"] * 200}), TEXTS),
    ):
        c.set_params(run_dir=tmp_path / name, dataset=name, ledger=tmp_path / f"{name}.db").fit(X, y)
        paid = type(c).load(tmp_path / name)
        assert paid.predict(X).tolist() == c.predict(X).tolist() and paid.guarantee_ == c.guarantee_
        if hasattr(c, "classes_"):
            assert paid.classes_.tolist() == c.classes_.tolist() and (paid.predict_proba(X) == c.predict_proba(X)).all()
        assert json.loads(run("ledger", "show", name, "--json", "--ledger", tmp_path / f"{name}.db"))["dataset"]["runs"] == 1
        clone(paid).fit(X, y)  # its parameters are those of a fit
        assert json.loads(run("ledger", "show", name, "--json", "--ledger", tmp_path / f"{name}.db"))["dataset"]["runs"] == 2
    for wrong, says in ((lambda: SottoRegressor.load(tmp_path / "frame"), "holds a classifier; use the other class"),
                        (lambda: SottoClassifier.load(tmp_path / "regression"), "holds a regression; use the other class"),
                        (lambda: SottoClassifier.load(tmp_path / "nothing"), "holds no finished run")):
        with pytest.raises(ValueError, match=says):
            wrong()
    with pytest.raises(ValueError, match="classes: lists 'maybe', 'yes', and the model's are 'no', 'yes'; list the labels of the fit"):
        SottoClassifier.load(tmp_path / "frame", classes=["yes", "maybe"])
    with pytest.raises(ValueError, match="classes: a regression has none"):
        SottoRegressor.load(tmp_path / "regression", classes=[0, 1])
    loaded = SottoClassifier.load(tmp_path / "frame", ledger=tmp_path / "elsewhere.db")
    assert loaded.guarantee_.lifetime == "" and len(loaded.predict(FRAME)) == 400


@pytest.mark.filterwarnings("ignore::sottodp.errors.PrivacyWarning")
def test_arrays_after_a_frame():
    c, r = classifier().fit(FRAME, TEXTS), regressor().fit(FRAME, DRAW[:, 0])
    mixed = classifier(domain={"age": (-1, 1), "dose": ["a", "b"]}).fit(FRAME.assign(dose=["a", "b"] * 200), TEXTS)
    for model, frame in ((c, FRAME), (r, FRAME), (mixed, FRAME.assign(dose=["a", "b"] * 200))):
        for rows in (frame.to_numpy(), frame.to_numpy().tolist()):
            with pytest.warns(UserWarning, match="X does not have valid feature names, but Sotto"):
                assert model.predict(rows).tolist() == model.predict(frame).tolist()
        with pytest.raises(ValueError, match="X has 1 features, but Sotto.* is expecting 2"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.predict(frame.to_numpy()[:, :1])
        with pytest.raises(ValueError, match="found 1 dimensions"):
            model.predict(frame.to_numpy()[0])
    with pytest.raises(ValueError, match="found no column names"):
        classifier().fit(DRAW, TEXTS)


@pytest.mark.parametrize("cls", [SottoClassifier, SottoRegressor])
@pytest.mark.parametrize("name", [*_foreign.INSTEAD, "no_such"])
def test_words_of_other_libraries(cls, name):
    own = inspect.signature(cls).parameters
    assert "epsilon" in own and "arguments" not in own and set(own) == set(inspect.signature(cls.__init__).parameters) - {"self"}
    if name in own:
        return
    with pytest.raises(TypeError, match=f"^{name}: unknown parameter of {cls.__name__}; (write|leave it out|choose from) ?") as found:
        cls(**{name: 1})
    named = [word for word in ("domain", "target_range", "epsilon", "method_options", "model_options", "adjacency", "dataset") if word in str(found.value)]
    assert name != "bounds" or named == ["domain"]
    assert name not in ("data_norm", "bounds_X") or "domain" in named


@pytest.mark.filterwarnings("ignore::sottodp.errors.PrivacyWarning")
def test_a_search_beyond_the_budget():
    """The error says what a search needs, and error_score="raise" lets it through."""
    run("ledger", "budget", "trial", "--epsilon", 3, "--delta", 1e-2, "--adjacency", "add-or-remove")
    search = GridSearchCV(classifier(void=True), {"hats": [0, 2]}, cv=4, scoring="accuracy", error_score="raise")
    with pytest.raises(errors.BudgetError, match=r"GridSearchCV needs \(candidates × folds \+ 1\) × 1\. .*error_score=\"raise\" stops it"):
        search.fit(FRAME, TEXTS)
