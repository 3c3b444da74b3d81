"""Steps before an estimator whose numbers are public: they learn nothing from the rows.

An estimator's guarantee covers what the estimator does with X. A scaler, an encoder or an imputer that was fitted to
the same rows has looked at them without a charge, and its numbers depend on single rows. These steps take bounds,
levels and replacements from a person instead.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from types import FrameType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from .errors import PrivacyWarning

__all__ = ["PublicEncoder", "PublicImputer", "PublicScaler"]


_Step = TypeVar("_Step", bound="_Public")


class _Public(TransformerMixin, BaseEstimator):
    """What the steps share: fit looks at the shape of X and at the names of its columns, no more."""

    _dtype: str | None
    n_features_in_: int

    def fit(self: _Step, X: ArrayLike, y: object = None) -> _Step:
        """Check what is public against the number of columns; rows are not read.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Its shape and the names of its columns are used, not its cells.
        y : None
            Not used.

        Returns
        -------
        PublicScaler, PublicImputer or PublicEncoder
            The step itself.

        Raises
        ------
        ValueError
            If what is public does not suit the number of columns.

        Examples
        --------
        >>> from sottodp.preprocessing import PublicScaler
        >>> PublicScaler(bounds=(0, 10)).fit([[1, 2]]).n_features_in_
        2
        """
        self._validated(X, reset=True)
        self._public()
        return self

    def _public(self) -> None:
        """Check the step's parameters."""
        raise NotImplementedError

    def _validated(self, X: ArrayLike, reset: bool) -> NDArray[Any]:
        checked: NDArray[Any] = validate_data(self, X, reset=reset, dtype=self._dtype, ensure_all_finite=False)
        return checked

    def _each(self, name: str, value: Any) -> Any:
        """One entry for each column."""
        if len(value) != self.n_features_in_:
            raise ValueError(f"{name}: found {len(value)} entries; give one for each of {self.n_features_in_} columns")
        return value

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class PublicScaler(OneToOneFeatureMixin, _Public):
    """Clamp each column to public bounds and map them to [-1, 1].

    Parameters
    ----------
    bounds : (low, high) or sequence of pairs, default (-1, 1)
        Public bounds of all columns, or of each, in their own units.

    Examples
    --------
    >>> from sottodp.preprocessing import PublicScaler
    >>> PublicScaler(bounds=[(0, 100)]).fit_transform([[25], [150]]).tolist()
    [[-0.5], [1.0]]
    """

    _dtype = "numeric"

    def __init__(self, bounds: Sequence[Any] = (-1, 1)) -> None:
        self.bounds = bounds

    def _public(self) -> None:
        wanted = "give pairs (low, high) of numbers with low below high"
        try:
            bounds = np.asarray(self.bounds, dtype=float)
        except (TypeError, ValueError):
            raise ValueError(f"bounds: found {self.bounds!r}; {wanted}") from None
        if bounds.ndim == 0:
            raise ValueError(f"bounds: found {self.bounds!r}; {wanted}")
        if bounds.shape == (2,):
            bounds = np.tile(bounds, (self.n_features_in_, 1))
        bounds = np.asarray(self._each("bounds", bounds))
        if bounds.shape[1:] != (2,) or not (bounds[:, 0] < bounds[:, 1]).all() or not np.isfinite(bounds).all():
            raise ValueError(f"bounds: found {self.bounds!r}; {wanted}")
        self.bounds_ = bounds

    def transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return X, clamped and scaled; NaN stays.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Numbers from -1 to 1.

        Examples
        --------
        >>> from sottodp.preprocessing import PublicScaler
        >>> PublicScaler(bounds=(0, 10)).fit([[0]]).transform([[5], [10]]).tolist()
        [[0.0], [1.0]]
        """
        check_is_fitted(self)
        low, high = self.bounds_.T
        scaled: NDArray[np.float64] = 2 * (np.clip(self._validated(X, reset=False), low, high) - low) / (high - low) - 1
        return scaled


class PublicImputer(OneToOneFeatureMixin, _Public):
    """Replace missing numbers by public ones.

    Parameters
    ----------
    values : number or sequence of numbers, default 0
        What stands in for NaN in all columns, or in each, in their own units.

    Examples
    --------
    >>> from sottodp.preprocessing import PublicImputer
    >>> PublicImputer(values=[7]).fit_transform([[1.0], [float("nan")]]).tolist()
    [[1.0], [7.0]]
    """

    _dtype = "numeric"

    def __init__(self, values: float | Sequence[float] = 0) -> None:
        self.values = values

    def _public(self) -> None:
        try:
            values = np.asarray(self.values, dtype=float)
        except (TypeError, ValueError):
            raise ValueError(f"values: found {self.values!r}; give numbers") from None
        values = np.full(self.n_features_in_, values) if values.ndim == 0 else np.asarray(self._each("values", values))
        if not np.isfinite(values).all():
            raise ValueError(f"values: found {self.values!r}; give finite numbers")
        self.values_ = values

    def transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return X with no NaN.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Numbers.

        Examples
        --------
        >>> from sottodp.preprocessing import PublicImputer
        >>> PublicImputer(values=3).fit([[0.0]]).transform([[float("nan")]]).tolist()
        [[3.0]]
        """
        check_is_fitted(self)
        rows = self._validated(X, reset=False)
        return np.where(np.isnan(rows), self.values_, rows)


class PublicEncoder(_Public):
    """Turn each column with public levels into a column of 0 and 1 for each level; another value is 0 in all.

    Parameters
    ----------
    levels : sequence of sequences, default ()
        The public levels of each column.

    Examples
    --------
    >>> from sottodp.preprocessing import PublicEncoder
    >>> PublicEncoder(levels=[["no", "yes"]]).fit_transform([["yes"], ["other"]]).tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """

    _dtype = None

    def __init__(self, levels: Sequence[Sequence[Any]] = ()) -> None:
        self.levels = levels

    def _public(self) -> None:
        levels = [list(column) for column in self._each("levels", self.levels)]
        if any(len(set(column)) != len(column) or not column for column in levels):
            raise ValueError(f"levels: found {self.levels!r}; give lists of different levels, at least one for each column")
        self.levels_ = levels

    def transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return one column for each level of each column.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_levels)
            0 and 1.

        Examples
        --------
        >>> from sottodp.preprocessing import PublicEncoder
        >>> PublicEncoder(levels=[["no", "yes"]]).fit([["no"]]).transform([["yes"]]).tolist()
        [[0.0, 1.0]]
        """
        check_is_fitted(self)
        rows = self._validated(X, reset=False)
        return np.stack([(rows[:, j] == level).astype(float) for j, column in enumerate(self.levels_) for level in column], axis=1)

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> NDArray[np.object_]:
        """Return the names column_level.

        Parameters
        ----------
        input_features : sequence of str, optional
            The columns' names; by default those of the X of fit.

        Returns
        -------
        ndarray of str
            A name for each column of the output.

        Examples
        --------
        >>> from sottodp.preprocessing import PublicEncoder
        >>> PublicEncoder(levels=[["no", "yes"]]).fit([["no"]]).get_feature_names_out(["smoker"]).tolist()
        ['smoker_no', 'smoker_yes']
        """
        check_is_fitted(self)
        if input_features is None:
            input_features = getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])
        return np.asarray([f"{name}_{level}" for name, column in zip(input_features, self.levels_) for level in column], dtype=object)


def warn_of_fitted_steps() -> None:
    """Warn if the caller is fitted by a Pipeline whose earlier steps learn from rows."""
    frame: FrameType | None = sys._getframe(1)
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


def _learns(step: Any) -> bool:
    return step not in (None, "passthrough") and not isinstance(step, _Public) and bool(get_tags(step).requires_fit)
