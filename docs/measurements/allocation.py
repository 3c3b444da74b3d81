"""Random allocation beside Poisson sampling: epsilon of epochs of b batches, Gaussian noise, add-or-remove.

A record is in one of b batches of an epoch, by its own coin. Given the other records the epoch's ratio of densities with and
without it is M = (1/b) sum exp(x_t/s - 1/(2 s^2)), x_t standard normal without the record. Both directions need the law of M
alone: delta = E (M-g)+ and E (1-gM)+, convex in M, so a spread of its mass that keeps the mean is an upper bound. Sums of the b
terms are taken by halves on a grid of ln M. Compositions of epochs by FFT, losses rounded up. Needs numpy and dp-accounting."""
import sys, time
import numpy as np
from math import erfc, sqrt
from dp_accounting import pld as _p
from dp_accounting.pld import privacy_loss_distribution as pldist

def spread(values, mass, lo, h, n):
    """Mass on the grid exp(lo+h k), each split between two neighbors so that its mean is kept."""
    k = np.clip(np.floor((np.log(values) - lo) / h).astype(np.int64), 0, n - 2)
    a, b = np.exp(lo + h * k), np.exp(lo + h * (k + 1))
    w = np.clip((values - a) / (b - a), 0, 1)
    return np.bincount(k, mass * (1 - w), n) + np.bincount(k + 1, mass * w, n)

def law(b, s, h=0.004, z=9.5):
    """The law of the mean of b terms: grid of values and masses."""
    x = np.linspace(-z, z, 40001)
    edges = (x[1:] + x[:-1]) / 2
    cdf = np.array([erfc(-v / sqrt(2)) / 2 for v in edges])
    mass = np.diff(np.concatenate(([0], cdf, [1])))
    one = np.exp(x / s - 1 / (2 * s * s)); one /= (one * mass).sum()
    def fit(v, m):
        keep = m > 1e-18
        v, m = v[keep], m[keep]
        lo, hi = np.log(v.min()) - h, np.log(v.max()) + 2 * h
        n = int((hi - lo) / h) + 2
        g = spread(v, m, lo, h, n)
        return np.exp(lo + h * np.arange(n)), g
    def add(p, q):
        v = (p[0][:, None] + q[0][None, :]).ravel(); m = (p[1][:, None] * q[1][None, :]).ravel()
        return fit(v, m)
    unit = fit(one, mass); total, power, k = None, unit, b
    while k:
        if k & 1: total = power if total is None else add(total, power)
        k >>= 1
        if k: power = add(power, power)
    return total[0] / b, total[1]

def epsilon(loss, mass, epochs, delta, h=2.5e-4):
    k = np.ceil(loss / h).astype(int)
    lo = k.min()
    p = np.bincount(k - lo, mass)
    n = 1 << int(np.ceil(np.log2(len(p) * epochs + 1)))  # no wrap
    f = np.maximum(0, np.fft.irfft(np.fft.rfft(p, n) ** epochs, n))
    S = (lo * epochs + np.arange(n)) * h
    low, high = 0., float(S[-1])
    for _ in range(60):
        mid = (low + high) / 2
        m = S > mid
        if (f[m] * -np.expm1(mid - S[m])).sum() > delta:
            low = mid
        else:
            high = mid
    return high

def allocation(b, s, epochs, delta):
    v, m = law(b, s)
    L = np.log(v)
    remove = epsilon(L, m * v, epochs, delta)          # under the law with the record
    add = epsilon(-L, m, epochs, delta)
    return max(remove, add), remove, add

def poisson(b, s, epochs, delta):
    p = pldist.from_gaussian_mechanism(s, sampling_prob=1 / b, value_discretization_interval=1e-4)
    return p.self_compose(b * epochs).get_epsilon_for_delta(delta)

if __name__ == "__main__":
    delta = 1e-5
    print("| b | epochs | σ | allocation | remove, add | Poisson | ratio |\n|---|---|---|---|---|---|---|")
    for b, epochs in ((16, 10), (100, 10), (234, 10), (234, 60)):
        for s in (0.6, 0.8, 1., 1.5, 3.):
            t = time.time()
            e, r, a = allocation(b, s, epochs, delta); p = poisson(b, s, epochs, delta)
            print(f"| {b} | {epochs} | {s} | {e:.3f} | {r:.3f}, {a:.3f} | {p:.3f} | {e/p:.3f} |", flush=True)
