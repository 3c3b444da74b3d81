"""Columns of pandas and Polars, with all their kinds of missing values, under the rules of domain."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sottodp import SottoClassifier, _domain

ROWS = 240
GAP = np.arange(ROWS) % 8 == 3
DRAW = np.random.default_rng(1).uniform(-1, 1, ROWS)
Y = DRAW > 0
NUMBERS = {"bounds": (-100, 100), "missing": 0}
LEVELS = ["a", "b"]
TEXTS = [None if gap else LEVELS[int(y)] for gap, y in zip(GAP, Y)]
TRUTHS = [None if gap else bool(y) for gap, y in zip(GAP, Y)]
FLOATS = [None if gap else float(v) for gap, v in zip(GAP, DRAW * 100)]
INTS = [None if gap else int(v) for gap, v in zip(GAP, DRAW * 100)]
CODES = [None if gap else 1 + int(y) for gap, y in zip(GAP, Y)]

TEXT = {"levels": LEVELS, "missing": "zero"}
TRUTH = {"levels": [False, True], "missing": "zero"}
CODE = {"levels": [1, 2], "missing": 1}

DAYS = [None if gap else pd.Timestamp("2024-01-01") + pd.Timedelta(days=int(200 + v * 190)) for gap, v in zip(GAP, DRAW)]
DATE = {"bounds": ("2024-01-01", "2024-12-31"), "missing": "2024-07-01", "cycles": ["week"]}
WORDS = [None if gap else "fever, cough" if y else "no complaint" for gap, y in zip(GAP, Y)]
ORDER = pd.CategoricalDtype(LEVELS, ordered=True)

COLUMNS = {
    "pandas datetime": (pd.Series(DAYS, dtype="datetime64[ns]"), DATE),
    "pandas datetime of a zone": (pd.Series(DAYS, dtype="datetime64[ns]").dt.tz_localize("UTC"), DATE),
    "pandas object of dates": (pd.Series([None if d is None else d.date() for d in DAYS], dtype="object"), DATE),
    "pandas text of dates": (pd.Series([None if d is None else f"{d:%d.%m.%Y}" for d in DAYS], dtype="object"), {**DATE, "layout": "%d.%m.%Y"}),
    "pandas ordered category": (pd.Series(TEXTS, dtype=ORDER), {"levels": ORDER, "missing": "zero"}),
    "pandas free text": (pd.Series(WORDS, dtype="object"), {"dimension": 16, "missing": "zero"}),
    "Polars Date": (pl.Series([None if d is None else d.date() for d in DAYS], dtype=pl.Date), DATE),
    "Polars Datetime": (pl.Series([None if d is None else d.to_pydatetime() for d in DAYS], dtype=pl.Datetime), DATE),
    "Polars free text": (pl.Series(WORDS), {"dimension": 16, "missing": "zero"}),
    "pandas float": (pd.Series(FLOATS, dtype="float64"), NUMBERS),
    "pandas Float64": (pd.Series(FLOATS, dtype="Float64"), NUMBERS),
    "pandas Int64": (pd.Series(INTS, dtype="Int64"), NUMBERS),
    "pandas object of numbers": (pd.Series(FLOATS, dtype="object"), NUMBERS),
    "pandas Arrow": (pd.Series(FLOATS, dtype=pd.ArrowDtype(pa.float64())), NUMBERS),
    "pandas text": (pd.Series(TEXTS, dtype="object"), TEXT),
    "pandas string": (pd.Series(TEXTS, dtype="string"), TEXT),
    "pandas category": (pd.Series(TEXTS, dtype=pd.CategoricalDtype(LEVELS)), {"levels": pd.CategoricalDtype(LEVELS), "missing": "a"}),
    "pandas object of truths": (pd.Series(TRUTHS, dtype="object"), TRUTH),
    "pandas boolean": (pd.Series(TRUTHS, dtype="boolean"), TRUTH),
    "pandas floats of codes": (pd.Series(CODES, dtype="float64"), CODE),  # a gap makes whole numbers floats
    "pandas Int64 of codes": (pd.Series(CODES, dtype="Int64"), CODE),
    "pandas category of codes": (pd.Series(CODES, dtype="Int64").astype("category"), {"levels": pd.CategoricalDtype([1, 2]), "missing": 2}),
    "Polars Float64": (pl.Series(FLOATS), NUMBERS),
    "Polars Float32 with NaN and null": (pl.Series([float("nan") if i == 3 else v for i, v in enumerate(FLOATS)], dtype=pl.Float32), NUMBERS),
    "Polars Int8": (pl.Series(INTS, dtype=pl.Int8), NUMBERS),
    "Polars UInt64": (pl.Series([None if v is None else v + 100 for v in INTS], dtype=pl.UInt64), {"bounds": (0, 200), "missing": 0}),
    "Polars Decimal": (pl.Series(INTS, dtype=pl.Int64).cast(pl.Decimal(10, 2)), NUMBERS),
    "Polars String": (pl.Series(TEXTS), TEXT),
    "Polars Categorical": (pl.Series(TEXTS, dtype=pl.Categorical), TEXT),
    "Polars Enum": (pl.Series(TEXTS, dtype=pl.Enum(LEVELS)), {"levels": pl.Enum(LEVELS), "missing": "b"}),
    "Polars Boolean": (pl.Series(TRUTHS), TRUTH),
    "Polars Int64 of codes": (pl.Series(CODES), CODE),
    "Polars all null": (pl.Series([None] * ROWS, dtype=pl.Null), NUMBERS),
}


def estimator(domain, dataset):
    return SottoClassifier(1, 1e-5, "add-or-remove", rows=ROWS, dataset=dataset, classes=[False, True], domain=domain, hats=0)


@pytest.mark.parametrize("name", COLUMNS)
def test_cells(name):
    """What the command is given: nothing where a cell is missing, else the number or the level's text."""
    column, said = COLUMNS[name]
    line = _domain.columns({"c": said}, ["c"], [column])[0]
    found = _domain.cells("c", column, line).to_pylist()
    if name == "Polars all null":
        assert found == [None] * ROWS
        return
    assert [cell is None or cell != cell for cell in found] == GAP.tolist()
    present = [cell for cell in found if cell is not None and cell == cell]
    if line["type"] == "text":
        assert present == [cell for cell in WORDS if cell is not None]
    elif line["type"] == "date":
        order = [datetime.datetime.strptime(day, "%d.%m.%Y").isoformat() if "layout" in said else str(day) for day in present]
        by_draw = [order[i] for i in np.argsort(DRAW[~GAP])]
        assert by_draw == sorted(by_draw) and len(set(order)) > 50
    elif line["type"] in ("categorical", "ordinal"):
        assert set(present) == set(line["levels"]) and [cell == line["levels"][1] for cell in present] == Y[~GAP].tolist()
    else:
        assert (np.diff(np.asarray(present, dtype=float)[np.argsort(DRAW[~GAP])]) >= 0).all() and len(set(present)) > 50


@pytest.mark.parametrize("library", ["pandas", "Polars"])
def test_missing_values_follow_the_rule(library):
    columns = {name: column for name, column in COLUMNS.items() if name.startswith(library)}
    X = (pl if library == "Polars" else pd).DataFrame({name: column for name, (column, _) in columns.items()})
    domain = {name: said for name, (_, said) in columns.items()}
    p = estimator(domain, "gaps").fit(X, Y).predict_proba(X)[:, 1]
    assert len(np.unique(p[GAP])) == 1 and p[Y & ~GAP].min() > p[~Y & ~GAP].max()  # the rows with gaps are all the same
    for name in columns:
        without = {key: value for key, value in domain[name].items() if key != "missing"}
        with pytest.raises(ValueError, match=rf"^X: row (1|4): column {name}: found a missing value; expected .* in domain"):
            estimator({**domain, name: without}, "gaps").fit(X, Y)


def test_levels_by_type():
    """A type that lists its levels says them; one that takes them from the rows does not."""
    for said in (pd.CategoricalDtype(LEVELS), pl.Enum(LEVELS), LEVELS, np.array(LEVELS), {"levels": np.array(LEVELS)}):
        c = estimator({"c": said}, "levels").fit(pd.DataFrame({"c": [LEVELS[int(y)] for y in Y]}), Y)
        assert list(c.coef_names_) == ["c=a", "c=b", "(intercept)"]
    c = estimator({"c": [False, True]}, "truths").fit(pd.DataFrame({"c": Y}), Y)
    assert list(c.coef_names_) == ["c=False", "c=True", "(intercept)"]  # two levels, not a range
    for said in (ORDER, {"levels": LEVELS, "ordered": True}):
        c = estimator({"c": said}, "levels").fit(pd.DataFrame({"c": [LEVELS[int(y)] for y in Y]}), Y)
        assert list(c.coef_names_) == ["c", "(intercept)"]
    for said in ((datetime.date(2024, 1, 1), datetime.date(2024, 12, 31)), {"bounds": (np.datetime64("2024-01-01"), pd.Timestamp("2024-12-31"))}):
        c = estimator({"c": said}, "days").fit(pd.DataFrame({"c": [d or pd.Timestamp("2024-07-01") for d in DAYS]}), Y)
        assert list(c.coef_names_) == ["c", "(intercept)"]
    for said in (pd.CategoricalDtype(), pl.Categorical(), []):
        with pytest.raises(ValueError, match="^domain: column 'c': found no levels; list them"):
            estimator({"c": {"levels": said}}, "none").fit(pd.DataFrame({"c": Y}), Y)
    with pytest.raises(ValueError, match="^domain: column 'c': found no levels"):
        estimator({"c": pl.Series(TEXTS, dtype=pl.Categorical).dtype}, "none").fit(pl.DataFrame({"c": TEXTS}), Y)
