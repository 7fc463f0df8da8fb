"""Selects features that correlate with the time and clusters redundant ones.

This is an independent implementation of the rules of profiler/src/cluster:
hierarchical agglomerative clustering with average linkage and the distance
1 - |correlation| (section 3.2, step 4, of the paper).
"""

import numpy as np
import pandas as pd

# A positive feature whose largest value is at least this multiple of its smallest
# is replaced by its logarithm.
WIDE = 4.0
# A feature with a smaller relative variation is constant.
CONSTANT = 1e-9
# Features at a smaller distance are redundant.
REDUNDANT = 0.01
# Features that a smaller fraction of the runs has are ignored.
COVERAGE = 0.8
# Decrement of the correlation threshold.
STEP = 0.05

COLOURS = ["#4477aa", "#ee7733", "#228833", "#aa3377", "#997700", "#332288"]


def features(runs):
    """The features that vary, one per column, on the scale of the comparison.

    Includes the features that most runs have, and the runs that have all of
    these. Counters and traces are totals of a run and become means per step."""
    enough = COVERAGE * len(runs)
    names = [name for name in runs.columns if "." in name and runs[name].count() >= enough]
    known = runs.dropna(subset=names)
    columns = {}
    for name in names:
        values = known[name].astype(float)
        if name.startswith(("counter.", "trace.")) and not name.endswith("_ratio"):
            values = values / known["steps"]
        if values.max() - values.min() <= CONSTANT * values.abs().max():
            continue
        wide = values.min() > 1e-12 and values.max() >= WIDE * values.min()
        columns[name] = np.log(values) if wide else values
    return pd.DataFrame(columns, index=known.index)


def correlations(columns, seconds):
    """Correlation of each feature with the logarithm of the runs' times."""
    return columns.corrwith(np.log(seconds[columns.index]))


def variances(columns):
    """Variance of each feature, normalised to [0, 1]."""
    return columns.var(ddof=0) / (columns.max() - columns.min()) ** 2


def merges(columns):
    """The dendrogram of the features: (left, right, distance) of each merge, by
    increasing distance. For n features, cluster i < n is feature i, and cluster
    n + s is the result of merge s."""
    distance = 1 - columns.corr().abs().to_numpy(copy=True)
    members = {i: [i] for i in range(len(columns.columns))}
    steps = []
    while len(members) > 1:
        pairs = [(a, b) for a in members for b in members if a < b]
        linkage = [distance[np.ix_(members[a], members[b])].mean() for a, b in pairs]
        nearest = int(np.argmin(linkage))
        left, right = pairs[nearest]
        joined = members.pop(left) + members.pop(right)
        members[len(columns.columns) + len(steps)] = joined
        steps.append((left, right, max(linkage[nearest], 0.0)))
    return steps


def cut(count, steps, clusters):
    """Cuts the dendrogram into `clusters` clusters, each a list of features."""
    members = {i: [i] for i in range(count)}
    for number, (left, right, _) in enumerate(steps[: max(count - clusters, 0)]):
        members[count + number] = members.pop(left) + members.pop(right)
    return sorted(sorted(cluster) for cluster in members.values())


def select(columns, seconds, clusters, threshold):
    """Selects the features whose correlation with the time reaches a threshold.

    Lowers the threshold until at least `clusters` of them are not redundant.
    Returns their names, the dendrogram and the final threshold, or None."""
    strength = correlations(columns, seconds).abs()
    while True:
        passing = columns[strength.index[strength >= threshold]]
        steps = merges(passing)
        redundant = sum(distance <= REDUNDANT for _, _, distance in steps)
        if len(passing.columns) - redundant >= clusters:
            return list(passing.columns), steps, threshold
        if threshold <= 0:
            return None
        threshold = max(round((threshold - STEP) / STEP) * STEP, 0.0)


def representatives(columns, groups):
    """The feature with the largest variance in each cluster; the first name if
    several are equal."""
    variance = variances(columns)

    def of(group):
        largest = variance[group].max()
        return min(name for name in group if variance[name] >= largest * (1 - 1e-9))

    return [of(group) for group in groups]


def draw(axis, names, steps, groups, kept):
    """Draws the dendrogram with leaves on the left and one colour per cluster. The
    names in `kept` are marked with a star."""
    count = len(names)
    order = leaves(count, steps)
    y = {leaf: float(position) for position, leaf in enumerate(order)}
    x = dict.fromkeys(range(count), 0.0)
    palette = {name: COLOURS[i % len(COLOURS)] for i, group in enumerate(groups) for name in group}
    colour = {i: palette[name] for i, name in enumerate(names)}
    for number, (left, right, distance) in enumerate(steps):
        both = colour[left] if colour[left] == colour[right] else "#888888"
        for side in (left, right):
            axis.plot([x[side], distance], [y[side]] * 2, color=colour[side])
        axis.plot([distance] * 2, [y[left], y[right]], color=both)
        cluster = count + number
        y[cluster] = (y[left] + y[right]) / 2
        x[cluster], colour[cluster] = distance, both
    labels = [f"{names[leaf]} ★" if names[leaf] in kept else names[leaf] for leaf in order]
    axis.set_yticks(range(count), labels, fontsize=8)
    for tick, leaf in zip(axis.get_yticklabels(), order):
        tick.set_color(colour[leaf])
    axis.set_ylim(count - 0.5, -0.5)
    axis.set_xlabel("distance: 1 - |correlation|")


def leaves(count, steps):
    """The order of the features from top to bottom in which no branches cross."""

    def below(cluster):
        if cluster < count:
            return [cluster]
        left, right, _ = steps[cluster - count]
        return below(left) + below(right)

    return below(count + len(steps) - 1)
