"""Figures that the paper on tasks that share data states, each with its place.

M. Gonthier, L. Marchal, S. Thibault: Memory-Aware Scheduling of Tasks Sharing Data
on Multiple GPUs with Dynamic Runtime Systems. IPDPS 2022. The data points of its
plots are not published as numbers, so this file contains only what its text states.
Figures 5 and 10 of the paper are simulated, by StarPU; the others are measured.
"""

# Section V.A: single precision, "960 x 960 matrix tiles"; "most often limited the GPU
# memory to 500 MB". 5 x 5 to 300 x 300 tasks are "140 MB to 8400 MB": 5 block rows and 5
# block columns of 960 x 3840 numbers have 140.6 MiB, so the paper's MB is 2^20 bytes.
TILE_ROWS = 960
BLOCK_TILES = 4
GPU_MEMORY_MB = 500

# Section V.B.a: "the maximum performance (13 253 GFlop/s) that the GPU can achieve".
GPU_GFLOPS = 13_253

# What one policy has more than another on average, by figure of the paper: the policies by
# their names in pdawl, the increase, and the place. "hMETIS+R no part. time" is hMETIS+R
# without its partitioning time.
MORE = {
    3: ("darts+luf", "dmdar", 0.085, "V.B.e"),
    6: ("darts+luf", "dmdar", 0.094, "V.C.d"),
    9: ("darts+luf", "dmdar", 0.75, "V.D"),
    10: ("darts+luf+3inputs", "dmdar", 0.61, "V.E"),
    11: ("darts+luf+3inputs+opti", "partition", 0.49, "V.F"),
    12: ("darts+luf", "dmdar", 0.40, "V.G"),
}
SIMULATED = {5, 10}

# Sections V.B.c and V.C.b: mHFP decides for "1 minute for a 1 300 MB working set" on one
# GPU, and for "a working set of 2000 MB" on two "more than 8 minutes". By GPUs: working
# set in MB, seconds.
MHFP_DECIDES = {1: (1300, 60), 2: (2000, 480)}

# Section V.C.d: on two GPUs, DARTS+LUF "has more data transfers than DMDAR between 2500
# and 3500 MB" (Figure 7).
MORE_TRANSFERS_MB = (2500, 3500)

# Section V.C.e: DARTS searches fewer data "for working sets larger than 3500 MB"
# (Figure 8).
THRESHOLD_MB = 3500

# Section V.F: DARTS+LUF+OPTI-3inputs is "close to the optimal up to a 3000 MB working set"
# (Figure 11).
CHOLESKY_OPTIMAL_MB = 3000

# Not from the paper: StarPU's own simulation of its schedulers, from the table in
# docs/measured.md. By GPUs and policy: N and Gflop/s.
STARPU = {
    (1, "eager"): {40: 4823, 75: 4925},
    (1, "dmdar"): {40: 12293, 75: 10870},
    (1, "darts+luf"): {40: 12724, 75: 12774},
    (2, "eager"): {40: 20158, 75: 5772},
    (2, "dmdar"): {40: 23394, 75: 24254},
    (2, "darts+luf"): {40: 24988, 75: 25444},
    (4, "eager"): {40: 29514, 75: 21652},
    (4, "dmdar"): {40: 28618, 75: 41811},
    (4, "darts+luf"): {40: 42558, 75: 48441},
}
