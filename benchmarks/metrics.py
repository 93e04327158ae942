"""Metrics of one list of 2,000,000 rows, 0.2% positive, against scikit-learn's; then the bootstrap.

Each is compared with scikit-learn's function of the same metric; `evaluate`, which computes all of
them, with one `average_precision_score`.
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score

from benchmarks.common import medians, report, seconds
from toprank import metrics


def make_rows(n: int, rate: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = (rng.random(n) < rate).astype(np.int64)
    return y, rng.normal(size=n) + 2 * y


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="200,000 rows")
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    n = 200_000 if options.quick else 2_000_000
    y, scores = make_rows(n, 0.002)

    def their_precision() -> float:
        return average_precision_score(y, scores)

    cases = {
        "roc_auc": (
            lambda: metrics.roc_auc(y, scores),
            lambda: roc_auc_score(y, scores),
            0.25,
        ),
        "average_precision": (
            lambda: metrics.average_precision(y, scores),
            their_precision,
            0.25,
        ),
        "partial_auc(0, 0.1), McClish": (
            lambda: metrics.partial_auc(y, scores, standardize="mcclish"),
            lambda: roc_auc_score(y, scores, max_fpr=0.1),
            0.25,
        ),
        "evaluate: all metrics, no intervals": (
            lambda: metrics.evaluate(y, scores, intervals=None),
            their_precision,
            0.6,
        ),
    }
    print(f"{n:,} rows, {int(y.sum()):,} positives, medians of {options.repeats}")
    for name, (ours, theirs, bar) in cases.items():
        ours()  # compile
        times = medians({"ours": ours, "theirs": theirs}, options.repeats)
        report(name, times["ours"], times["theirs"], bar)

    print("1,000 resamples of 100,000 rows, one thread: average_precision, and all metrics")
    for rate in (0.002, 0.1, 0.5):
        rows = make_rows(100_000, rate)
        metrics.evaluate(*rows, n_resamples=1)
        one = seconds(lambda rows=rows: metrics.interval("average_precision", *rows, n_jobs=1))
        every = seconds(lambda rows=rows: metrics.evaluate(*rows, n_jobs=1))
        print(f"{rate:>8.1%} positive {one:32.2f} s {every:10.2f} s", flush=True)


if __name__ == "__main__":
    main()
