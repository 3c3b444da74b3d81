"""scikit-learn's contract of labels: classes_ sorted, predict in the type of y, and columns of probabilities in the order of classes_, for
every type of label, every way of giving classes and every estimator, as scikit-learn's own LogisticRegression has them."""

import json
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from test_clusters import Threads

import sottodp.dask
import sottodp.spark
from sottodp import SottoClassifier, SottoRegressor, SottoSearchCV, _cluster, errors
from sottodp._command import run

ROWS = 180
DRAW = np.random.default_rng(5).uniform(0, 1, ROWS)
X = pd.DataFrame({"a": DRAW})

TEXTS, NUMBERS, TRUTHS = ["10", "2", "b"], [-1, 2, 10], [False, True]  # texts and numbers that sort differently, all in their own order


def of(values):
    """A label of each row, in Python's own types: the larger, the later in values."""
    return [values[int(v * len(values))] for v in DRAW]


# Labels as y, and the values that their classes have in Python.
LABELS = {
    "list of texts": (of(TEXTS), TEXTS),
    "list of np.str_": ([np.str_(v) for v in of(TEXTS)], TEXTS),
    "NumPy texts": (np.array(of(TEXTS)), TEXTS),
    "NumPy wide texts": (np.array(of(TEXTS), dtype="U20"), TEXTS),
    "NumPy objects": (np.array(of(TEXTS), dtype=object), TEXTS),
    "NumPy objects of np.str_": (np.array([np.str_(v) for v in of(TEXTS)], dtype=object), TEXTS),
    "pandas str": (pd.Series(of(TEXTS)), TEXTS),
    "pandas object": (pd.Series(of(TEXTS), dtype=object), TEXTS),
    "pandas string": (pd.Series(of(TEXTS), dtype="string"), TEXTS),
    "pandas Arrow texts": (pd.Series(of(TEXTS), dtype=pd.ArrowDtype(pyarrow.string())), TEXTS),
    "pandas category": (pd.Series(of(TEXTS), dtype="category"), TEXTS),
    "pandas ordered category": (pd.Series(pd.Categorical(of(TEXTS), categories=TEXTS[::-1], ordered=True)), TEXTS),
    "Polars String": (pl.Series(of(TEXTS)), TEXTS),
    "Polars Categorical": (pl.Series(of(TEXTS), dtype=pl.Categorical), TEXTS),
    "Polars Enum": (pl.Series(of(TEXTS), dtype=pl.Enum(TEXTS[::-1])), TEXTS),
    "list of whole numbers": (of(NUMBERS), NUMBERS),
    "int64": (np.array(of(NUMBERS)), NUMBERS),
    "int8": (np.array(of(NUMBERS), dtype=np.int8), NUMBERS),
    "uint8": (np.array(of([1, 2, 10]), dtype=np.uint8), [1, 2, 10]),
    "two numbers": (np.array(of([0, 1])), [0, 1]),
    "float64": (np.array(of(NUMBERS), dtype=float), NUMBERS),
    "float32": (np.array(of(NUMBERS), dtype=np.float32), NUMBERS),
    "pandas Int64": (pd.Series(of(NUMBERS), dtype="Int64"), NUMBERS),
    "pandas category of numbers": (pd.Series(of(NUMBERS)).astype("category"), NUMBERS),
    "Polars Int16": (pl.Series(of(NUMBERS), dtype=pl.Int16), NUMBERS),
    "bool": (np.array(of(TRUTHS)), TRUTHS),
    "list of truth values": (of(TRUTHS), TRUTHS),
    "pandas bool": (pd.Series(of(TRUTHS)), TRUTHS),
    "pandas boolean": (pd.Series(of(TRUTHS), dtype="boolean"), TRUTHS),
    "Polars Boolean": (pl.Series(of(TRUTHS)), TRUTHS),
}

# What the parameters say of the classes.
WAYS = {
    "taken from y": lambda values, schema: {"lab": True},
    "sorted": lambda values, schema: {"classes": values},
    "reversed": lambda values, schema: {"classes": values[::-1]},
    "rotated NumPy array": lambda values, schema: {"classes": np.roll(np.array(values), 1)},
    "tuple of NumPy scalars": lambda values, schema: {"classes": tuple(np.array(values[::-1]))},
    "schema": lambda values, schema: {"schema": schema(values)},
    "schema, reversed": lambda values, schema: {"schema": schema(values[::-1])},
    "schema and classes": lambda values, schema: {"schema": schema(values[1:] + values[:1]), "classes": values},
}

ESTIMATORS = {
    "fit": lambda model: model,
    "pipeline": make_pipeline,
    "search": lambda model: SottoSearchCV(model, ["nag"], mean=1.5),
    "calibrated": lambda model: CalibratedClassifierCV(FrozenEstimator(model.fit(X, model.y))),
    "calibrated in folds": lambda model: CalibratedClassifierCV(model, cv=2),
}
FEW = ["reversed", "schema, reversed"]
CELLS = [(label, way, "fit") for label in LABELS for way in WAYS] + [
    (label, way, one) for label in ("NumPy texts", "pandas category", "int8", "float64", "bool") for way in FEW for one in ESTIMATORS if one != "fit"]


@pytest.fixture
def schema(tmp_path):
    def write(values):
        texts = [str(v) for v in values]
        (tmp_path / "schema.yaml").write_text(json.dumps({
            "dataset": "labels", "rows": ROWS, "columns": [{"name": "a", "type": "numeric", "min": 0, "max": 1}, {"name": "y", "type": "label", "classes": texts}],
        }))
        return tmp_path / "schema.yaml"

    return write


def estimator(**said):
    common = {"epsilon": 400, "delta": 1e-5, "adjacency": "add-or-remove", **said}
    if "schema" not in said:
        common |= {"domain": {"a": (0, 1)}, "rows": ROWS, "dataset": "labels", "hats": 0}
    return SottoClassifier(**common)


def same(model, y, scorers=("accuracy", "roc_auc_ovr", "neg_log_loss")):
    """model is as LogisticRegression, fitted to the same labels."""
    peer = LogisticRegression(C=1e4).fit(X, y)
    assert model.classes_.tolist() == peer.classes_.tolist()
    assert model.classes_.dtype.kind == peer.classes_.dtype.kind
    decided, p = model.predict(X), model.predict_proba(X)
    assert decided.dtype == peer.predict(X).dtype == model.classes_.dtype
    assert p.shape == (ROWS, len(peer.classes_)) and (model.classes_[p.argmax(1)] == decided).mean() > 0.97
    assert (decided == peer.predict(X)).mean() > 0.85
    for name in scorers:
        mine, its = get_scorer(name)(model, X, y), get_scorer(name)(peer, X, y)
        assert mine > its - (1 if name == "neg_log_loss" else 0.15), name


@pytest.mark.parametrize(("label", "way", "one"), CELLS, ids=[f"{label}-{way}-{one}" for label, way, one in CELLS])
def test_matrix(label, way, one, schema):
    y, values = LABELS[label]
    model = estimator(**WAYS[way](values, schema))
    model.y = y
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = ESTIMATORS[one](model)
        fitted.fit(X, y)
    same(fitted, y, **{} if way in FEW else {"scorers": ()})
    if one != "fit":
        return
    z = fitted.decision_function(X)
    assert ((z > 0) == (fitted.predict(X) == fitted.classes_[1])).all() if len(values) == 2 else (fitted.classes_[z.argmax(1)] == fitted.predict(X)).all()
    assert fitted.coef_.shape[0] == (1 if len(values) == 2 else 3)
    assert fitted.coef_[-1, 0] > 0 > fitted.coef_[0, 0] or len(values) == 2 and fitted.coef_[0, 0] > 0  # the larger a, the later the class
    if len(values) == 2:
        assert next(line for line in fitted.effects() if line["kind"] == "slope")["effect"] > 0
    again = pickle.loads(pickle.dumps(fitted))
    assert again.predict(X).tolist() == fitted.predict(X).tolist() and again.predict(X).dtype == fitted.predict(X).dtype
    assert not hasattr(clone(fitted), "classes_")
    if way in FEW:
        assert [figure["class"] for figure in fitted.evaluate_private(X, y, epsilon=50, rows=ROWS)["classes"]] == values


CLUSTER = {
    "texts": (pyarrow.array(of(TEXTS)), TEXTS, object), "int8": (pyarrow.array(of(NUMBERS), pyarrow.int8()), NUMBERS, "int8"),
    "int64": (pyarrow.array(of(NUMBERS)), NUMBERS, "int64"), "double": (pyarrow.array(of(NUMBERS), pyarrow.float64()), NUMBERS, "float64"),
    "truth values": (pyarrow.array(of(TRUTHS)), TRUTHS, "bool"),
    "dictionary": (pyarrow.array(of(TEXTS)).dictionary_encode(), TEXTS, object),
}


@pytest.mark.parametrize("way", ["reversed", "rotated NumPy array", "schema, reversed"])
@pytest.mark.parametrize("label", CLUSTER)
@pytest.mark.parametrize("library", [sottodp.spark, sottodp.dask], ids=["spark", "dask"])
def test_clusters(library, label, way, schema):
    y, values, kind = CLUSTER[label]
    said = WAYS[way](values, schema)
    model = library.SottoClassifier(400, 1e-5, "add-or-remove", label="y", **said, **({} if "schema" in said else {"domain": {"a": (0, 1)}, "rows": ROWS, "dataset": "labels"}))
    batches = pyarrow.table({"a": DRAW, "y": y}).to_batches(50)
    _cluster.fit(model, ["a"], "y", ["a", "y"], 2, ("127.0.0.1:0", "127.0.0.1"), lambda work: Threads(work, [batches[:2], batches[2:]]), lambda name: np.dtype(kind))
    assert model.classes_.dtype == kind and model.classes_.tolist() == values and _cluster.value_type(model) == kind
    same(model, np.array(of(values), dtype=kind))
    decided, p = _cluster.predictions(model, X)
    np.testing.assert_array_equal(decided, model.predict(X))
    np.testing.assert_array_equal(p, model.predict_proba(X))
    assert decided.dtype == model.predict(X).dtype
    none, p = _cluster.predictions(model, X[:0])
    assert none.shape == (0,) and none.dtype == decided.dtype and p.shape == (0, len(values))


def test_numbered_labels():
    """cross_val_predict numbers the labels before it asks for probabilities, in their sorted order."""
    y = np.array(of(TEXTS))
    with pytest.raises(ValueError, match=r"^y: its labels are numbers, and classes lists texts; .* cross_val_predict .* need the numbers as classes: \[0, 1, \.\.\.\]$"):
        cross_val_predict(estimator(classes=TEXTS[::-1], lab=True), X, y, cv=2, method="predict_proba")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        p = cross_val_predict(estimator(classes=[2, 0, 1], lab=True), X, y, cv=2, method="predict_proba")
    assert (np.unique(y)[p.argmax(1)] == y).mean() > 0.7
    assert (cross_val_predict(estimator(classes=TEXTS[::-1]), X, y, cv=2) == y).mean() > 0.7


NONE = [None, "b"]
NAN = float("nan")
REFUSED = [
    (["1", "0"], of([0, 1]), "y: its labels are numbers, and classes lists texts; give both the same type"),
    ([1, 0], of(["0", "1"]), "y: its labels are texts, and classes lists numbers; give both the same type"),
    (["True", "False"], of(TRUTHS), "y: its labels are truth values, and classes lists texts"),
    ([True, False], of(["False", "True"]), "y: its labels are texts, and classes lists truth values"),
    ([1, "a"], of(["1", "a"]), "classes: mixes numbers and texts; give all classes the type of y"),
    ([True, "True"], of(TRUTHS), "classes: mixes texts and truth values"),
    ([True, 2], of([1, 2]), "classes: mixes numbers and truth values"),
    ([1, 1.0], of([1, 2]), "classes: found [1, 1.0]; give a list of two labels or more, each of them once"),
    ([0, NAN], of([0, 1]), "classes: nan cannot be a label; list texts, whole numbers or truth values"),
    ([0, 0.5], of([0, 1]), "classes: 0.5 cannot be a label"),
    ([None, "a"], of(["a", "b"]), "classes: None cannot be a label"),
    ([b"a", b"b"], of(["a", "b"]), "classes: b'a' cannot be a label"),
    ([[1], [2]], of([1, 2]), "classes: found [[1], [2]]; give a list"),
    ("ab", of(["a", "b"]), "classes: found 'ab'; give a list"),
    (["a"], of(["a", "b"]), "classes: found ['a']; give a list of two"),
    ([0, 300], np.array(of([0, 1]), dtype=np.int8), "classes: the class 300 cannot be a label of y, whose type is int8"),
    ([0, 2], of(TRUTHS), "classes: the class 2 cannot be a label of y, whose type is bool"),
    ([-1, 1], np.array(of([0, 1]), dtype=np.uint8), "classes: the class -1 cannot be a label of y, whose type is uint8"),
    ([0, 2**70], of([0, 1]), "classes: the class 1180591620717411303424 cannot be a label of y"),
    (["a", "b"], of(["a", 1]), "y: mixes texts with other labels; give all labels the same type"),
    (["True", "False"], of([True, "True"]), "y: mixes texts with other labels"),
    (["a", "b"], np.array(of(["a", 1]), dtype=object), "y: has labels of several types, or objects that are no texts"),
    ([1, 0], np.array(of([0, 1]), dtype=object), "y: has labels of several types, or objects that are no texts; give all labels one type, as y.astype(int)"),
    (["a", "b"], np.array(of(["a", None]), dtype=object), "y: a label is missing; leave out the rows without a label"),
    (["a", "b"], pd.Series(of(["a", pd.NA]), dtype="string"), "y: a label is missing"),
    ([0, 1], np.array(of([0, NAN])), "Input y contains NaN"),
    ([0, 1], np.array(of([0.25, 0.5])), "Unknown label type: continuous"),
    (["a", "b"], np.array(of([b"a", b"b"])), "y: has labels of the type |S1; give texts, whole numbers or truth values"),
    ([0, 1], np.array(of([0j, 1j])), "y: has complex numbers as labels; give texts"),
    ([0, 1], np.array(of(["2020-01-01", "2021-01-01"]), dtype="datetime64[D]"), "y: has labels of the type datetime64[D]; give texts"),
    (["a", "b"], of(["a", "secret"]), "y: found a label that classes does not list"),
]


@pytest.mark.parametrize(("classes", "y", "message"), REFUSED, ids=[f"{i}-{message[:60]}" for i, (*_, message) in enumerate(REFUSED)])
def test_refusals(classes, y, message, tmp_path):
    """What cannot be right is refused before anything is charged, with no label of y."""
    with pytest.raises(ValueError) as found:
        estimator(classes=classes).fit(X, y)
    assert str(found.value).startswith(message) and "secret" not in str(found.value)
    assert not (tmp_path / "sotto" / "ledger.db").exists()


@pytest.mark.parametrize(("listed", "y", "message"), [
    (["no", "yes"], of([0, 1]), "y: its labels are numbers, and 'no', a class of the schema, is none; give y the labels that the schema lists, as texts"),
    (["no", "yes"], of(TRUTHS), "y: its labels are truth values, and 'no', a class of the schema, is none"),
    (["1", "300"], np.array(of([1, 2]), dtype=np.int8), "schema: the class 300 cannot be a label of y, whose type is int8"),
    (["true", "1"], of(TRUTHS), "y: its labels are truth values, and two classes of the schema are the same one"),
])
def test_refusals_of_a_schema(listed, y, message, schema, tmp_path):
    with pytest.raises(ValueError) as found:
        estimator(schema=schema(listed)).fit(X, y)
    assert str(found.value).startswith(message)
    assert not (tmp_path / "sotto" / "ledger.db").exists()


def test_schema_beside_classes(schema):
    with pytest.raises(ValueError, match="^classes: lists other labels than the schema, whose classes are 'a', 'b'; leave classes out$"):
        estimator(schema=schema(["a", "b"]), classes=["a", "c"]).fit(X, of(["a", "b"]))


def test_weights_and_thresholds_by_label(schema):
    """A dict by labels may say them as y has them; of a schema also as it lists them."""
    y = (DRAW + np.random.default_rng(6).normal(0, 0.3, ROWS) > 0.5).astype(int)
    plain = estimator(schema=schema([1, 0]), lab=True, random_state=1)
    by_label, by_name = (clone(plain).set_params(class_weight={one: 50}).fit(X, y).predict(X) for one in (1, "1"))
    assert by_label.sum() == by_name.sum() > clone(plain).fit(X, y).predict(X).sum()
    assert clone(plain).set_params(model_options={"threshold": {1: 0.999999}}).fit(X, y).predict(X).sum() == 0
    with pytest.raises(ValueError, match="^class_weight: names a class twice"):
        clone(plain).set_params(class_weight={1: 5, "1": 5}).fit(X, y)


def test_rows_that_a_schema_drops(schema, tmp_path):
    y = of(["no", "yes"])
    path = schema(["yes", "no"])
    path.write_text(path.read_text()[:-1] + ', "on_bad_row": "drop"}')
    some = np.array([None] * 2 + ["other"] + y[3:], dtype=object)
    with pytest.warns(errors.PrivacyWarning, match="3 "):
        model = estimator(schema=path, accept_dropped=True).fit(X, some)
    assert model.classes_.tolist() == ["no", "yes"]
    bad = X.assign(a=[np.nan] + DRAW[1:].tolist())
    assert model.predict(bad)[0] == "" and np.isnan(model.predict_proba(bad)[0]).all() and not np.isnan(model.predict_proba(bad)[1:]).any()
    path = schema([1, 0])
    path.write_text(path.read_text()[:-1] + ', "on_bad_row": "drop"}')
    with pytest.raises(ValueError, match="^X: the schema drops some of the rows, which have no class then; mend them, or leave them out$"):
        estimator(schema=path).fit(X, of([0, 1])).predict(bad)


@pytest.mark.parametrize("listed", [["no", "yes"], ["yes", "no"], ["low", "high", "mid"]])
def test_pickles_of_earlier_versions(listed):
    """They keep the classes in the order in which they were listed, which was the model's."""
    y = np.array(of(sorted(listed)))
    model = estimator(classes=listed).fit(X, y)
    old = dict(model.__dict__)
    document = json.loads(old["_model_file"])
    places = [sorted(listed).index(one) for one in listed]  # of the earlier version's classes in this model
    if len(listed) == 2 and places != [0, 1]:
        document["w"], document["offset"] = [-w for w in document["w"]], -document.get("offset", 0)
    elif len(listed) == 3:
        dim = document["dim"]
        document["w"] = np.asarray(document["w"]).reshape(3, dim)[places].ravel().tolist()
    old.update(classes_=np.asarray(listed), _model_file=json.dumps(document))
    for name in ("_class_names", "void"):
        old.pop(name, None)
    loaded = SottoClassifier.__new__(SottoClassifier)
    loaded.__setstate__(old)
    assert loaded.classes_.tolist() == sorted(listed)
    np.testing.assert_allclose(loaded.predict_proba(X), model.predict_proba(X), rtol=1e-6)
    np.testing.assert_allclose(loaded.coef_, model.coef_)
    assert loaded.predict(X).tolist() == model.predict(X).tolist()
    assert set(clone(loaded).get_params()) == set(clone(model).get_params())
    repr(loaded)


@pytest.mark.parametrize("frame", [True, False])
def test_no_rows(frame):
    rows = X if frame else X.to_numpy()
    said = {"classes": ["b", "a"]} if frame else {"classes": ["b", "a"], "domain": (0, 1)}
    model = estimator(**said) if frame else SottoClassifier(400, 1e-5, "add-or-remove", rows=ROWS, dataset="labels", **said)
    y = np.array(of(["a", "b"]))
    model.fit(rows, y)
    assert model.predict(rows[:0]).shape == (0,) and model.predict(rows[:0]).dtype == y.dtype
    assert model.predict_proba(rows[:0]).shape == (0, 2) and model.decision_function(rows[:0]).shape == (0,)
    with pytest.raises(ValueError, match="has no rows|0 sample"):
        clone(model).fit(rows[:0], y[:0])
    number = SottoRegressor(lab=True, target_range=(0, 1), domain={"a": (0, 1)} if frame else (0, 1)).fit(rows, DRAW)
    assert number.predict(rows[:0]).shape == (0,)
    with pytest.raises(ValueError, match="has no rows|0 sample"):
        clone(number).fit(rows[:0], DRAW[:0])
    assert "(ε 400, " in json.loads(run("ledger", "show", "labels", "--json"))["dataset"]["statement"]
