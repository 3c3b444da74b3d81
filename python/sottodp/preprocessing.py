"""Steps before an estimator whose numbers are public: they learn nothing from the rows.

An estimator's guarantee covers what the estimator does with X. A scaler, an encoder or an imputer that was fitted to
the same rows has looked at them without a charge, and its numbers depend on single rows. These steps take bounds,
levels and replacements from a person instead.
"""

import sys
import warnings

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from .errors import PrivacyWarning

__all__ = ["PublicEncoder", "PublicImputer", "PublicScaler"]


class _Public(TransformerMixin, BaseEstimator):
    """What the steps share: fit looks at the shape of X and at the names of its columns, no more."""

    def fit(self, X, y=None):
        """Check what is public against the number of columns; rows are not read."""
        self._validated(X, reset=True)
        self._public()
        return self

    def _validated(self, X, reset):
        return validate_data(self, X, reset=reset, dtype=self._dtype, ensure_all_finite=False)

    def _each(self, name, value):
        """One entry for each column."""
        if len(value) != self.n_features_in_:
            raise ValueError(f"{name}: found {len(value)} entries; allowed is one for each of {self.n_features_in_} columns")
        return value

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class PublicScaler(OneToOneFeatureMixin, _Public):
    """Clamp each column to public bounds and map them to [-1, 1].

    Parameters
    ----------
    bounds : (low, high) or sequence of pairs
        Public bounds of all columns, or of each.

    Examples
    --------
    >>> PublicScaler(bounds=[(0, 100)]).fit_transform([[25], [150]]).tolist()
    [[-0.5], [1.0]]
    """

    _dtype = "numeric"

    def __init__(self, bounds=(-1, 1)):
        self.bounds = bounds

    def _public(self):
        bounds = np.asarray(self.bounds, dtype=float)
        if bounds.shape == (2,):
            bounds = np.tile(bounds, (self.n_features_in_, 1))
        bounds = np.asarray(self._each("bounds", bounds))
        if bounds.shape[1:] != (2,) or not (bounds[:, 0] < bounds[:, 1]).all() or not np.isfinite(bounds).all():
            raise ValueError("bounds: allowed are pairs (low, high) of numbers with low below high")
        self.bounds_ = bounds

    def transform(self, X):
        """Return X, clamped and scaled; NaN stays."""
        check_is_fitted(self)
        low, high = self.bounds_.T
        return 2 * (np.clip(self._validated(X, reset=False), low, high) - low) / (high - low) - 1


class PublicImputer(OneToOneFeatureMixin, _Public):
    """Replace missing numbers by public ones.

    Parameters
    ----------
    values : number or sequence of numbers
        What stands in for NaN in all columns, or in each.

    Examples
    --------
    >>> PublicImputer(values=[7]).fit_transform([[1.0], [float("nan")]]).tolist()
    [[1.0], [7.0]]
    """

    _dtype = "numeric"

    def __init__(self, values=0):
        self.values = values

    def _public(self):
        values = np.asarray(self.values, dtype=float)
        values = np.full(self.n_features_in_, values) if values.ndim == 0 else np.asarray(self._each("values", values))
        if not np.isfinite(values).all():
            raise ValueError("values: allowed are finite numbers")
        self.values_ = values

    def transform(self, X):
        """Return X with no NaN."""
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        return np.where(np.isnan(X), self.values_, X)


class PublicEncoder(_Public):
    """Turn each column with public levels into a column of 0 and 1 for each level; another value is 0 in all.

    Parameters
    ----------
    levels : sequence of sequences
        The public levels of each column.

    Examples
    --------
    >>> PublicEncoder(levels=[["no", "yes"]]).fit_transform([["yes"], ["other"]]).tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """

    _dtype = None

    def __init__(self, levels=()):
        self.levels = levels

    def _public(self):
        levels = [list(column) for column in self._each("levels", self.levels)]
        if any(len(set(column)) != len(column) or not column for column in levels):
            raise ValueError("levels: allowed are lists of different levels, at least one of each column")
        self.levels_ = levels

    def transform(self, X):
        """Return one column for each level of each column."""
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        return np.stack([(X[:, j] == level).astype(float) for j, column in enumerate(self.levels_) for level in column], axis=1)

    def get_feature_names_out(self, input_features=None):
        """Return the names column_level."""
        check_is_fitted(self)
        if input_features is None:
            input_features = getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])
        return np.asarray([f"{name}_{level}" for name, column in zip(input_features, self.levels_) for level in column], dtype=object)


def warn_of_fitted_steps(estimator):
    """Warn if the estimator is fitted by a Pipeline whose earlier steps learn from rows."""
    frame = sys._getframe(1)
    while frame is not None:
        pipeline = frame.f_locals.get("self")
        if frame.f_code.co_name == "fit" and isinstance(pipeline, Pipeline):
            learned = [name for name, step in pipeline.steps[:-1] if _learns(step)]
            if learned:
                warnings.warn(
                    f"the step{'s' * (len(learned) > 1)} {', '.join(map(repr, learned))} of the pipeline learned from the same rows without a charge, so the guarantee does not "
                    "hold for the pipeline: use sottodp.preprocessing, or say domain and let the estimator scale and encode",
                    PrivacyWarning, stacklevel=4,
                )
            return
        frame = frame.f_back


def _learns(step):
    return step not in (None, "passthrough") and not isinstance(step, _Public) and get_tags(step).requires_fit
