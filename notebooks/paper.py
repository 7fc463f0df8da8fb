"""Figures that the PDAWL paper states, each with its place in the paper.

T. Geng, M. Amaris, S. Zuckerman, A. Goldman, G. R. Gao, J.-L. Gaudiot: PDAWL:
Profile-based Iterative Dynamic Adaptive WorkLoad Balance on Heterogeneous
Architectures. The data points of its plots are not published as numbers, so this
file contains only what its text and tables state. All figures were measured on
the paper's four machines.
"""

# Table 1: the machines, by their names in pdawl.
MACHINES = {
    "k20-32": "Machine1 (K20, 32 cores)",
    "k20-40": "Machine2 (K20, 40 cores)",
    "k40": "Machine3 (K40, 8 cores)",
    "titan": "Machine4 (Titan, 12 cores)",
}

# Section 4.1: "a 5-point 2D Stencil, double precision", "the number of time
# steps to 30", "the GPU memory to 2 GB".
STEPS = 30
PRECISION = "f64"
GPU_MEMORY = "2 GB"

# Section 4.3, PDAWL on the stencil (Figure 5): "up to 6x speedups compared
# to sequential runs, 1.6x speedup compared to the multiple core version, and
# 4.8x speedup compared to the pure GPU version". The paper does not state the
# machine and the size.
UP_TO = {"sequential": 6.0, "cpu": 1.6, "gpu": 4.8}

# Figure 5, caption: "when matrices are larger than 17K".
FIGURE_5_FROM = 17_000

# Figure 4, caption: features "with correlation between the execution times
# higher than |0.75|", "5 clusters".
CORRELATION = 0.75
CLUSTERS = 5

# Table 5: MAPE of the linear model of the stencil, by machine.
MAPE = {"k20-32": 0.0643, "k20-40": 0.0741, "k40": 0.0345, "titan": 0.0168}

# Section 4.3: "0.93 <= R_squared <= 0.94" of linear regression, "the majority
# of the best matches both for Stencil and SpMV".
R_SQUARED = (0.93, 0.94)
