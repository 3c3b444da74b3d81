"""Pictures of a released model and of its guarantee, by matplotlib.

Each draws on ``ax``, or on a new figure, and returns the axes. They read the model and the guarantee alone, so they
cost nothing.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from ._estimators import Guarantee, SottoClassifier, SottoRegressor

__all__ = ["plot_effects", "plot_privacy_profile", "plot_trade_off"]


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install matplotlib") from error
    return pyplot.subplots(figsize=(5, 3.5), layout="constrained")[1]


def plot_effects(estimator: SottoClassifier | SottoRegressor, column: str, ax: Any = None) -> Any:
    """Draw what a column adds to the margin: a curve over its values, a point for each level, or a map of a pair.

    The band, or the bar, is that of the training's noise, where it is known; a map has none.

    Parameters
    ----------
    estimator : SottoClassifier or SottoRegressor
        A fitted one, of two classes or of a number.
    column : str
        A column of X, or a pair of columns as the estimator's ``effects`` names it, such as ``"age × dose"``.
    ax : matplotlib axes, optional
        Where to draw; by default on a new figure.

    Returns
    -------
    matplotlib axes
        What was drawn on.

    Raises
    ------
    ValueError
        If the model has no effect of that name.
    ImportError
        If matplotlib is not installed.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")  # no window
    >>> import numpy as np
    >>> from sottodp import SottoClassifier, plots
    >>> X = np.random.default_rng(1).uniform(-1, 1, (400, 2))
    >>> model = SottoClassifier(lab=True, random_state=1, hats=0).fit(X, X[:, 0] > 0)
    >>> plots.plot_effects(model, "x0").get_ylabel()
    'added to the margin'
    """
    lines = [line for line in estimator.effects() if line["column"] == column]
    if not lines:
        known = dict.fromkeys(line["column"] for line in estimator.effects())
        raise ValueError(f"column: found {column!r}; choose {', '.join(map(repr, known))}")
    effect = np.asarray([line["effect"] for line in lines])
    band = None
    if all(line["low"] is not None for line in lines):
        band = np.asarray([[line["low"], line["high"]] for line in lines]).T
    ax = _axes(ax)
    kind = lines[0]["kind"]
    if kind == "cell":
        side = math.isqrt(len(lines))
        down, across = zip(*(line["value"].split(" × ") for line in lines), strict=True)
        image = ax.imshow(effect.reshape(side, side), aspect="auto")
        ax.figure.colorbar(image, ax=ax, label="added to the margin")
        ax.set_yticks(range(side), down[::side])
        ax.set_xticks(range(side), across[:side])
        ax.set_title(column)
        return ax
    if kind == "point":
        x = np.asarray([float(line["value"]) for line in lines])
        ax.plot(x, effect)
        if band is not None:
            ax.fill_between(x, *band, alpha=0.2, linewidth=0)
        ax.set_xlabel(column)
    else:
        at = np.arange(len(lines))
        ax.errorbar(at, effect, yerr=None if band is None else np.abs(band - effect), fmt="o", capsize=3)
        ax.set_xticks(at, [line["value"] for line in lines])
        ax.set_xlabel(column if kind == "level" else f"{column}, for a step of")
        ax.margins(x=0.1)
    ax.axhline(0, color="0.7", linewidth=0.8, zorder=0)
    ax.set_ylabel("added to the margin")
    return ax


def plot_trade_off(guarantee: Guarantee, ax: Any = None) -> Any:
    """Draw how well any attack can do: the most that its true positive rate can be at each false positive rate.

    The curve is the least of two bounds: by ε and δ (Kairouz, Oh and Viswanath 2015) and, where it is known, by μ
    (Dong, Roth and Su 2022).

    Parameters
    ----------
    guarantee : Guarantee
        That of a fitted estimator.
    ax : matplotlib axes, optional
        Where to draw; by default on a new figure.

    Returns
    -------
    matplotlib axes
        What was drawn on.

    Raises
    ------
    ValueError
        If it promises nothing, as that of a lab run.
    ImportError
        If matplotlib is not installed.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")  # no window
    >>> from sottodp import Guarantee, plots
    >>> guarantee = Guarantee(1, 1e-5, "add-or-remove", "record", "clinic", False, "first", (), mu=0.268, outside=0)
    >>> plots.plot_trade_off(guarantee).get_xlabel()
    'false positive rate'
    """
    fpr = np.concatenate([[0], np.geomspace(1e-4, 1, 400)])
    ax = _axes(ax)
    ax.plot(fpr, _true_positives(guarantee, fpr), label="no attack does better")
    ax.plot([0, 1], [0, 1], linestyle="--", color="0.6", label="guessing")
    ax.set(xlabel="false positive rate", ylabel="true positive rate", xlim=(0, 1), ylim=(0, 1.02), aspect="equal")
    ax.legend()
    return ax


def plot_privacy_profile(guarantee: Guarantee, ax: Any = None) -> Any:
    """Draw ε over δ: the guarantee at every δ, not only at that of the budget.

    The curve is that of Gaussian differential privacy (Dong, Roth and Su 2022, corollary 2.13).

    Parameters
    ----------
    guarantee : Guarantee
        That of a fitted estimator; it needs μ, which Gaussian noise gives.
    ax : matplotlib axes, optional
        Where to draw; by default on a new figure.

    Returns
    -------
    matplotlib axes
        What was drawn on.

    Raises
    ------
    ValueError
        If it promises nothing, as that of a lab run, or has no μ.
    ImportError
        If matplotlib is not installed.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")  # no window
    >>> from sottodp import Guarantee, plots
    >>> guarantee = Guarantee(1, 1e-5, "add-or-remove", "record", "clinic", False, "first", (), mu=0.268, outside=0)
    >>> plots.plot_privacy_profile(guarantee).get_xscale()
    'log'
    """
    _protects(guarantee)
    if guarantee.mu is None:
        raise ValueError("guarantee: found one without μ, whose ε is known at its own δ alone; give one with μ")
    outside = guarantee.outside or 0
    delta = np.geomspace(max(1e-12, 2 * outside), 0.1, 200)
    ax = _axes(ax)
    ax.plot(delta, [_epsilon(guarantee.mu, d - outside) for d in delta])
    ax.plot([guarantee.delta], [guarantee.epsilon], "o", label="the budget")
    ax.set(xlabel="δ", ylabel="ε", xscale="log")
    ax.set_ylim(bottom=0)
    ax.legend()
    return ax


def _protects(guarantee: Guarantee) -> None:
    if not isinstance(guarantee, Guarantee):
        raise ValueError(f"guarantee: found {type(guarantee).__name__}; give the guarantee_ of a fitted estimator")
    if guarantee.lab:
        raise ValueError("guarantee: found that of a lab run, which promises nothing; give that of a fit with a budget")


def _true_positives(guarantee: Guarantee, fpr: NDArray[np.float64]) -> NDArray[np.float64]:
    """The most true positives at each false positive rate: by ε and δ, and by μ where it is known."""
    _protects(guarantee)
    tpr = np.minimum(math.exp(guarantee.epsilon) * fpr + guarantee.delta, 1 - math.exp(-guarantee.epsilon) * (1 - guarantee.delta - fpr))
    tpr = np.minimum(tpr, 1)
    if guarantee.mu is not None:
        tpr = np.minimum(tpr, ndtr(ndtri(fpr) + guarantee.mu) + (guarantee.outside or 0))
    return tpr


def _epsilon(mu: float, delta: float) -> float:
    """ε of μ-Gaussian differential privacy at a δ (Dong, Roth and Su 2022, corollary 2.13), rounded up."""
    low, high = 0.0, 1.0
    while _delta(mu, high) > delta:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _delta(mu, middle) > delta else (low, middle)
    return high


def _delta(mu: float, epsilon: float) -> float:
    return float(ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu))
