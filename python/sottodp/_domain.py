"""What the parameter ``domain`` says of the columns, as lines of a schema."""

import numbers

import numpy as np
import pyarrow

_NUMERIC = ("missing", "transform", "hats", "encode", "source")
_CATEGORICAL = ("missing", "unknown", "source")


def columns(domain, names, features):
    """The schema's lines of the features, from what ``domain`` says. In the lab it may be None: then the rows say it."""
    if domain is None:
        return [_numeric(name, _range(feature)) for name, feature in zip(names, features)]
    if isinstance(domain, dict):
        missing = [name for name in names if name not in domain]
        if missing:
            raise ValueError(f"domain: nothing is said of the column{'s' * (len(missing) > 1)} {', '.join(map(repr, missing))}")
        return [_column(name, domain[name]) for name in names]
    if not hasattr(domain, "__len__"):
        raise ValueError(f"domain: found {type(domain).__name__}; allowed is {_allowed(names)}")
    if len(domain) == 2 and all(isinstance(end, numbers.Real) for end in domain):  # of all columns; True is a number, too
        return [_column(name, domain) for name in names]
    if len(domain) != len(names):
        raise ValueError(f"domain: found {len(domain)} entries; allowed is {_allowed(names)}")
    return [_column(name, said) for name, said in zip(names, domain)]


def replaces(domain):
    """Whether ``domain`` says of any column what stands in for a missing value."""
    said = domain.values() if isinstance(domain, dict) else domain if isinstance(domain, (list, tuple)) else ()
    return any(isinstance(one, dict) and "missing" in one for one in said)


def cells(feature, column):
    """The cells of a feature for the command: NaN and None are missing, levels are texts."""
    if column is not None and column["type"] == "categorical":
        return pyarrow.array([None if _absent(cell) else str(cell) for cell in _plain(feature)], pyarrow.string())
    return pyarrow.array(feature, from_pandas=True)


def _allowed(names):
    return f"(low, high), as many entries as features, {len(names)}, or a dict"


def _range(feature):
    low, high = float(np.min(feature)), float(np.max(feature))
    return (low, high) if low < high else (low - 1, low + 1)


def _column(name, said):
    more = {}
    if isinstance(said, dict):
        more = dict(said)
        kind = [key for key in ("bounds", "levels") if key in more]
        if len(kind) != 1:
            raise ValueError(f"domain: column {name!r}: a dict has either 'bounds' or 'levels'")
        said = _levels(more.pop("levels"), name) if kind == ["levels"] else more.pop("bounds")
        fields = _CATEGORICAL if kind == ["levels"] else _NUMERIC
        wrong = [key for key in more if key not in fields]
        if wrong:
            raise ValueError(f"domain: column {name!r}: found {wrong[0]!r}; allowed beside {kind[0]!r} are {', '.join(fields)}")
        if kind == ["levels"]:
            return _categorical(name, said, more)
        return _numeric(name, said, more)
    if hasattr(said, "categories") or _is_levels(said):
        return _categorical(name, _levels(said, name), more)
    return _numeric(name, said, more)


def _is_levels(said):
    """A list of texts or of truth values names levels; two numbers are bounds."""
    return isinstance(said, (list, tuple)) and len(said) > 0 and all(isinstance(level, (str, bool, np.bool_)) for level in said)


def _levels(said, name):
    """The levels of a column: a list, a pandas CategoricalDtype or a Polars Enum."""
    found = list(getattr(said, "categories", said))
    if not found:
        raise ValueError(f"domain: column {name!r}: found no levels; public levels have to be named")
    return [_plain([level])[0] for level in found]


def _categorical(name, levels, more):
    texts = [str(level) for level in levels]
    more = {key: str(value) if key in ("missing", "unknown") else value for key, value in more.items()}
    return {"name": name, "type": "categorical", "levels": texts, **more}


def _numeric(name, said, more=()):
    try:
        low, high = map(float, said)
    except (TypeError, ValueError):
        raise ValueError(f"domain: column {name!r}: found {said!r}; allowed is (low, high), a list of levels, or a dict of either") from None
    return {"name": name, "type": "numeric", "min": low, "max": high, **dict(more)}


def _plain(feature):
    """Cells as Python's own values, whatever frame they are from."""
    return feature.to_list() if hasattr(feature, "to_list") else feature.tolist() if hasattr(feature, "tolist") else list(feature)


def _absent(cell):
    return cell is None or cell != cell or type(cell).__name__ == "NAType"
