"""Correlated beside independent noise for steps of 2,048 of 60,000 rows: noise, errors, and the cells of training runs.

    pip install dp-accounting numpy scipy && python docs/measurements/correlated_noise.py STEPS > cells.json

The released gradients are x + s inv(C) z: x the clipped sums, z standard normal, C lower triangular with columns of norm 1
(of a Toeplitz C, the longest), s the noise multiplier for the epsilon. Two ways to sample have an account:

cyclic   C has b bands. Records are in b groups, each by its own coin; step t samples group t mod b at rate b q. A record then
         moves b rows of C x, others at each of its steps, by 1 at most: T/b sampled Gaussians (Choquette-Choo and others
         2023, arXiv 2306.08153, theorem 4), by dp_accounting's privacy loss distributions, pessimistic.
bins     Any nonnegative C. Each record is in one of b bins, by its own coin, and all of bin t mod b is in step t. The pair is
         the mean over bins j of N(m_j, s^2), m_j the sum of the bin's columns, beside N(0, s^2) (Choquette-Choo and others
         2024, arXiv 2410.06266). Its delta is an integral over b numbers, taken here by importance sampling: an estimate.

For b bands ||C||^2 <= b: columns b apart have no row in common, so ||C v|| <= sum over r < b of ||v_r|| <= sqrt(b) ||v||, v_r
the entries r mod b. Hence the noise has the covariance s^2 inv(C'C) >= s^2/b: independent noise of s/sqrt(b), and more."""
import json
import sys

import numpy as np
from dp_accounting import PoissonSampledDpEvent, GaussianDpEvent
from dp_accounting.pld import PLDAccountant
from scipy.optimize import brentq, minimize
from scipy.signal import lfilter

STEPS = int(sys.argv[1])
ROWS, BATCH, DELTA, BINS = 60000, 2048, 1e-5, 30
BANDS = [b for b in range(1, 26) if STEPS % b == 0]  # at most ROWS/BATCH
BINNED = 5, 10, 15, 25
LAMBDAS = 0.5, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95
MU = {1: 0.27, 3: 0.72}  # about what is as much under Gaussian DP
ONE = np.eye(1, STEPS)[0]

def inverse(c):
    """The first column of inv(C) for the Toeplitz C with first column c."""
    return lfilter([1], c, ONE)

def errors(c):
    """Root mean square errors per unit of s: of prefix sums, of the last, of the mean of the last half. The columns of C have norm 1."""
    norm, p = np.linalg.norm(c), np.cumsum(inverse(c))  # p_k: what z has k steps later in a prefix sum
    weight = np.arange(STEPS, 0, -1)
    prefix = np.sqrt((weight * p * p).sum() / STEPS)
    q, half = np.concatenate(([0], np.cumsum(p))), STEPS // 2
    t = np.arange(STEPS)  # the number of steps after which z_t enters; iterate T comes after step T
    tail = (q[STEPS - t] - q[np.maximum(half - t, 0)]) / (STEPS - half)
    return np.array([prefix, np.sqrt((p * p).sum()), np.sqrt((tail * tail).sum())]) * norm

def bands(b):
    """The Toeplitz C of b bands with the least error of prefix sums."""
    weight = np.arange(STEPS, 0, -1)
    def loss(rest):
        c = np.concatenate(([1], rest))
        with np.errstate(all="ignore"):
            h = inverse(c)
            p = np.cumsum(h)
            e, square, r = (weight * p * p).sum(), c @ c, np.convolve(p, h)[:STEPS]
            g = [2 * c[k] / square - 2 * (weight[k:] * p[k:] * r[:STEPS - k]).sum() / e for k in range(1, b)]
        f = np.log(e * square)
        return (f, np.array(g)) if np.isfinite(f) and np.isfinite(g).all() else (100, np.zeros(b - 1))
    k = np.arange(1, b)
    start = np.cumprod((2 * k - 1) / (2 * k))  # the square root of the matrix of prefix sums
    return np.concatenate(([1], minimize(loss, start, jac=True, method="BFGS").x)) if b > 1 else np.ones(1)

def cyclic(b, epsilon):
    """Noise of b bands."""
    def excess(s):
        a = PLDAccountant(value_discretization_interval=1e-4)
        a.compose(PoissonSampledDpEvent(b * BATCH / ROWS, GaussianDpEvent(s)), STEPS // b)
        return a.get_epsilon(DELTA) - epsilon
    about = np.sqrt(b * STEPS) * BATCH / ROWS / MU[epsilon]
    return brentq(excess, 0.8 * about, 1.6 * about, xtol=1e-4 * about)

def gram(c):
    """Inner products of the bins' means, of which C has columns of norm 1 (the longest)."""
    column = np.concatenate((c, np.zeros(STEPS)))[:STEPS] / np.linalg.norm(c)
    comb = np.zeros((STEPS, BINS))
    for j in range(BINS):
        comb[j::BINS, j] = 1
    m = lfilter(column, [1], comb, axis=0)
    return m.T @ m

def bins(c, epsilon, n=100_000):
    """Noise of a Toeplitz C with bins: the larger of both directions. Samples are moved along the mean of the means."""
    g = gram(c)
    root = np.linalg.cholesky(g + 1e-9 * g.trace() / BINS * np.eye(BINS))
    r = np.random.default_rng(1)
    z = r.standard_normal((n, BINS)) @ root.T
    pick = r.integers(BINS, size=n)
    along, size = g.mean(1), g.mean()
    def ratio(y, s, by=0.0):
        """ln of the mixture whose means are moved by `by` times the mean, over N(0, s^2), at y = projections on the means."""
        e = (y + by * y.mean(1, keepdims=True)) / s**2 - (g.diagonal() + 2 * by * along + by * by * size) / (2 * s * s)
        top = e.max(1, keepdims=True)
        return (top + np.log(np.exp(e - top).mean(1, keepdims=True)))[:, 0]
    def delta(s):
        k = 3 * s / np.sqrt(size)  # three standard deviations along the mean
        y = s * z + g[pick] + k * along
        l = ratio(y, s)
        remove = np.maximum(0, np.exp(l - ratio(y, s, k)) * -np.expm1(np.minimum(0, epsilon - l)))
        y = s * z - k * along
        w = -k * y.mean(1) / s**2 - k * k * size / (2 * s * s)  # ln of the moved over N(0, s^2)
        add = np.maximum(0, np.exp(-w) * -np.expm1(np.minimum(0, epsilon + ratio(y, s))))
        return max(remove.mean(), add.mean())
    low, high = 0.8 * np.sqrt(size) / MU[epsilon], 1.2 * np.sqrt(g.max()) / MU[epsilon]
    return brentq(lambda s: np.log(max(delta(s), 1e-30) / DELTA), low, high, rtol=1e-3)

def main():
    say = lambda text: print(text, file=sys.stderr, flush=True)
    one, cells = errors(np.ones(1)), []
    for epsilon in 1, 3:
        say(f"\nε = {epsilon}\n\n| C | samples | σ | prefix sums | last | tail average | any C of so many bands |\n|---|---|---|---|---|---|---|")
        single = cyclic(1, epsilon)
        rows = []
        for sampling, c, name in [("cyclic", bands(b), f"{b} bands") for b in BANDS] + \
                [("bins", l ** np.arange(STEPS), f"λ = {l}") for l in LAMBDAS] + [("bins", bands(b), f"{b} bands") for b in BINNED]:
            s = cyclic(len(c), epsilon) if sampling == "cyclic" else bins(c, epsilon)
            ratio = s * errors(c) / (single * one)
            rows.append((sampling, name, s, c, ratio))
            bound = f"{s / np.sqrt(len(c)) / single:.3f}" if sampling == "cyclic" else ""
            say(f"| {name} | {sampling} | {s:.4g} | {ratio[0]:.3f} | {ratio[1]:.3f} | {ratio[2]:.3f} | {bound} |")
        banded = min((r for r in rows[1:] if r[0] == "cyclic"), key=lambda r: r[4][0])
        one_step = min((r for r in rows if r[1][0] == "λ"), key=lambda r: r[4][0])
        least = min([r[4].min() for r in rows] + [r[2] / np.sqrt(len(r[3])) / single for r in rows if r[0] == "cyclic"])
        norm = np.linalg.norm(one_step[3])
        cells += [
            {"Name": "independent", "Epsilon": epsilon, "Steps": STEPS, "Groups": 1, "Scale": single, "Fresh": [1]},
            {"Name": banded[1], "Epsilon": epsilon, "Steps": STEPS, "Groups": len(banded[3]), "Scale": banded[2] * np.linalg.norm(banded[3]), "Fresh": [1], "Past": list(banded[3][1:])},
            {"Name": one_step[1], "Epsilon": epsilon, "Steps": STEPS, "Groups": BINS, "Whole": True, "Scale": one_step[2] * norm, "Fresh": [1, -one_step[3][1]]},
            {"Name": f"independent × {least:.3f}", "Epsilon": epsilon, "Steps": STEPS, "Groups": 1, "Scale": least * single, "Fresh": [1]}]
    json.dump(cells, sys.stdout, ensure_ascii=False, indent=1)

if __name__ == "__main__":
    main()
