"""Relational clauses against their bars.

    python -m benchmarks relational [--quick] [--only training|growth|hub|speed] [--install-prolog]

- Coverage of candidate clauses on 281,071 generated examples: clauses evaluated a second at least 100 times
  those of SWI-Prolog on the same clauses, with the same answers. Both on one thread, in CPU time, with the
  facts loaded and nothing computed beforehand. `--install-prolog` installs SWI-Prolog with apt where it is
  missing; without it that part is left out.
- 100 weak learners on the same examples (skew 1:149) train in minutes and find the planted rule, within
  4 times the examples' arguments + 300 bytes an example + 300 MB of memory.
- From 125,000 to 1,000,000 examples the log-log slope of the time is at most 1.25, also where a link column
  has two values only (a hub, which joins half of all persons with one another).
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.common import SIZES, in_own_process, measured, report, report_growth
from toprank import Mode, RelationalData, RelationalPRankBoost
from toprank.datasets import make_relational
from toprank.rules.boosters import PRankBooster
from toprank.rules.relational.clause import (
    Atom,
    Body,
    Clause,
    CodedAtom,
    CodedLiteral,
    Constant,
    decode,
)
from toprank.rules.relational.coverage import Coverage, HeadSet
from toprank.rules.relational.search import RelationalLimits, RelationalSource

SPEED_BAR = 100.0
Step = tuple[Body, list[CodedAtom]]


class Recorder(Coverage):
    """Coverage that records which clauses of atoms a search asks for: those that Prolog can answer, too."""

    def __init__(self, *arguments, **keywords) -> None:
        super().__init__(*arguments, **keywords)
        self.steps: list[Step] = []

    def try_literals(
        self, body: Sequence[CodedLiteral], literals: Sequence[CodedLiteral], max_rows: float
    ) -> list[HeadSet | None]:
        atoms = [literal for literal in literals if isinstance(literal, CodedAtom)]
        if atoms and all(isinstance(literal, CodedAtom) for literal in body):
            self.steps.append((tuple(body), atoms))
        return super().try_literals(body, literals, max_rows)


def searched_steps(data: RelationalData, y: np.ndarray, n_rounds: int) -> list[Step]:
    """What the first rounds try, by the clause it refines: each candidate once."""
    recorder = Recorder(data.background, data.codes())
    with recorder:
        source = RelationalSource(data, recorder, RelationalLimits(), np.random.RandomState(0))
        rounds = PRankBooster(source, y)
        for _ in range(n_rounds):
            next(rounds)
    steps: dict[Body, dict[CodedAtom, None]] = {}
    for body, literals in recorder.steps:
        steps.setdefault(body, {}).update(dict.fromkeys(literals))
    return [(body, list(literals)) for body, literals in steps.items()]


def our_answers(data: RelationalData, y: np.ndarray, steps: list[Step]) -> tuple[np.ndarray, float]:
    """Positives and negatives that each clause covers, and the CPU time it took."""
    weights = np.ones(len(y))
    counts = []
    with data.background.threads(1):
        start = time.process_time()
        with Coverage(data.background, data.codes()) as coverage:
            for body, literals in steps:
                covered = coverage.mask(body)
                sets = coverage.cover_literals(body, literals)
                counts.append(np.stack(coverage.weigh(sets, covered, y > 0, weights), axis=1))
        taken = time.process_time() - start
    return np.concatenate(counts).astype(int), taken


def prolog_text(clause: Clause, number: int) -> str:
    """A clause as Prolog, its head renamed; constants quoted."""

    def show(term) -> str:
        return quoted(term.value) if isinstance(term, Constant) else str(term)

    head = f"c{number}({','.join(map(show, clause.head.terms))})"
    body = ", ".join(f"{quoted(a.predicate)}({','.join(map(show, a.terms))})" for a in clause.body)
    return f"{head} :- {body}.\n"


def quoted(value) -> str:
    return str(value) if not isinstance(value, str) else "'" + value.replace("'", "\\'") + "'"


PROLOG_MAIN = """
measure(K, Body, Head) :-
    statistics(cputime, Start),
    aggregate_all(count, (example(1, Head), once(Body)), P),
    aggregate_all(count, (example(0, Head), once(Body)), N),
    statistics(cputime, End),
    Seconds is End - Start,
    format("~w ~w ~w ~w~n", [K, P, N, Seconds]).
"""


def prolog_answers(dataset, clauses: list[Clause]) -> tuple[np.ndarray, float]:
    """The same from SWI-Prolog."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program.pl"
        with program.open("w") as stream:
            stream.write(":- style_check(-singleton).\n")
            for name, table in dataset.tables.items():
                for row in table.itertuples(index=False, name=None):
                    stream.write(f"{quoted(name)}({','.join(map(quoted, row))}).\n")
            for row, label in zip(
                dataset.examples.itertuples(index=False, name=None), dataset.y, strict=True
            ):
                stream.write(f"example({label}, e({','.join(map(quoted, row))})).\n")
            for k, clause in enumerate(clauses):
                stream.write(prolog_text(clause, k))
            stream.write(PROLOG_MAIN)
            variables = ",".join(str(t) for t in clauses[0].head.terms)
            goals = [
                f"measure({k}, c{k}({variables}), e({variables}))" for k in range(len(clauses))
            ]
            stream.writelines(f"run :- {goal}, fail.\n" for goal in goals)
            stream.write("run.\n")
        command = ["swipl", "--stack-limit=4g", "-q", "-g", "run", "-t", "halt", str(program)]
        out = subprocess.run(command, capture_output=True, text=True, check=True)
    if out.stderr.strip():
        raise RuntimeError(out.stderr)
    rows = np.array([line.split() for line in out.stdout.splitlines()], dtype=float)
    return rows[np.argsort(rows[:, 0]), 1:3].astype(int), float(rows[:, 3].sum())


def install_prolog() -> None:
    """Install SWI-Prolog from the distribution's packages."""
    subprocess.run(["apt-get", "update"], check=True, stdout=subprocess.DEVNULL)
    command = ["apt-get", "install", "-y", "--no-install-recommends", "swi-prolog-nox"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def speed_bar(dataset, n_rounds: int) -> None:
    """Clauses evaluated a second, ours and SWI-Prolog's."""
    data = RelationalData.from_dataset(dataset)
    steps = searched_steps(data, dataset.y, n_rounds)
    clauses = [
        decode((*body, literal), data.schema, data.background)
        for body, literals in steps
        for literal in literals
    ]
    fresh = RelationalData.from_dataset(dataset)
    fresh.codes()
    ours, our_time = our_answers(fresh, dataset.y, steps)
    print(
        f"{len(clauses)} clauses on {len(dataset.y):,} examples: {our_time:.2f} s of CPU, "
        f"{len(clauses) / our_time:.0f} clauses a second"
    )
    if shutil.which("swipl") is None:
        print("SWI-Prolog is not installed: run with --install-prolog for the comparison")
        return
    theirs, their_time = prolog_answers(dataset, clauses)
    different = int((ours != theirs).any(axis=1).sum())
    if different:
        raise AssertionError(f"{different} clauses cover other examples than in SWI-Prolog")
    print(f"SWI-Prolog: the same answers in {their_time:.2f} s of CPU")
    report("coverage, time over SWI-Prolog's", our_time, their_time, 1 / SPEED_BAR)


def forget_peak() -> None:
    """Let the greatest memory of the process start anew (on Linux): generating took more than it kept."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def one_fit(weak: str, n_examples: int, n_rounds: int) -> dict:
    """A whole fit, the facts not yet loaded; time, memory, and what was learnt."""
    dataset = make_relational(n_examples, random_state=0)
    small = make_relational(1_000, random_state=0)
    RelationalPRankBoost(2, weak=weak).fit(RelationalData.from_dataset(small), small.y)  # compile
    data = RelationalData.from_dataset(dataset)
    forget_peak()
    model = RelationalPRankBoost(n_rounds, weak=weak, random_state=0)
    figures = measured(lambda: model.fit(data, dataset.y))
    wanted = {name for name, _ in dataset.rule["body"]}
    clauses = [clause for kept in model.rounds_ for clause in kept.rules]
    return {
        **figures,
        "matrix": 8 * data.codes().size,
        "clauses": int(model.n_evaluated_.sum()),
        "precision": model.score(data, dataset.y),
        "found": any(
            {part.predicate for part in clause.body if isinstance(part, Atom)} == wanted
            for clause in clauses
        ),
    }


def make_hub(n_persons: int) -> tuple[RelationalData, np.ndarray]:
    """Persons with a sex, which declared modes follow in both directions, and a planted rule."""
    rng = np.random.default_rng(0)
    ids = np.arange(n_persons)
    pairs = rng.integers(0, n_persons, (2 * n_persons, 2))
    owns = rng.random(n_persons) < 0.05
    tables = {
        "person": pd.DataFrame({"id": ids, "sex": rng.choice(["f", "m"], n_persons)}),
        "knows": pd.DataFrame({"a": pairs[:, 0], "b": pairs[:, 1]}),
        "owner": pd.DataFrame({"id": ids[owns]}),
    }
    types = {"target": ["id"], "person": ["id", "sex"], "knows": ["id", "id"], "owner": ["id"]}
    modes = [
        Mode("person", ("+", "-")), Mode("person", ("-", "+")), Mode("person", ("+", "#")),
        Mode("knows", ("+", "-")), Mode("knows", ("-", "+")), Mode("owner", ("+",)),
    ]  # fmt: skip
    data = RelationalData(tables, pd.DataFrame({"id": ids}), types=types, modes=modes)
    y = np.zeros(n_persons, dtype=int)
    y[pairs[owns[pairs[:, 1]], 0]] = 1
    y ^= rng.random(n_persons) < 0.01
    return data, y


def hub_fit(n_persons: int, n_rounds: int) -> dict:
    """A fit on persons linked by their sex; time and memory."""
    small, labels = make_hub(500)
    RelationalPRankBoost(1, random_state=0).fit(small, labels)  # compile
    data, y = make_hub(n_persons)
    forget_peak()
    model = RelationalPRankBoost(n_rounds, random_state=0)
    return {**measured(lambda: model.fit(data, y)), "matrix": 8 * n_persons}


def training(n_examples: int, n_rounds: int) -> None:
    """Whole fits, each in a process of its own."""
    for weak in ("clause", "path"):
        fit = in_own_process("benchmarks.relational", weak, n_examples, n_rounds)
        allowed = 4 * fit["matrix"] + 300 * n_examples + 300e6
        print(
            f"{n_rounds} weak learners ({weak}) on {n_examples:,} examples: {fit['seconds']:.1f} s "
            f"({fit['processor']:.1f} s of CPU), {fit['clauses']:,} clauses, average precision "
            f"{fit['precision']:.3f}, planted rule {'found' if fit['found'] else 'NOT found'}, "
            f"memory {fit['bytes'] / 1e6:.0f} of {allowed / 1e6:.0f} MB "
            f"{'met' if fit['bytes'] <= allowed else 'MISSED'}",
            flush=True,
        )


def growth(name: str, kind: str, sizes: Sequence[int], n_rounds: int) -> None:
    """Time and memory against the number of examples."""
    fits = [in_own_process("benchmarks.relational", kind, n, n_rounds) for n in sizes]
    report_growth(name, sizes, fits)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the examples")
    parser.add_argument("--install-prolog", action="store_true", help="install SWI-Prolog with apt")
    parser.add_argument("--only", choices=("training", "growth", "hub", "speed"))
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        kind, *sizes = json.loads(options.child)
        print(json.dumps(hub_fit(*sizes) if kind == "hub" else one_fit(kind, *sizes)))
        return
    if options.install_prolog and shutil.which("swipl") is None:
        install_prolog()
    n_examples = 28_107 if options.quick else 281_071
    sizes = SIZES[:2] if options.quick else SIZES
    parts = {
        # first those in processes of their own: a child's greatest memory starts at its parent's
        "training": lambda: training(n_examples, n_rounds=20 if options.quick else 100),
        "growth": lambda: growth("RelationalPRankBoost", "clause", sizes, n_rounds=10),
        "hub": lambda: growth("RelationalPRankBoost with a hub", "hub", sizes, n_rounds=3),
        "speed": lambda: speed_bar(
            make_relational(n_examples, random_state=0), n_rounds=5 if options.quick else 20
        ),
    }
    for name, run in parts.items():
        if options.only in (None, name):
            run()


if __name__ == "__main__":
    main()
