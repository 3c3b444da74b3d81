"""Differentially private learning for scikit-learn users.

SottoClassifier and SottoRegressor train with the sotto command, which this package carries. They follow
scikit-learn's conventions, and return the guarantee as the attribute ``guarantee_``.

What is publicly known of a table must be said, since a bound or a list of classes that is read off the rows tells
about them: ``domain`` and ``classes`` or ``target_range``, ``rows`` and ``dataset``, or a ``schema`` file that
holds all of it. With ``lab=True`` what is missing is taken from the rows, for experiments on tables that need no
protection; ``guarantee_.lab`` is true then, and nothing is promised.
"""

import importlib as _importlib
from importlib import metadata as _metadata
from typing import TYPE_CHECKING as _TYPE_CHECKING

from . import errors
from ._command import command
from .errors import BudgetError, SottoError

if _TYPE_CHECKING:
    from . import plots, preprocessing
    from ._describe import describe_private
    from ._estimators import Guarantee, SottoClassifier, SottoRegressor
    from ._search import SottoSearchCV
else:
    # What needs scikit-learn or pyarrow is imported when it is first used: they take most of a second.
    _later = {
        "Guarantee": "_estimators",
        "SottoClassifier": "_estimators",
        "SottoRegressor": "_estimators",
        "SottoSearchCV": "_search",
        "describe_private": "_describe",
        "plots": "",
        "preprocessing": "",
    }

    def __getattr__(name: str) -> object:
        if name not in _later:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = _importlib.import_module("." + (_later[name] or name), __name__)
        value = getattr(module, name) if _later[name] else module
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *_later})


try:
    __version__ = _metadata.version("sottodp")
except _metadata.PackageNotFoundError:  # the sources, not installed
    __version__ = "0+source"

__all__ = ["BudgetError", "Guarantee", "SottoClassifier", "SottoError", "SottoRegressor", "SottoSearchCV", "command", "describe_private", "errors", "plots", "preprocessing"]
