"""A search for the best method within one budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ._estimators import Guarantee, SottoClassifier, SottoRegressor, refuse


def _estimator_has(name: str) -> Callable[[Any], bool]:
    return lambda self: hasattr(getattr(self, "best_estimator_", self.estimator), name)


class SottoSearchCV(MetaEstimatorMixin, BaseEstimator):
    """Search for the best of several methods within the budget of one fit, by ``sotto tune``.

    A ``GridSearchCV`` charges every fit, and no guarantee covers its choice. This search trains a random number of
    candidates, scores each on the same rows with noise, and releases only the best; its ε covers all of that. There
    are no folds. What it costs is theorem 2 of Papernot and Steinke 2022 (privacy/account/PROOFS.md). With little data it chooses by chance: method "auto" without a search is often as good.

    Parameters
    ----------
    estimator : SottoClassifier or SottoRegressor
        Says all but the method. Its ε and δ are those of the whole search. Its run_dir must be a new directory: a search
        that was stopped cannot be resumed, since its candidates are secret, and keeps its ε.
    methods : list of str or dict
        The candidates, all equally likely: the name of a method, or a dict as ``{"name": "sgd", "steps": 30}`` with an
        optional ``label``.
    mean : float, default 10
        Trainings on average, above 1.
    loss_bound : float, default 4
        The most that one row's loss counts in a score.

    Attributes
    ----------
    best_estimator_ : SottoClassifier or SottoRegressor
        The best candidate.
    best_method_ : str
        Its label.
    best_score_ : float
        Its score, minus a noisy mean loss; as the best of several it is too good by chance.
    score_noise_ : float
        The standard deviation of the noise in a score.
    guarantee_ : Guarantee
        What the whole search promises.

    Examples
    --------
    >>> import numpy as np
    >>> from sottodp import SottoClassifier, SottoSearchCV
    >>> X = np.random.default_rng(3).uniform(-1, 1, (1000, 2))
    >>> model = SottoClassifier(
    ...     epsilon=2, delta=1e-6, adjacency="add-or-remove", dataset="searched", rows=1000, domain=(-1, 1), classes=[0, 1])
    >>> search = SottoSearchCV(model, ["nag", {"name": "sgd", "steps": 30}], mean=2).fit(X, X[:, 0] > 0)
    >>> search.guarantee_.epsilon
    2
    """

    best_estimator_: SottoClassifier | SottoRegressor
    best_method_: str
    best_score_: float
    score_noise_: float
    guarantee_: Guarantee

    def __init__(
        self, estimator: SottoClassifier | SottoRegressor, methods: Sequence[str | Mapping[str, Any]], *, mean: float = 10, loss_bound: float = 4
    ) -> None:
        self.estimator = estimator
        self.methods = methods
        self.mean = mean
        self.loss_bound = loss_bound

    def fit(self, X: ArrayLike, y: ArrayLike, **refused: Any) -> SottoSearchCV:
        """Search on the rows of X with the labels or numbers y, and charge the ledger once.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Rows, as the estimator's fit takes them.
        y : array of shape (n_samples,)
            Their labels or numbers.
        **refused
            Nothing else is allowed; ``sample_weight`` is refused with its reason.

        Returns
        -------
        SottoSearchCV
            The search itself.

        Raises
        ------
        ValueError
            If a parameter is missing or wrong: nothing was charged.
        BudgetError
            If the dataset's lifetime budget does not cover the search; nothing was charged.
        """
        refuse(refused)
        if not isinstance(self.estimator, (SottoClassifier, SottoRegressor)):
            raise ValueError(f"estimator: found {type(self.estimator).__name__}; give a SottoClassifier or a SottoRegressor")
        best = clone(self.estimator)
        if best.lab:
            raise ValueError("estimator: found lab=True; give an estimator with a budget: without protection a GridSearchCV does")
        if best.method != "auto" or best.method_options:
            raise ValueError("estimator: found a method of its own; name methods here instead")
        best._search = {"mean": self.mean, "loss_bound": self.loss_bound, "methods": list(self.methods)}
        best.fit(X, y)
        self.best_estimator_, self.guarantee_ = best, best.guarantee_
        self.score_noise_ = best._found["score_noise"]
        self.best_method_, self.best_score_ = best._found["winner"], best._found["score"]
        return self

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes of a classifier."""
        classes: NDArray[Any] = self._best().classes_
        return classes

    def _best(self) -> Any:
        check_is_fitted(self)
        return self.best_estimator_

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return what the best candidate predicts.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Rows, with the columns of the training.

        Returns
        -------
        ndarray of shape (n_samples,)
            A class or a number of each row.
        """
        predicted: NDArray[Any] = self._best().predict(X)
        return predicted

    def score(self, X: ArrayLike, y: ArrayLike) -> float:
        """Return the best candidate's score on rows that need no protection: it has no noise, and the ledger's rows are refused.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Rows, with the columns of the training.
        y : array of shape (n_samples,)
            Their labels or numbers.

        Returns
        -------
        float
            Accuracy of a classifier, R² of a regression.
        """
        return float(self._best().score(X, y))

    @available_if(_estimator_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: ArrayLike) -> NDArray[Any]:
        """Return the best candidate's probability of each class.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Rows, with the columns of the training.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities; each row adds up to 1.
        """
        probabilities: NDArray[Any] = self._best().predict_proba(X)
        return probabilities

    @available_if(_estimator_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: ArrayLike) -> NDArray[Any]:
        """Return the best candidate's margins.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Rows, with the columns of the training.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Above 0 for the second of two classes.
        """
        margins: NDArray[Any] = self._best().decision_function(X)
        return margins

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = self.estimator.__sklearn_tags__()
        tags.estimator_type, tags.classifier_tags, tags.regressor_tags = inner.estimator_type, inner.classifier_tags, inner.regressor_tags
        return tags
