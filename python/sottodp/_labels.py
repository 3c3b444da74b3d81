"""Labels as scikit-learn orders and types them, and the names that their classes have in a model."""

from __future__ import annotations

import numbers
import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from . import _domain

_KINDS = {"b": "truth values", "i": "numbers", "u": "numbers", "f": "numbers", "U": "texts", "O": "texts"}  # by the kind of a NumPy type

_TRUTHS = {"false": False, "true": True}

_MISSING = {"na", "nan", "null", "none", "?"}  # texts that stand for a missing label in many tables

_NUMBERED = (
    "Tools that number the labels first, such as cross_val_predict for probabilities or StackingClassifier, need the numbers as classes: [0, 1, ...]"
)


def array(y: Any, missing: bool = False) -> NDArray[Any]:
    """y as scikit-learn's own classifiers see it: of texts, whole numbers or truth values. ``missing`` allows texts to be missing."""
    if isinstance(y, (list, tuple)) and len({isinstance(label, str) for label in y}) > 1 and not (missing and all(isinstance(v, str) or _domain.absent(v) for v in y)):
        raise ValueError("y: mixes texts with other labels; give all labels the same type")
    try:
        found: NDArray[Any] = np.asarray(column_or_1d(y, warn=True))
    except ValueError as error:
        if "Complex data not supported" not in str(error):
            raise
        raise ValueError("y: has complex numbers as labels; give texts, whole numbers or truth values. Complex data not supported") from None  # without the labels
    if found.dtype.kind not in _KINDS:
        raise ValueError(f"y: has labels of the type {found.dtype}; give texts, whole numbers or truth values")
    if found.dtype.kind != "O":
        check_classification_targets(found)
        return found
    gaps = [_domain.absent(label) for label in found]
    if any(gaps) and not missing:
        raise ValueError("y: a label is missing; leave out the rows without a label. Input y contains NaN")
    if not all(gap or isinstance(label, str) for gap, label in zip(gaps, found)):
        raise ValueError(
            "y: has labels of several types, or objects that are no texts; give all labels one type, as y.astype(int) or y.astype(str) does. "
            "Unknown label type: unknown"
        )
    return found


def listed(said: Any) -> list[Any]:
    """The labels that the parameter ``classes`` lists, as Python's own values of one kind."""
    if isinstance(said, (str, bytes, Mapping)) or not hasattr(said, "__len__") or np.ndim(np.asarray(said, dtype=object)) != 1:
        raise ValueError(f"classes: found {said!r}; give a list of two labels or more, each of them once")
    values = [value.item() if isinstance(value, np.generic) else value for value in _domain.plain(said)]
    wrong = [value for value in values if not _kind(value)]
    if wrong:
        raise ValueError(f"classes: {wrong[0]!r} cannot be a label; list texts, whole numbers or truth values")
    kinds = sorted({_kind(value) for value in values})
    if len(kinds) > 1:
        raise ValueError(f"classes: mixes {' and '.join(kinds)}; give all classes the type of y")
    if len(values) < 2 or len(set(values)) < len(values):
        raise ValueError(f"classes: found {said!r}; give a list of two labels or more, each of them once")
    return values


def _kind(value: Any) -> str:
    if isinstance(value, str):
        return "texts"
    if isinstance(value, bool):
        return "truth values"
    return "numbers" if isinstance(value, numbers.Real) and value == value and abs(value) != float("inf") and value == value // 1 else ""


def classes(said: Any, like: np.dtype[Any] | None) -> NDArray[Any]:
    """The labels that ``classes`` lists, in the type of y, sorted as np.unique does."""
    values = listed(said)
    have = _kind(values[0])
    like = np.dtype(object) if like is None and have == "texts" else np.asarray(values).dtype if like is None else like
    want = _KINDS[like.kind]
    if (have == "texts") != (want == "texts"):
        raise ValueError(f"y: its labels are {want}, and classes lists {have}; give both the same type. {_NUMBERED}")
    return np.unique(_cast(values, like, "classes"))


def texts(values: Sequence[Any]) -> list[str]:
    """The names of classes in a model: their texts, or numbers from 0 where a schema would not tell those apart."""
    found = [str(value).lower() if isinstance(value, bool) else _domain._text(value) for value in values]
    clear = all(text and text == text.strip() and text.isprintable() and text.lower() not in _MISSING for text in found)
    return found if clear and len({_number(text) for text in found}) == len(found) else [str(i) for i in range(len(found))]


def warn_of_numbers(values: Sequence[Any], names: Sequence[str]) -> None:
    """Say that the model has numbers in place of the texts of the classes, where it has."""
    if all(isinstance(value, str) for value in values) and list(values) != list(names):
        warnings.warn(
            f"classes: a table cannot tell the texts of {', '.join(map(repr, values))} from each other or from a missing label, so the model, its report and "
            f"`sotto predict` call them {', '.join(names)}, in this order; load(DIR, classes={list(values)!r}) gives the labels back",
            UserWarning, stacklevel=4,
        )


def _number(text: str) -> Any:
    """A text as the number that it is, if it is one: a schema counts "1" and "1.0" as the same class."""
    try:
        return float(text)
    except ValueError:
        return text


def of_names(names: Sequence[str]) -> NDArray[Any]:
    """The classes of a model in the type that their names look like: whole numbers, truth values or texts."""
    if all(re.fullmatch(r"0|-?[1-9][0-9]*", name) for name in names):
        return np.array([int(name) for name in names])
    if set(names) == set(_TRUTHS):
        return np.array([_TRUTHS[name] for name in names])
    return np.array(names, dtype=object)


def of_schema(names: Sequence[str], like: np.dtype[Any]) -> NDArray[Any]:
    """The classes of a schema file, which are texts, in the type of y and in the schema's order."""
    want = _KINDS[like.kind]
    if want == "texts":
        return _cast(names, like, "schema")
    values: list[Any] = []
    for name in names:
        if name.lower() in _TRUTHS:
            values.append(_TRUTHS[name.lower()])
        elif not re.fullmatch(r"-?[0-9]+(\.0*)?", name):
            raise ValueError(
                f"y: its labels are {want}, and {name!r}, a class of the schema, is none; give y the labels that the schema lists, as texts. {_NUMBERED}"
            )
        else:
            values.append(int(name.partition(".")[0]))
    if len(set(values)) < len(values):
        raise ValueError(f"y: its labels are {want}, and two classes of the schema are the same one; give y the labels that the schema lists, as texts")
    return _cast(values, like, "schema")


def _cast(values: Sequence[Any], like: np.dtype[Any], parameter: str) -> NDArray[Any]:
    if like.kind == "O":
        return np.array(values, dtype=object)
    if like.kind == "U":
        texts = np.array(values, dtype=str)
        return texts.astype(np.result_type(texts, like))
    with np.errstate(all="ignore"):
        try:
            cast = np.asarray(values).astype(like)
        except OverflowError:
            cast = np.zeros(len(values), like)
    wrong = [value for value, typed in zip(values, cast.tolist()) if value != typed]
    if wrong:
        raise ValueError(f"{parameter}: the class {wrong[0]!r} cannot be a label of y, whose type is {like}; give y a type that holds all classes")
    return cast
