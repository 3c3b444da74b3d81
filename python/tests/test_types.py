"""Types whose stored number is not their value, through NumPy, pandas and Polars alike: the same rows, or the same refusal."""

import datetime
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from sottodp import SottoClassifier, errors
from sottodp._command import run

N = 40
SECONDS = [int(v) for v in np.random.default_rng(1).integers(0, 86400, N)]
Y = [v > 43200 for v in SECONDS]
SPANS = [datetime.timedelta(seconds=v) for v in SECONDS]
CLOCKS = [(datetime.datetime(2000, 1, 1) + s).time() for s in SPANS]
TIMES = [datetime.datetime(2000, 1, 1) + s for s in SPANS]
BOUNDS = {"bounds": (0, 86400), "missing": 0}
DATES = {"bounds": ("2000-01-01", "2000-01-02"), "missing": "zero"}
DURATION, CLOCK, HALF = "holds durations", "holds times of day without a date", "holds 16-bit floats"


def arrow(values, kind):
    return pd.Series(values, dtype=pd.ArrowDtype(kind))


# Of each way: the column, what domain says of it, and what the rows are, or what the refusal says.
CELLS = {}
for unit in ("s", "ms", "us", "ns"):
    CELLS[f"pandas timedelta64[{unit}]"] = (pd.Series(SPANS).astype(f"timedelta64[{unit}]"), BOUNDS, DURATION)
    CELLS[f"pandas Arrow duration[{unit}]"] = (arrow(SPANS, pa.duration(unit)), BOUNDS, DURATION)
    CELLS[f"pandas datetime64[{unit}]"] = (pd.Series(TIMES).astype(f"datetime64[{unit}]"), DATES, "dates")
    CELLS[f"NumPy timedelta64[{unit}]"] = (np.array(SPANS, f"timedelta64[{unit}]"), BOUNDS, DURATION)
    CELLS[f"NumPy datetime64[{unit}]"] = (np.array(TIMES, f"datetime64[{unit}]"), DATES, "dates")
for unit in ("ms", "us", "ns"):
    CELLS[f"Polars Duration {unit}"] = (pl.Series(SPANS, dtype=pl.Duration(unit)), BOUNDS, DURATION)
    CELLS[f"Polars Datetime {unit}"] = (pl.Series(TIMES, dtype=pl.Datetime(unit)), DATES, "dates")
CELLS |= {
    "pandas object of timedelta": (pd.Series(SPANS, dtype="object"), BOUNDS, DURATION),
    "pandas object of time": (pd.Series(CLOCKS, dtype="object"), BOUNDS, CLOCK),
    "Polars Time": (pl.Series(CLOCKS, dtype=pl.Time), BOUNDS, CLOCK),
    "pandas float16": (pd.Series(SECONDS).astype("float16"), BOUNDS, HALF),
    "NumPy float16": (np.array(SECONDS, "float16"), BOUNDS, HALF),
    "pandas Period": (pd.Series(pd.PeriodIndex(TIMES, freq="D")), BOUNDS, 'holds an extension type, "pandas.period"'),
    "pandas zone": (pd.Series(TIMES).dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo"), DATES, "dates"),
    "pandas object of Decimal": (pd.Series([decimal.Decimal(v) for v in SECONDS], dtype="object"), BOUNDS, "numbers"),
    "pandas Arrow decimal": (arrow([decimal.Decimal(v) for v in SECONDS], pa.decimal128(12, 3)), BOUNDS, "numbers"),
    "Polars Decimal": (pl.Series([decimal.Decimal(v) for v in SECONDS], dtype=pl.Decimal(12, 2)), BOUNDS, "numbers"),
    "pandas all None": (pd.Series([None] * N, dtype="object"), BOUNDS, "missing"),
    "pandas all NA": (pd.Series([pd.NA] * N, dtype="Int64"), BOUNDS, "missing"),
    "pandas Arrow null": (arrow([None] * N, pa.null()), BOUNDS, "missing"),
    "Polars Null": (pl.Series([None] * N), BOUNDS, "missing"),
    "pandas list": (pd.Series([[v] for v in SECONDS], dtype="object"), BOUNDS, "holds nested values"),
    "Polars Struct": (pl.Series([{"a": v} for v in SECONDS]), BOUNDS, "holds nested values"),
    "NumPy timedelta64[D]": (np.array([1] * N, "timedelta64[D]"), BOUNDS, "which Arrow does not have; convert them"),
    "NumPy complex": (np.array(SECONDS, "complex128"), BOUNDS, "which Arrow does not have; convert them"),
}
for dtype in ("int32", "int64", "uint32", "uint64", "float32", "float64", "Int64", "UInt64", "Float64"):
    CELLS[f"pandas {dtype}"] = (pd.Series(SECONDS, dtype=dtype), BOUNDS, "numbers")
for kind in (pl.Int32, pl.Int64, pl.UInt32, pl.UInt64, pl.Float32, pl.Float64):
    CELLS[f"Polars {kind}"] = (pl.Series(SECONDS, dtype=kind), BOUNDS, "numbers")

WEIGHTS = {}  # of the first way with these rows


@pytest.mark.parametrize("way", CELLS)
def test_stored_types(way):
    column, domain, want = CELLS[way]
    frame = pl.DataFrame({"a": column}) if isinstance(column, pl.Series) else pd.DataFrame({"a": column})
    if way.startswith("NumPy"):  # a mapping whose cells stay NumPy's
        frame = Columns(column)
    model = SottoClassifier(lab=True, random_state=1, epsilon=5, delta=1e-5, adjacency="add-or-remove", classes=[False, True], domain={"a": domain})
    if want in ("numbers", "dates", "missing"):
        model.fit(frame, Y)
        assert np.array_equal(WEIGHTS.setdefault(want, model.coef_), model.coef_)
        return
    with pytest.raises(ValueError) as raised:
        model.fit(frame, Y)
    assert want in str(raised.value) and "'a'" in str(raised.value).replace('"a"', "'a'")


class Columns(pd.DataFrame):
    """A frame that gives its column as NumPy's array."""

    @property
    def _constructor(self):
        return pd.DataFrame

    def __init__(self, column):
        super().__init__({"a": np.zeros(len(column))})
        object.__setattr__(self, "_cells", column)

    def __getitem__(self, name):
        return self._cells if name == "a" else super().__getitem__(name)


@pytest.mark.parametrize("rows", [0, 3, 300_000])
def test_columns_of_no_type(tmp_path, rows):
    """A column without a value has no type in Arrow and in Parquet; the command reads it in both, but no batch of many rows that have no bytes."""
    (tmp_path / "schema.yaml").write_text(
        "dataset: n\nrows: 9\ncolumns:\n  - {name: a, type: numeric, min: 0, max: 1, missing: zero}\n  - {name: y, type: label, classes: ['0', '1']}\n")
    table = pa.table({"a": pa.nulls(rows)})
    parquet.write_table(table, tmp_path / "t.parquet")
    feather.write_feather(table, tmp_path / "t.arrow", chunksize=rows + 1)
    for name in ("t.parquet", "t.arrow"):
        pack = ("data", "pack", "--unlabelled", "--schema", tmp_path / "schema.yaml", "--data", tmp_path / name, "--out", tmp_path / f"{name}.pack")
        if rows > 1 << 16 and name == "t.arrow":
            with pytest.raises(errors.InputError, match="no column with values"):
                run(*pack)
        else:
            run(*pack)
