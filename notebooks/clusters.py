"""Features that correlate with the time, and which of them say the same.

The rules are those of pdawl's own profiler/src/cluster, written a second time:
hierarchical agglomerative clustering by average linkage over the distance
1 - |correlation| (the paper's section 3.2, step 4).
"""

import numpy as np
import pandas as pd

# A positive feature whose largest value is so many times its smallest counts by
# its logarithm.
WIDE = 4.0
# What varies relatively less than this does not vary.
CONSTANT = 1e-9
# Features closer than this differ in name only.
SAME = 0.01
# A feature that fewer of the runs have explains too little to give up the others.
USUAL = 0.8
# By how much the threshold of correlation is lowered at a time.
STEP = 0.05

COLOURS = ["#4477aa", "#ee7733", "#228833", "#aa3377", "#997700", "#332288"]


def features(runs):
    """The features that vary, a column each, on the scale on which they are
    compared: those that most of the runs have, of the runs that have all of
    these. Counters and traces are sums over a run, and become those of a step."""
    enough = USUAL * len(runs)
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
    """Of each feature with the logarithm of the runs' times."""
    return columns.corrwith(np.log(seconds[columns.index]))


def variances(columns):
    """Of each feature, normalised to [0, 1]."""
    return columns.var(ddof=0) / (columns.max() - columns.min()) ** 2


def merges(columns):
    """The tree of the features: (left, right, distance) of each merge, the most
    alike first. Of n features, cluster i < n is feature i alone, and cluster
    n + s is what merge s made."""
    distance = 1 - columns.corr().abs().to_numpy(copy=True)
    members = {i: [i] for i in range(len(columns.columns))}
    steps = []
    while len(members) > 1:
        pairs = [(a, b) for a in members for b in members if a < b]
        apart = [distance[np.ix_(members[a], members[b])].mean() for a, b in pairs]
        nearest = int(np.argmin(apart))
        left, right = pairs[nearest]
        joined = members.pop(left) + members.pop(right)
        members[len(columns.columns) + len(steps)] = joined
        steps.append((left, right, max(apart[nearest], 0.0)))
    return steps


def cut(count, steps, clusters):
    """The clusters, as lists of features, when only that many are left."""
    members = {i: [i] for i in range(count)}
    for number, (left, right, _) in enumerate(steps[: max(count - clusters, 0)]):
        members[count + number] = members.pop(left) + members.pop(right)
    return sorted(sorted(cluster) for cluster in members.values())


def select(columns, seconds, clusters, threshold):
    """The features that correlate with the time by at least a threshold, which
    is lowered until that many of them differ in more than name. Gives their
    names, the tree, and the threshold that was used; None if there are never
    so many."""
    strength = correlations(columns, seconds).abs()
    while True:
        passing = columns[strength.index[strength >= threshold]]
        steps = merges(passing)
        alike = sum(distance <= SAME for _, _, distance in steps)
        if len(passing.columns) - alike >= clusters:
            return list(passing.columns), steps, threshold
        if threshold <= 0:
            return None
        threshold = max(round((threshold - STEP) / STEP) * STEP, 0.0)


def representatives(columns, groups):
    """The feature of the greatest variance of each cluster of names; the first
    name among equals."""
    variance = variances(columns)

    def of(group):
        most = variance[group].max()
        return min(name for name in group if variance[name] >= most * (1 - 1e-9))

    return [of(group) for group in groups]


def draw(axis, names, steps, groups, kept):
    """The tree, with its leaves on the left, a line each, and a colour a group
    of names. The names in `kept` get a star."""
    count = len(names)
    order = leaves(count, steps)
    place = {leaf: float(position) for position, leaf in enumerate(order)}
    height = dict.fromkeys(range(count), 0.0)
    palette = {name: COLOURS[i % len(COLOURS)] for i, group in enumerate(groups) for name in group}
    colour = {i: palette[name] for i, name in enumerate(names)}
    for number, (left, right, distance) in enumerate(steps):
        both = colour[left] if colour[left] == colour[right] else "#888888"
        for side in (left, right):
            axis.plot([height[side], distance], [place[side]] * 2, color=colour[side])
        axis.plot([distance] * 2, [place[left], place[right]], color=both)
        cluster = count + number
        place[cluster] = (place[left] + place[right]) / 2
        height[cluster], colour[cluster] = distance, both
    labels = [f"{names[leaf]} ★" if names[leaf] in kept else names[leaf] for leaf in order]
    axis.set_yticks(range(count), labels, fontsize=8)
    for tick, leaf in zip(axis.get_yticklabels(), order):
        tick.set_color(colour[leaf])
    axis.set_ylim(count - 0.5, -0.5)
    axis.set_xlabel("distance: 1 - |correlation|")


def leaves(count, steps):
    """The features from top to bottom, so that no branches cross."""

    def below(cluster):
        if cluster < count:
            return [cluster]
        left, right, _ = steps[cluster - count]
        return below(left) + below(right)

    return below(count + len(steps) - 1)
