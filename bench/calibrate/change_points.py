#!/usr/bin/env python3
"""Apache Otava's change points on the series that calibrate_sequential writes, with its default options.

    cargo run --release -p fstone-stats --example calibrate_sequential 1000 series.csv
    python3 -m venv otava && otava/bin/pip install apache-otava && otava/bin/python bench/calibrate/change_points.py series.csv

A series is found to change when there is any change point in it. The first half is before, the second half after.
"""

import sys
from importlib.metadata import version

from otava.series import AnalysisOptions, Metric, Series


def changes(figures):
    series = Series("device", None, list(range(len(figures))), {"rate": Metric(1, 1.0)}, {"rate": figures}, {})
    return bool(series.analyze(AnalysisOptions()).change_points["rate"])


def main(path):
    of = {}
    for line in open(path, encoding="utf-8"):
        factor, *figures = map(float, line.split(","))
        of.setdefault(factor, []).append(figures)
    print(f"Apache Otava {version('apache-otava')}, default options\n")
    print("| figures before and after | " + " | ".join(f"found at a factor of {factor}" for factor in of) + " |")
    print("|--:|" + "--:|" * len(of))
    half = min(len(figures) for all_of in of.values() for figures in all_of) // 2
    for kept in (half // 2, half):
        shares = [
            sum(changes(figures[half - kept : half + kept]) for figures in all_of) / len(all_of) for all_of in of.values()
        ]
        print(f"| {kept} | " + " | ".join(f"{100 * share:.1f} %" for share in shares) + " |")


main(sys.argv[1])
