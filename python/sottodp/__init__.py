"""Differentially private learning for scikit-learn users.

SottoClassifier and SottoRegressor train with the sotto command, which this package carries. They follow
scikit-learn's conventions, and return the guarantee as the attribute ``guarantee_``.

What is publicly known of a table must be said, since a bound or a list of classes that is read off the rows tells
about them: ``domain`` and ``classes`` or ``target_range``, ``rows`` and ``dataset``, or a ``schema`` file that
holds all of it. With ``lab=True`` what is missing is taken from the rows, for experiments on tables that need no
protection; ``guarantee_.lab`` is true then, and nothing is promised.
"""

from importlib import metadata as _metadata

from . import errors, plots, preprocessing
from ._command import command
from ._describe import describe_private
from ._estimators import Guarantee, SottoClassifier, SottoRegressor
from ._search import SottoSearchCV
from .errors import BudgetError, SottoError

try:
    __version__ = _metadata.version("sottodp")
except _metadata.PackageNotFoundError:  # the sources, not installed
    __version__ = "0+source"

__all__ = ["BudgetError", "Guarantee", "SottoClassifier", "SottoError", "SottoRegressor", "SottoSearchCV", "command", "describe_private", "errors", "plots", "preprocessing"]
