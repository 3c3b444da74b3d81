"""A search for the best method within one budget."""

from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted


def _estimator_has(name):
    return lambda self: hasattr(getattr(self, "best_estimator_", self.estimator), name)


class SottoSearchCV(MetaEstimatorMixin, BaseEstimator):
    """Search for the best of several methods within the budget of one fit, by ``sotto tune``.

    A ``GridSearchCV`` charges every fit, and no guarantee covers its choice. This search trains a random number of
    candidates, scores each on the same rows with noise, and releases only the best; its ε covers all of that. There
    are no folds. With little data it chooses by chance: method "auto" without a search is often as good.

    Parameters
    ----------
    estimator : SottoClassifier or SottoRegressor
        Says all but the method. Its ε and δ are those of the whole search.
    methods : list of str or dict
        The candidates, all equally likely: the name of a method, or a dict as ``{"name": "sgd", "steps": 30}`` with an
        optional ``label``.
    mean : float
        Trainings on average, above 1.
    loss_bound : float
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
    """

    def __init__(self, estimator, methods, *, mean=10, loss_bound=4):
        self.estimator = estimator
        self.methods = methods
        self.mean = mean
        self.loss_bound = loss_bound

    def fit(self, X, y):
        """Search on the rows of X with the labels or numbers y, and charge the ledger once."""
        best = clone(self.estimator)
        if best.lab:
            raise ValueError("estimator: found lab=True; allowed is an estimator with a budget: without protection a GridSearchCV does")
        if best.method != "auto" or best.method_options:
            raise ValueError("estimator: found a method of its own; allowed is to name methods here")
        best._search = {"mean": self.mean, "loss_bound": self.loss_bound, "methods": list(self.methods)}
        best.fit(X, y)
        self.best_estimator_, self.guarantee_ = best, best.guarantee_
        self.score_noise_ = best._found["score_noise"]
        self.best_method_, self.best_score_ = best._found["winner"], best._found["score"]
        return self

    @property
    def classes_(self):
        """The classes of a classifier."""
        return self._best().classes_

    def _best(self):
        check_is_fitted(self)
        return self.best_estimator_

    def predict(self, X):
        """Return what the best candidate predicts."""
        return self._best().predict(X)

    def score(self, X, y):
        """Return the best candidate's score on rows that need no protection: it has no noise."""
        return self._best().score(X, y)

    @available_if(_estimator_has("predict_proba"))
    def predict_proba(self, X):
        """Return the best candidate's probability of each class."""
        return self._best().predict_proba(X)

    @available_if(_estimator_has("decision_function"))
    def decision_function(self, X):
        """Return the best candidate's margins."""
        return self._best().decision_function(X)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        inner = self.estimator.__sklearn_tags__()
        tags.estimator_type, tags.classifier_tags, tags.regressor_tags = inner.estimator_type, inner.classifier_tags, inner.regressor_tags
        return tags
