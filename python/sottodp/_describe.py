"""Private statistics of a table, before a model (``sotto describe``)."""

from __future__ import annotations

import io
import json
import numbers
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow

from . import _domain, _types
from ._command import Rows, run, write
from ._estimators import _place
from .errors import SottoError


def describe_private(
    X: Any, *, epsilon: float, delta: float, domain: Mapping[str, Any] | None = None, schema: _types.Path | None = None,
    dataset: str | None = None, rows: int | None = None, adjacency: _types.Adjacency | None = None,
    pairs: Sequence[tuple[str, str]] = (), bins: int | None = None, ledger: _types.Path | None = None, out: _types.Path | None = None,
) -> Any:
    """Return private statistics of a data frame, and charge the ledger (``sotto describe``).

    One release gives the histograms of all columns, with noise. Counts of missing values and of values that ``domain``
    does not allow, means and quantiles follow from it.

    Parameters
    ----------
    X : data frame
        The rows, with a column for each entry of ``domain``; all columns are counted, a label like any other.
    epsilon : float
        The ε that the dataset is charged for all figures together.
    delta : float
        Likewise δ, above 0 and well below one over the number of rows.
    domain : dict, optional
        Of each column, what is publicly known, as for `SottoClassifier`: bounds or levels. Or ``schema``.
    schema : path, optional
        A schema file, instead of ``domain``, ``dataset`` and ``rows``.
    dataset : str, optional
        The table's name in the ledger; required with ``domain``.
    rows : int, optional
        About how many rows X has, a public number; required with ``domain``.
    adjacency : {"add-or-remove", "replace-one"}, optional
        The neighboring tables; by default those of the dataset, if the ledger knows it.
    pairs : sequence of (str, str), default ()
        Columns that are also counted two at a time.
    bins : int, optional
        The bins of a column of numbers; by default chosen by ``rows`` and the noise.
    ledger : path or URL, optional
        Where budgets are kept; by default the user's own ledger.
    out : path, optional
        A new directory for the page, the figures and the record, which ``sotto verify`` checks; it is not kept without.

    Returns
    -------
    pandas.DataFrame
        A line for each figure: ``column``, ``statistic`` (records, bin, level, missing, not allowed, mean, quantile or
        pair), ``name``, ``from`` and ``to`` of a bin, ``value``, and ``low`` and ``high`` of a 95 % interval for the
        noise. ``attrs`` has the run's name, the dataset and the budget. docs/how-to/describe.md explains the figures.

    Raises
    ------
    BudgetError
        If the dataset's lifetime budget does not cover the charge.
    ContentProtectedError
        If the ledger knows the rows under another name.

    Examples
    --------
    >>> import pandas as pd
    >>> from sottodp import describe_private
    >>> X = pd.DataFrame({"age": [30, 40, 70, 80] * 250, "ward": ["north", "south"] * 500})
    >>> figures = describe_private(
    ...     X, epsilon=1, delta=1e-6, domain={"age": (0, 100), "ward": ["north", "south"]}, dataset="seen", rows=1000, adjacency="add-or-remove")
    >>> mean = figures[figures["statistic"] == "mean"].iloc[0]
    >>> bool(mean["low"] < 55 < mean["high"])
    True
    """
    import pandas

    _domain.tabular(X)
    if not hasattr(X, "columns"):
        raise ValueError("X: found no column names; give a data frame, since domain or a schema names columns")
    names = [str(name) for name in X.columns]
    features = [X[name] for name in X.columns]
    if len(names) < 2:
        raise ValueError("X: has too few columns; a description is of two or more")
    said = None
    if (domain is None) == (schema is None):
        raise ValueError("domain, schema: give one of them, as what is read off the rows is not private")
    if domain is not None:
        said = _schema(domain, names, features, dataset, rows)
    with tempfile.TemporaryDirectory(prefix="sotto-") as directory, Rows() as cells:
        work = Path(directory)
        place = Path(str(schema)).absolute() if said is None else work / "schema.yaml"
        columns: list[Any] = [None] * len(names)
        if said is not None:
            place.write_text(json.dumps(said, ensure_ascii=False), encoding="utf-8")
            columns = _domain.columns(domain, names, features)
        table = {name: _domain.cells(name, feature, column) for name, feature, column in zip(names, features, columns)}
        write(cells, pyarrow.table(table))
        asked: list[Any] = ["--epsilon", epsilon, "--delta", delta, "--out", out or work / "out", "--json", "--quiet"]
        asked += [part for pair in pairs for part in ("--pair", ",".join('"' + str(name).replace('"', '""') + '"' for name in pair))]
        for flag, value in (("--adjacency", adjacency), ("--bins", bins), ("--ledger", ledger and _place(ledger))):
            if value is not None:
                asked += [flag, value]
        try:
            done = json.loads(run("describe", cells.path, "--schema", place, *asked, rows=cells, within=work))
        except SottoError as error:
            text = re.sub(re.escape(str(work)) + r"/schema\.yaml(:\d+:\d+)?: ", "", str(error)).replace(f"{cells.path}: ", "X: ", 1)
            raise type(error)(re.sub(r"^columns\[(\d+)\]\.", lambda m: f"domain: column {names[int(m[1])]!r}: ", text)) from error.__cause__
        text = (Path(out or work / "out") / "description.csv").read_text(encoding="utf-8")
    figures = pandas.read_csv(io.StringIO(text), dtype={name: str for name in ("column", "statistic", "name")}, keep_default_na=False, na_values={name: [""] for name in ("from", "to", "value", "low", "high")})
    figures.attrs = {"run": done["id"], "dataset": done["dataset"], **done["budget"]}
    return figures


def _schema(domain: Mapping[str, Any], names: Sequence[str], features: Sequence[Any], dataset: str | None, rows: int | None) -> dict[str, Any]:
    """The schema of a table. A schema has a label, which is counted as any other column: here it is the first that can be one."""
    missing = [name for name, given in (("dataset", dataset), ("rows", rows)) if given is None]
    if missing:
        raise ValueError(f"{', '.join(missing)}: must be said, or schema=FILE: what is read off the rows is not private")
    if not isinstance(rows, numbers.Integral) or isinstance(rows, bool):
        raise ValueError(f"rows: found {rows!r}; give a whole number above 0, about how many rows the table has")
    columns = _domain.columns(domain, names, features)
    for number, column in enumerate(columns):
        if column["type"] == "numeric":
            label = {"min": column["min"], "max": column["max"]}
        elif column["type"] in ("categorical", "ordinal") and len(column["levels"]) > 1:
            label = {"classes": column["levels"]}
        else:
            continue
        columns[number] = {"name": column["name"], "type": "label", **label}
        return {"dataset": dataset, "rows": int(rows), "format": {"kind": "csv"}, "columns": columns}
    raise ValueError("domain: found no column of numbers, and none of two levels or more; give one")
