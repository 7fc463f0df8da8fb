"""Page ranks of a Matrix Market graph with SciPy on one core: pageranks.py FILE STEPS."""
import sys, time
import numpy as np
import scipy.io, scipy.sparse

graph = scipy.sparse.csr_matrix(scipy.io.mmread(sys.argv[1]))
n, steps = graph.shape[0], int(sys.argv[2])
degrees = np.diff(graph.indptr)
graph.data = np.repeat(1 / np.maximum(degrees, 1), degrees)
links, dangling = graph.T.tocsr(), degrees == 0
ranks = np.full(n, 1 / n)
begin = time.perf_counter()
for _ in range(steps):
    ranks = 0.85 * (links @ ranks) + (0.15 + 0.85 * ranks[dangling].sum()) / n
print(time.perf_counter() - begin)
