"""Private statistics of a frame: the figures, what they cost, and what is refused before any charge."""

import subprocess

import numpy as np
import pandas as pd
import polars as pl
import pytest

from sottodp import BudgetError, SottoClassifier, command, describe_private, errors

ROWS = 2000
DRAW = np.random.default_rng(45)
X = pd.DataFrame(
    {
        "age": np.where(DRAW.random(ROWS) < 0.25, np.nan, DRAW.uniform(20, 60, ROWS)),
        "ward": DRAW.choice(["north", "south, old"], ROWS),
        "back": DRAW.random(ROWS) < 0.25,
    }
)
DOMAIN = {"age": (0, 100), "ward": ["north", "south, old"], "back": [False, True]}
PUBLIC = {"domain": DOMAIN, "dataset": "clinic", "rows": ROWS, "delta": 1e-6, "adjacency": "add-or-remove"}


def one(figures, column, statistic, name=""):
    found = figures[(figures["column"] == column) & (figures["statistic"] == statistic) & (figures["name"] == name)]
    assert len(found) == 1
    return found.iloc[0]


@pytest.mark.parametrize("frame", [X, pl.from_pandas(X)], ids=["pandas", "polars"])
def test_figures(frame, tmp_path):
    """At ε = 50 noise is small beside the counts: its standard deviation is below 1, so that 8 is never reached."""
    out = tmp_path / "described"
    figures = describe_private(frame, epsilon=50, pairs=[("ward", "back")], bins=10, out=out, **PUBLIC)
    assert list(figures.columns) == ["column", "statistic", "name", "from", "to", "value", "low", "high"]
    for row, exact in (
        (one(figures, "", "records"), ROWS),
        (one(figures, "age", "missing"), X["age"].isna().sum()),
        (one(figures, "ward", "level", "north"), (X["ward"] == "north").sum()),
        (one(figures, "back", "level", "True"), X["back"].sum()),
        (one(figures, "ward × back", "pair", "south, old × False"), ((X["ward"] != "north") & ~X["back"]).sum()),
    ):
        assert abs(row["value"] - exact) < 8 and row["low"] <= row["value"] <= row["high"]
    mean = one(figures, "age", "mean")
    assert mean["low"] < X["age"].mean() < mean["high"]
    assert one(figures, "age", "quantile", "0.5")["low"] <= X["age"].median() <= one(figures, "age", "quantile", "0.5")["high"]
    bins = figures[(figures["column"] == "age") & (figures["statistic"] == "bin")]
    assert bins["from"].tolist() == [10.0 * i for i in range(10)] and bins["to"].iloc[-1] == 100
    assert figures.attrs["dataset"] == "clinic" and figures.attrs["epsilon"] == 50
    said = subprocess.run([command(), "verify", out], capture_output=True, text=True, check=True).stdout
    assert "All that was checked holds." in said


def test_charges(tmp_path):
    """A description takes from the same budget as a fit, under the same name alone."""
    subprocess.run([command(), "ledger", "budget", "clinic", "--epsilon", "1", "--delta", "1e-4", "--adjacency", "add-or-remove"], check=True, capture_output=True)
    describe_private(X, epsilon=0.75, **PUBLIC)
    with pytest.raises(BudgetError):
        describe_private(X, epsilon=0.5, **PUBLIC)
    with pytest.raises(BudgetError):
        SottoClassifier(0.5, classes=[False, True], **{**PUBLIC, "domain": {"ward": DOMAIN["ward"]}}).fit(X[["ward"]], X["back"])
    with pytest.raises(errors.ContentProtectedError):
        describe_private(X, epsilon=0.1, **{**PUBLIC, "dataset": "other"})


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"domain": None}, "domain, schema: give one of them"),
        ({"dataset": None}, "dataset: must be said"),
        ({"rows": None}, "rows: must be said"),
        ({"rows": 1.5}, "rows: found 1.5"),
        ({"domain": {"age": (0, 100)}}, "nothing is said of the columns 'ward', 'back'"),
        ({"domain": {**DOMAIN, "age": (5, 5)}}, "domain: column 'age'"),
        ({"delta": 0}, "write a δ above 0"),
        ({"adjacency": None}, "adjacency"),
        ({"pairs": [("age", "none")]}, 'pairs: found "none"'),
    ],
)
def test_refusals(change, says, tmp_path):
    with pytest.raises(ValueError, match=says):
        describe_private(X, **{"epsilon": 1, **PUBLIC, **change})
    assert not list(tmp_path.rglob("ledger.db"))
