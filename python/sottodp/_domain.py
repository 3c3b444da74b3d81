"""What the parameter ``domain`` says of the columns, as lines of a schema."""

from __future__ import annotations

import datetime
import math
import numbers
import os
from collections.abc import Mapping, Sequence, Set
from typing import Any

import numpy as np
import pyarrow

from ._types import Domain

_NUMERIC = ("missing", "transform", "hats", "encode", "source")
_DATE = ("missing", "cycles", "layout", "origin", "source")
_CATEGORICAL = ("ordered", "missing", "unknown", "source")
_TEXT = ("missing", "source")


def columns(domain: Domain | None, names: Sequence[str], features: Sequence[Any]) -> list[dict[str, Any]]:
    """The schema's lines of the features, from what ``domain`` says. In the lab it may be None: then the rows say it."""
    if domain is None:
        return [_numeric(name, _range(feature)) for name, feature in zip(names, features)]
    if isinstance(domain, Mapping):
        domain = {str(name): said for name, said in domain.items()}
        missing = [name for name in names if name not in domain]
        if missing:
            raise ValueError(f"domain: nothing is said of the column{'s' * (len(missing) > 1)} {', '.join(map(repr, missing))}")
        return [_column(name, domain[name]) for name in names]
    if not hasattr(domain, "__len__") or isinstance(domain, str):
        raise ValueError(f"domain: found {type(domain).__name__}; give {_forms(names)}")
    if len(domain) == 2 and all(isinstance(end, numbers.Real) for end in domain):  # of all columns; True is a number, too
        return [_column(name, domain) for name in names]
    if len(domain) != len(names):
        raise ValueError(f"domain: found {len(domain)} entries; give {_forms(names)}")
    return [_column(name, said) for name, said in zip(names, domain)]


def said(column: Mapping[str, Any]) -> Any:
    """What ``domain`` says of a column of a schema, as run.json has it."""
    more = {key: column[key] for key in ("missing", "unknown", "transform", "hats", "encode", "cycles", "layout", "origin") if column.get(key)}
    more = {key: value for key, value in more.items() if value not in ("error", "none") or key not in ("missing", "unknown", "transform")}
    if column["type"] == "text":
        return {"dimension": column["dimension"], **more}
    if "levels" in column:
        return {"levels": column["levels"], **({"ordered": True} if column["type"] == "ordinal" else {}), **more}
    if column["type"] == "boolean":
        return {"levels": [False, True], **more}
    bounds = (column["bounds"]["min"], column["bounds"]["max"])
    if column["type"] == "date":  # in days from the origin
        origin = datetime.datetime.fromisoformat(column["origin"])
        return {"bounds": tuple((origin + datetime.timedelta(days=days)).isoformat() for days in bounds), **more}
    return {"bounds": bounds, **more}


def replaces(domain: Domain | None) -> bool:
    """Whether ``domain`` says of any column what stands in for a missing value."""
    said = domain.values() if isinstance(domain, Mapping) else domain if isinstance(domain, (list, tuple)) else ()
    return any(isinstance(one, Mapping) and "missing" in one for one in said)


def tabular(X: Any) -> None:
    """Refuse what is no data frame and no array of rows, and say what makes one of it."""
    kind = type(X)
    found = kind.__name__
    if kind.__module__.partition(".")[0] == "pyarrow":
        make = ": X.to_pandas(), or polars.from_arrow(X)"
    elif found == "LazyFrame":
        make = ": X.collect()"
    elif hasattr(kind, "toarray"):
        found, make = f"the sparse {found}", ": X.toarray()"
    elif isinstance(X, Mapping):
        make = ": pandas.DataFrame(X)"
    elif X is None or isinstance(X, (str, bytes, os.PathLike, Set)) or not (hasattr(X, "__len__") or hasattr(X, "__array__")):
        make = ""
    else:
        return
    raise ValueError(f"X: found {found}; give a data frame or an array{make}")


def cells(name: str, feature: Any, column: Mapping[str, Any] | None) -> pyarrow.Array:
    """The cells of a feature for the command: NaN and None are missing, levels and free text are texts."""
    if column is not None and column["type"] in ("categorical", "ordinal", "text"):
        return pyarrow.array([None if absent(cell) else _text(cell) for cell in plain(feature)], pyarrow.string())
    if type(getattr(feature, "dtype", None)).__name__ == "SparseDtype":  # of pandas, which Arrow takes for objects
        feature = np.asarray(feature)
    try:
        array = pyarrow.array(feature, from_pandas=True)
        number = column is not None and column["type"] == "numeric" and pyarrow.types.is_boolean(array.type)
        return array.cast(pyarrow.uint8()) if number else array.cast(pyarrow.float64()) if pyarrow.types.is_null(array.type) else array
    except pyarrow.ArrowNotImplementedError:
        raise ValueError(f"X: column {name!r} holds cells of the type {getattr(feature, 'dtype', 'object')}, which Arrow does not have; convert them to numbers, texts or dates") from None
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError):  # the error would quote a cell
        raise ValueError(f"X: column {name!r}: found cells of several types; use numbers, texts or dates alone") from None


def _forms(names: Sequence[str]) -> str:
    return f"(low, high), as many entries as features, {len(names)}, or a dict"


def _range(feature: Any) -> tuple[float, float]:
    low, high = float(np.min(feature)), float(np.max(feature))
    return (low, high) if low < high else (low - 1, low + 1)


def _column(name: str, said: Any) -> dict[str, Any]:
    more: dict[str, Any] = {}
    said = list(said) if isinstance(said, np.ndarray) else said
    if isinstance(said, Mapping):
        more = dict(said)
        kinds = [key for key in ("bounds", "levels", "dimension") if key in more]
        if len(kinds) != 1:
            raise ValueError(
                f"domain: column {name!r}: found {', '.join(map(repr, more)) or 'nothing'}; "
                "give a dict with one of 'bounds', 'levels' and, for free text, 'dimension'"
            )
        kind, said = kinds[0], more.pop(kinds[0])
        said = list(said) if isinstance(said, np.ndarray) else said
        fields = {"bounds": _DATE if _are_dates(said) else _NUMERIC, "levels": _CATEGORICAL, "dimension": _TEXT}[kind]
        wrong = [key for key in more if key not in fields]
        if wrong:
            raise ValueError(f"domain: column {name!r}: unknown {wrong[0]!r}; beside {kind!r}, choose from {', '.join(fields)}")
        if kind == "levels":
            return _categorical(name, said, more)
        if kind == "dimension":
            return {"name": name, "type": "text", "dimension": said, **more}
    elif hasattr(said, "categories") or _is_levels(said):
        return _categorical(name, said, more)
    return _date(name, said, more) if _are_dates(said) else _numeric(name, said, more)


def _is_date(end: Any) -> bool:
    return isinstance(end, (datetime.date, np.datetime64))


def _are_dates(said: Any) -> bool:
    """Two dates are bounds; as texts only where a dict says that they are bounds, not levels."""
    return isinstance(said, (list, tuple)) and len(said) == 2 and all(_is_date(end) or isinstance(end, str) for end in said)


def _date(name: str, said: Any, more: Mapping[str, Any]) -> dict[str, Any]:
    low, high = map(_iso, said)
    return {"name": name, "type": "date", "min": low, "max": high, **{key: _iso(value) if _is_date(value) else value for key, value in more.items()}}


def _iso(date: Any) -> str:
    """A date as the schema has it: ISO 8601."""
    if isinstance(date, np.datetime64):
        return str(date.astype("datetime64[s]"))
    return date if isinstance(date, str) else str(date.isoformat())


def _is_levels(said: Any) -> bool:
    """A list of texts or of truth values names levels; two numbers are bounds."""
    return isinstance(said, (list, tuple)) and len(said) > 0 and all(isinstance(level, (str, bool, np.bool_)) for level in said)


def _levels(said: Any, name: str) -> list[Any]:
    """The levels of a column: a list, a pandas CategoricalDtype or a Polars Enum."""
    categories = getattr(said, "categories", said)
    # A type whose levels are those that occur: pandas has none in it, Polars all that it has met.
    occurring = categories is None or type(said).__name__ == "Categorical"
    found = [] if occurring else list(categories)
    if not found or isinstance(said, str):
        raise ValueError(f"domain: column {name!r}: found no levels; list them, as public levels have to be named")
    return [plain([level])[0] for level in found]


def _categorical(name: str, said: Any, more: Mapping[str, Any]) -> dict[str, Any]:
    """The line of a column of levels. A pandas CategoricalDtype that is ordered has its levels in their order."""
    texts = [_text(level) for level in _levels(said, name)]
    ordered = more.get("ordered", getattr(said, "ordered", False))
    if not isinstance(ordered, (bool, np.bool_)) and ordered is not None:
        raise ValueError(f"domain: column {name!r}: ordered: found {ordered!r}; choose True or False")
    more = {key: _text(value) if key in ("missing", "unknown") else value for key, value in more.items() if key != "ordered"}
    return {"name": name, "type": "ordinal" if ordered else "categorical", "levels": texts, **more}


def _numeric(name: str, said: Any, more: Mapping[str, Any] | None = None) -> dict[str, Any]:
    try:
        low, high = map(float, said)
    except (TypeError, ValueError):
        raise ValueError(f"domain: column {name!r}: found {said!r}; give (low, high), a list of levels, or a dict of either") from None
    return {"name": name, "type": "numeric", "min": low, "max": high, **(more or {})}


def plain(feature: Any) -> list[Any]:
    """Cells as Python's own values, whatever frame they are from."""
    for name in ("to_list", "tolist"):
        if hasattr(feature, name):
            return list(getattr(feature, name)())
    return list(feature)


def _text(level: Any) -> str:
    """A level as a text. A whole number is the same text in a column of floats, which it is in if a cell is NaN."""
    if isinstance(level, float) and math.isfinite(level) and level == int(level):
        level = int(level)
    return str(level)


def absent(cell: Any) -> bool:
    return cell is None or type(cell).__name__ == "NAType" or bool(cell != cell)
