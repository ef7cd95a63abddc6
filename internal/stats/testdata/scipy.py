#!/usr/bin/env python3
"""Writes scipy.json: what SciPy, NumPy and statsmodels say of fixed samples.

    python3 -m venv /tmp/v && /tmp/v/bin/pip install scipy==1.17.1 numpy==2.4.6 statsmodels==0.15.0
    /tmp/v/bin/python scipy.py > scipy.json

The Go tests read only the JSON. Values that SciPy does not have (geometric
mean ratios, rank-biserial correlation, needed iterations) are worked out here
from its distributions, by another way than in Go.
"""
import json
import platform
import sys

del sys.path[0]  # this folder: "import scipy" would find this very file

import numpy as np
import scipy
import statsmodels
from scipy import stats
from statsmodels.stats.multitest import multipletests

rng = np.random.default_rng(20150817)
LEVELS = [0.8, 0.95, 0.99]


def f(x):
    """A float, or None where SciPy has no value."""
    x = float(x)
    return x if np.isfinite(x) else None


SAMPLES = {
    "two": [194.15, 175.56],
    "three": [52.1, 49.875, 51.25],
    "breedy averages": [260.42, 347.02, 238.06, 257.98, 311.85, 366.41, 182.57, 196.77, 97.15, 57.54],
    "ten, normal": list(rng.normal(190, 8, 10)),
    "ten, skewed": list(rng.lognormal(3, 1, 10)),
    "with ties": [1.0, 2, 2, 2, 3, 5, 5, 8, 13, 13, 13, 21],
    "both signs": list(rng.normal(0, 1, 25)),
    "large offset": [1e9 + x for x in (4.0, 7, 13, 16)],
    "hundred": list(rng.gamma(2, 40, 100)),
}


def needed(x, level, relative):
    m, sd = abs(np.mean(x)), np.std(x, ddof=1)
    for n in range(2, 1_000_001):
        if stats.t.ppf((1 + level) / 2, n - 1) * sd / np.sqrt(n) <= relative * m:
            return n
    return None


def sample(name, x):
    x = np.asarray(x, float)
    n = len(x)
    ps = [0, 2.5, 5, 25, 33.3, 50, 75, 90, 97.5, 100]
    return {
        "name": name, "x": list(map(float, x)),
        "mean": f(np.mean(x)), "min": f(x.min()), "max": f(x.max()),
        "sd": f(np.std(x, ddof=1)), "median": f(np.median(x)),
        "percentiles": [{"p": p, "value": f(np.percentile(x, p))} for p in ps],
        "t": [dict(level=l, low=f(iv[0]), high=f(iv[1])) for l in LEVELS
              for iv in [stats.t.interval(l, n - 1, loc=np.mean(x), scale=stats.sem(x))]],
        "needed": [dict(level=0.95, relative=r, n=needed(x, 0.95, r)) for r in (0.5, 0.1, 0.05)] if n <= 25 and abs(np.mean(x)) > 1 else [],
    }


def bootstrap(name, x, level, resamples):
    x = np.asarray(x, float)
    r = stats.bootstrap((x,), np.mean, n_resamples=resamples, confidence_level=level, method="BCa", rng=np.random.default_rng(7))
    many = stats.bootstrap((x,), np.mean, n_resamples=200_000, batch=10_000, confidence_level=level, method="BCa", rng=np.random.default_rng(8))
    return {"name": name, "x": list(map(float, x)), "level": level, "observed": f(np.mean(x)),
            "means": [f(v) for v in r.bootstrap_distribution],
            "low": f(r.confidence_interval.low), "high": f(r.confidence_interval.high),
            # with so many resamples that chance is small beside the width
            "many_low": f(many.confidence_interval.low), "many_high": f(many.confidence_interval.high)}


def signed_rank(name, d, how):
    d = np.asarray(d, float)
    if how == "permutation":  # all 2^n assignments of signs
        method = stats.PermutationMethod(n_resamples=np.inf, batch=4096)
    else:
        method = how
    r = stats.wilcoxon(d, zero_method="wilcox", correction=True, method=method)
    nz = d[d != 0]
    ranks = stats.rankdata(np.abs(nz))
    plus, minus = ranks[nz > 0].sum(), ranks[nz < 0].sum()
    return {"name": name, "how": how, "d": list(map(float, d)), "statistic": f(r.statistic), "p": f(r.pvalue),
            "w_plus": f(plus), "w_minus": f(minus), "rank_biserial": f((plus - minus) / (plus + minus))}


def pairs(name, a, b, level):
    a, b = np.asarray(a, float), np.asarray(b, float)
    d, g = b - a, np.log(b / a)
    di = stats.ttest_rel(b, a).confidence_interval(level)
    gi = stats.ttest_1samp(g, 0).confidence_interval(level)
    return {"name": name, "reference": list(map(float, a)), "value": list(map(float, b)), "level": level,
            "difference": f(d.mean()), "difference_low": f(di.low), "difference_high": f(di.high),
            "ratio": f(stats.gmean(b / a)), "ratio_low": f(np.exp(gi.low)), "ratio_high": f(np.exp(gi.high)),
            "p": f(stats.wilcoxon(b, a).pvalue)}


def welch(name, a, b, level):
    r = stats.ttest_ind(b, a, equal_var=False)
    iv = r.confidence_interval(level)
    return {"name": name, "reference": list(map(float, a)), "value": list(map(float, b)), "level": level,
            "difference": f(np.mean(b) - np.mean(a)), "low": f(iv.low), "high": f(iv.high), "p": f(r.pvalue)}


def jain(name, x):
    # By the coefficient of variation, as Jain, Chiu and Hawe (1984) relate the two.
    return {"name": name, "x": list(map(float, x)), "index": f(1 / (1 + stats.variation(x) ** 2))}


normal = lambda n, m=0.3: list(rng.normal(m, 1, n))
halves = lambda n: list(np.round(rng.normal(0.4, 1.5, n) * 2) / 2)
a10, b10 = rng.normal(190, 8, 10), rng.normal(200, 20, 10)

out = {
    "versions": {"python": platform.python_version(), "numpy": np.__version__, "scipy": scipy.__version__, "statsmodels": statsmodels.__version__},
    "samples": [sample(k, v) for k, v in SAMPLES.items()],
    "bootstraps": [bootstrap("ten, skewed", SAMPLES["ten, skewed"], 0.95, 499),
                   bootstrap("breedy averages", SAMPLES["breedy averages"], 0.9, 300),
                   bootstrap("hundred", SAMPLES["hundred"], 0.95, 200),
                   bootstrap("three", SAMPLES["three"], 0.95, 100)],
    "wilson": [dict(k=k, n=n, level=l, low=f(iv.low), high=f(iv.high)) for k, n in
               [(0, 1), (1, 1), (0, 10), (1, 10), (5, 10), (10, 10), (3, 40), (199, 200)] for l in LEVELS
               for iv in [stats.binomtest(k, n).proportion_ci(l, method="wilson")]],
    "wilcoxon": [signed_rank("one", [2.5], "exact"), signed_rank("three, one side", [1.0, 2, 3], "exact"),
                 signed_rank("ten", normal(10), "exact"), signed_rank("ten, negative", normal(10, -1), "exact"),
                 signed_rank("thirty", normal(30), "exact"), signed_rank("fifty", normal(50), "exact"),
                 signed_rank("even", [1.0, -2, -3, 4], "exact"),
                 signed_rank("three with a zero", [0.0, 1, 2], "permutation"),
                 signed_rank("ties", [1.0, 1, -1, 2, 2, 3, -3, 4], "permutation"),
                 signed_rank("ties and zeros", [0.0, 0, 1, 1, -1, 2, 2, 3, -3, 4, 0], "permutation"),
                 signed_rank("halves, 12", halves(12), "permutation"), signed_rank("halves, 16", halves(16), "permutation"),
                 signed_rank("fifty-one", normal(51), "asymptotic"), signed_rank("hundred", normal(100, 0.1), "asymptotic"),
                 signed_rank("halves, 120", halves(120), "asymptotic"),
                 signed_rank("balanced, 60", [s * (i + 1.0) for i in range(60) for s in [1 if i % 4 in (0, 3) else -1]], "asymptotic")],
    "pairs": [pairs("ten", a10, b10, 0.95), pairs("three", [50.0, 52, 51], [75.0, 73, 80], 0.95), pairs("two", [50.0, 52], [75.0, 73], 0.9)],
    "holm": [dict(p=p, adjusted=[f(v) for v in multipletests(p, method="holm")[1]]) for p in
             ([0.04], [0.01, 0.04, 0.03, 0.005], [0.5, 0.5, 0.5], [0.0, 1.0, 0.2, 0.2, 0.019], [0.9, 0.001, 0.6])],
}
out["welch"] = [welch("breedy averages", SAMPLES["breedy averages"][:5], SAMPLES["breedy averages"][5:], 0.95),
                welch("unequal numbers", SAMPLES["ten, normal"], SAMPLES["hundred"], 0.99),
                welch("unequal spreads", rng.normal(190, 1, 8), rng.normal(192, 30, 12), 0.95),
                welch("two each", SAMPLES["two"], [201.5, 188.25], 0.8),
                welch("large offset", SAMPLES["large offset"], [1e9 + x for x in (6.0, 7, 19, 21, 30)], 0.95)]
out["jain"] = [jain("two", SAMPLES["two"]), jain("breedy averages", SAMPLES["breedy averages"]), jain("skewed", SAMPLES["ten, skewed"]),
               jain("hundred", SAMPLES["hundred"]), jain("one has nearly all", [1e-9, 1e-9, 5e3]), jain("some have none", [0, 3, 0, 4, 5])]
json.dump(out, sys.stdout, indent=1)
print()
