"""RankSVM against scikit-learn's LinearSVC, and how the margin methods grow to a million rows.

LinearSVC sees the same matrix with relevant against the rest: it has no queries. Bars: RankSVM per query
on MQ2008 and on a generated set of MQ2007's shape, at most 1.5 times LinearSVC (median of 5); from 125,000
to 1,000,000 rows, log-log slope of time at most 1.25 and peak memory at most four times the matrix + 300
bytes a row + 300 MB, kernels through Nyström.

    python -m benchmarks.margin [--quick]
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.svm import LinearSVC

from benchmarks.common import SIZES, in_own_process, medians, report, report_growth
from experiments.common import use_local_data
from toprank import RankLS, RankSVM, datasets

KERNEL_METHODS = {
    "RankSVM linear": ("RankSVM", {}),
    "RankSVM linear, hinge": ("RankSVM", {"loss": "hinge", "tol": 1e-4}),
    "RankLS linear": ("RankLS", {}),
    "RankSVM rbf": ("RankSVM", {"kernel": "rbf", "random_state": 0}),
    "RankLS rbf": ("RankLS", {"kernel": "rbf", "random_state": 0}),
    "KernelLogisticRanker rbf": ("KernelLogisticRanker", {"random_state": 0}),
}


def query_sets() -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """MQ2008 if the data folder has it, and a set of MQ2007's shape."""
    sets = {}
    try:
        mq2008 = datasets.load("letor_mq2008")
    except (OSError, ValueError) as missing:
        print(f"MQ2008 is not here: {missing}")
    else:
        sets["MQ2008"] = np.asarray(mq2008.X, float), np.asarray(mq2008.y), np.asarray(mq2008.qid)
    sets["MQ2007's shape"] = datasets.make_queries(1_700, 69_623 / 1_700, random_state=0)
    return sets


def compare_with_linear_svc(repeats: int) -> None:
    for name, (X, y, qid) in query_sets().items():
        RankSVM().fit(X[:2000], y[:2000], qid=qid[:2000])  # compile
        RankSVM(loss="hinge").fit(X[:2000], y[:2000], qid=qid[:2000])
        times = medians(
            {
                "theirs": lambda X=X, y=y: LinearSVC().fit(X, y > 0),
                "ours": lambda X=X, y=y, qid=qid: RankSVM().fit(X, y, qid=qid),
                "hinge": lambda X=X, y=y, qid=qid: RankSVM(loss="hinge", tol=1e-4).fit(
                    X, y, qid=qid
                ),
                "least squares": lambda X=X, y=y, qid=qid: RankLS(alpha=1.0).fit(X, y, qid=qid),
            },
            repeats,
        )
        report(f"RankSVM, {name} {X.shape}", times["ours"], times["theirs"], 1.5)
        report("  with the hinge, gap 1e-4", times["hinge"], times["theirs"])
        report("  RankLS, alpha given", times["least squares"], times["theirs"])


def growth(sizes: tuple[int, ...]) -> None:
    for label, (name, settings) in KERNEL_METHODS.items():
        fits = [in_own_process("benchmarks.growth", name, n, settings) for n in sizes]
        report_growth(label, sizes, fits)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="three repeats, up to 250,000 rows")
    options = parser.parse_args()
    use_local_data()
    compare_with_linear_svc(3 if options.quick else 5)
    growth(SIZES[:2] if options.quick else SIZES)


if __name__ == "__main__":
    main()
