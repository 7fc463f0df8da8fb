// C = beta C + alpha A B, or C = beta C + alpha A B^T, for one tile of an
// out-of-core product or factorization, in single or double precision; with SYRK, the
// lower triangle of C = beta C + alpha A A^T. In single precision, A and B may be stored in
// another format, which stored.h converts when they are read.
//
// Matrices are stored by rows. A has m rows and k columns. B has k rows and n
// columns; with TRANSPOSED, n rows and k columns. C has m rows and n columns.
// Row i of A starts at element a_first + i * lda; likewise B and C. k is at least
// 1. If beta is 0, C is not read: it can be uninitialized. C must not overlap A
// or B. A and B can be the same buffer.
//
// A work-group computes TM x TN elements of C. Its local size is (ITEMS, 1), where
// ITEMS = (TM / WM) * (TN / WN) * SLICES; the global size is
// (ceil(n / TN) * ITEMS, ceil(m / TM)).
//
// Macros of the host:
//   DOUBLE        1 for double precision, 0 for single
//   FORMAT        with DOUBLE 0: how A and B are stored
//   TRANSPOSED    1 for A B^T, 0 for A B
//   SYRK          1 for A A^T, with TRANSPOSED and TM = TN: the kernel is syrk_tile. With
//                 g = ceil(n / TN) its global size is (g * (g + 1) / 2 * ITEMS, 1)
//   TM TN         rows and columns of C a work-group
//   TK            depth of a stage: columns of A and rows of B in local memory
//   WM WN         rows and columns of C a work-item, of 32 lockstep work-items
//                 (a warp) 4 WM x 8 WN
//   SLICES        parts of a stage's depth, each multiplied by its own warps, whose
//                 sums are added at the end. More than 1 gives small products
//                 enough warps without making the tile of a work-item smaller
//   EARLY         1 to read the operands of the next step from local memory before
//                 the current step is multiplied
//   TENSOR        1 to use NVIDIA's tensor cores for double precision: twice the
//                 peak of the other units. Other compilers, and GPUs whose compute
//                 capability (PDAWL_NV_CAPABILITY, ten times it) is less than 9.0,
//                 compute the same tiles without
//   WHOLE         1 if TM, TN and TK divide m, n and k: no bounds checks
//   ALIGNED       1 if lda, ldb, ldc and the first elements are multiples of 4 in
//                 single and of 2 in double precision: that many a memory access
//
// Choices that are fastest on an H200, with 1024, 2048 and 4096 rows, columns and
// depth (TFLOP/s of A B):
//   single  TM=128 TN=128 TK=8  WM=16 WN=8 SLICES=1 EARLY=0:  -, 49, 50
//   single  TM=128 TN=64  TK=32 WM=16 WN=8 SLICES=4 EARLY=1: 41,  -,  -
//   single  TM=64  TN=64  TK=16 WM=16 WN=8 SLICES=4 EARLY=1: 36,  -,  - (on an H100)
//   double  TM=64  TN=64  TK=16 WM=16 WN=4 SLICES=1 EARLY=0:  -, 47, 47, with TENSOR
//   double  TM=64  TN=64  TK=16 WM=8  WN=4 SLICES=1 EARLY=0: 38, 44, 45, with TENSOR
//   double  TM=128 TN=128 TK=8  WM=8  WN=8 SLICES=1 EARLY=0:  -, 24,  -, without
// 16 x 8 elements a work-item in single precision need 0.19 reads of local memory a
// multiplication, 8 x 8 need 0.25, and leave registers for two groups of 128
// work-items on a multiprocessor: one multiplies while the other waits. A product of
// 1024 has only 64 tiles of 128 x 128 for 132 multiprocessors: 128 tiles of 128 x 64
// with four slices keep each of them busy. 64 x 64 needs 16 KiB of local memory instead
// of 48, and is faster with 960 (31 instead of 30) and 512 (11 instead of 9).

#if DOUBLE
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double real;
typedef double2 vec;
typedef double stored;
#define V 2
#else
typedef float real;
typedef float4 vec;
#define V 4
#endif

// Inline PTX: for NVIDIA's compilers only. An undefined capability counts as 0.
#if (defined(__NV_CL_C_VERSION) || defined(PDAWL_NVRTC)) && PDAWL_NV_CAPABILITY >= 90 \
    && DOUBLE && TENSOR
#define TENSOR_CORES 1
#else
#define TENSOR_CORES 0
#endif

#define LANES_ACROSS 8
#define LANES_DOWN 4
#define LANES (LANES_ACROSS * LANES_DOWN)
#define WARP_ROWS (WM * LANES_DOWN)
#define WARP_COLUMNS (WN * LANES_ACROSS)
#define WARPS_ACROSS (TN / WARP_COLUMNS)
#define SLICE_ITEMS ((TM / WM) * (TN / WN))
#define ITEMS (SLICE_ITEMS * SLICES)

// Vectors of a stage which each work-item reads.
#define A_READS (TM * TK / V / ITEMS)
#define B_READS (TN * TK / V / ITEMS)

// A step multiplies STEP columns of A by STEP rows of B.
#if TENSOR_CORES
#define STEP 8
#else
#define STEP 1
#endif
#define STEPS (TK / SLICES / STEP)

// Elements of a stage in local memory.
#define A_PANEL (TM * TK)
#define B_PANEL (TN * TK)
#define PANELS (2 * (A_PANEL + B_PANEL))

#if A_READS * V * ITEMS != TM * TK || B_READS * V * ITEMS != TN * TK
#error "A stage does not divide into equal reads of the work-items"
#endif
#if TM % WARP_ROWS != 0 || TN % WARP_COLUMNS != 0 || WM % (2 * V) != 0 || WN % V != 0
#error "A tile does not divide into warps"
#endif
#if SYRK && (TM != TN || !TRANSPOSED)
#error "A triangle has square tiles of A A^T"
#endif
#if STEPS * STEP * SLICES != TK || TK % 8 != 0 || (EARLY && STEPS % 2 != 0)
#error "A stage does not divide into steps"
#endif

#define EACH(i, count) _Pragma("unroll") for (uint i = 0; i < (count); i++)

typedef union {
    vec v;
    real r[V];
} elements;

#if DOUBLE
#define FACTOR_OF(one) (one)
#define FACTORS_OF(two) (two)
#define STORED_VEC double2
#else
#define FACTOR_OF(one) factor_of(one)
#define FACTORS_OF(four) factors_of(four)
#define STORED_VEC stored4
#endif

// Reads V elements of a row of A or B; elements outside of the matrix are 0.
static inline vec read_factors(__global const stored *from, uint row, uint column, uint rows,
                               uint columns)
{
#if ALIGNED
    if (WHOLE || (row < rows && column + V <= columns))
        return FACTORS_OF(*(__global const STORED_VEC *)from);
#endif
    elements e;
    EACH(i, V)
        e.r[i] = WHOLE || (row < rows && column + i < columns) ? FACTOR_OF(from[i]) : (real)0;
    return e.v;
}

// Reads V elements of a row of C; elements outside of the matrix are 0.
static inline vec read_vec(__global const real *from, uint row, uint column, uint rows,
                           uint columns)
{
#if ALIGNED
    if (WHOLE || (row < rows && column + V <= columns))
        return *(__global const vec *)from;
#endif
    elements e;
    EACH(i, V)
        e.r[i] = WHOLE || (row < rows && column + i < columns) ? from[i] : (real)0;
    return e.v;
}

// Writes V elements of a row, except those outside of the matrix.
static inline void write_vec(__global real *to, vec value, uint row, uint column, uint rows,
                             uint columns)
{
#if ALIGNED
    if (WHOLE || (row < rows && column + V <= columns)) {
        *(__global vec *)to = value;
        return;
    }
#endif
    elements e;
    e.v = value;
    EACH(i, V)
        if (WHOLE || (row < rows && column + i < columns))
            to[i] = e.r[i];
}

// Local memory.
//
// Without tensor cores: A and B^T are stored by columns, as a work-item reads V
// elements of a column at once. A warp reads two vectors (32 bytes) of each of 16
// rows from global memory. Stored, the two would be in the same banks: SWAP exchanges
// neighbouring blocks of 4 V elements in every other V columns. That avoids the
// conflict without padding, so that two stages of 128 x 64 x 32 in single precision
// take 48 KiB, all the local memory that NVIDIA's OpenCL reports.
//
// With tensor cores: A and B^T are stored by rows, as a work-item reads two elements
// of a row at once. 8 work-items read 4 vectors of each of two rows of A or of B^T, or
// two vectors of each of 4 rows of B: LINE_AT and DEPTH_AT give each of these vectors
// its own banks.
#define SWAP(depth) ((depth) / V % 2)

#if TENSOR_CORES
#define LINE_OF(read, lines) ((read) / (TK / V))
#define VEC_OF(read, lines) ((read) % (TK / V))
#else
#define LINE_OF(read, lines) ((read) / 2 % (lines))
#define VEC_OF(read, lines) ((read) % 2 + (read) / (2 * (lines)) * 2)
#endif

// Where a vector of a row of A or of B^T is stored, with tensor cores.
#define LINE_AT(line, vector) ((line) * TK + ((vector) ^ (TK == 8 ? 0 : (line) % 2 * 4)) * V)

// Where a vector of a row of B is stored.
#if TENSOR_CORES
#define DEPTH_AT(depth, vector) ((depth) * TN + ((vector) ^ ((depth) / 2 % 4 * 2)) * V)
#else
#define DEPTH_AT(depth, vector) ((depth) * TN + (vector) * V)
#endif

// Stores a vector of a row of A or of B^T by columns.
static inline void store_column(__local real *panel, vec value, uint line, uint vector, uint lines)
{
    elements e;
    e.v = value;
    EACH(i, V)
        panel[(vector * V + i) * lines + (line ^ (SWAP(vector * V) * 4 * V))] = e.r[i];
}

#if TENSOR_CORES
// Local memory's address in PTX. NVRTC's pointers are into all memory.
#ifdef PDAWL_NVRTC
#define SHARED_ADDRESS(pointer) PDAWL_SHARED_ADDRESS(pointer)
#else
#define SHARED_ADDRESS(pointer) (uint)(size_t)(pointer)
#endif

// Copies V elements from global to local memory without registers and without
// waiting: a quarter faster than through registers, of which the sums leave too few.
// Elements outside of the matrix become 0. Copies through the L1 cache (.ca) are 10 %
// faster than others (.cg). In single precision, copies gain nothing: to store columns
// they would have to be of 4 bytes.
static inline void copy_vec(__local real *to, __global const real *from, uint row, uint column,
                            uint rows, uint columns)
{
    const uint local_to = SHARED_ADDRESS(to);
#if WHOLE && ALIGNED
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16;"
                 : : "r"(local_to), "l"(from) : "memory");
#else
    const uint inside = row < rows && column < columns ? min(columns - column, (uint)V) : 0;
#if ALIGNED
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;"
                 : : "r"(local_to), "l"(from), "r"(inside * 8) : "memory");
#else
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;"
                 : : "r"(local_to), "l"(from), "r"(inside > 0 ? 8 : 0) : "memory");
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;"
                 : : "r"(local_to + 8), "l"(from + 1), "r"(inside > 1 ? 8 : 0) : "memory");
#endif
#endif
}
#endif

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
#if SYRK
void syrk_tile(__global const stored *restrict a, __global real *restrict c, uint n, uint k,
               uint lda, uint ldc, ulong a_first, ulong c_first, real alpha, real beta)
#else
void gemm_tile(__global const stored *restrict a, __global const stored *restrict b,
               __global real *restrict c, uint m, uint n, uint k, uint lda, uint ldb, uint ldc,
               ulong a_first, ulong b_first, ulong c_first, real alpha, real beta)
#endif
{
    __local vec panels[PANELS / V];
#define A_STAGE(stage) ((__local real *)panels + (stage) * (A_PANEL + B_PANEL))
#define B_STAGE(stage) (A_STAGE(stage) + A_PANEL)

    const uint item = get_local_id(0);
    const uint lane = item % LANES;
    const uint slice = SLICES > 1 ? item / SLICE_ITEMS : 0;
    const uint warp = item % SLICE_ITEMS / LANES;
    const uint warp_row = warp / WARPS_ACROSS * WARP_ROWS;
    const uint warp_column = warp % WARPS_ACROSS * WARP_COLUMNS;
#if SYRK
    // Groups are counted by rows of the triangle. No group above the diagonal exists:
    // PoCL computes wrong results if a group returns before a barrier.
    uint group_row = 0, group_column = get_group_id(0);
    while (group_column > group_row)
        group_column -= ++group_row;
    const uint first_row = group_row * TM;
    const uint first_column = group_column * TN;
    __global const stored *b = a;
    const uint m = n, ldb = lda;
    const ulong b_first = a_first;
#else
    const uint first_row = (uint)get_group_id(1) * TM;
    const uint first_column = (uint)get_group_id(0) * TN;
#endif
    const uint rows = m - first_row;
    const uint columns = n - first_column;

    a += a_first + (size_t)first_row * lda;
#if TRANSPOSED
    b += b_first + (size_t)first_column * ldb;
#else
    b += b_first + first_column;
#endif
    c += c_first + (size_t)first_row * ldc + first_column;

    // START begins to read a stage, from depth `at`. FINISH stores it in local memory.
#define A_LINE LINE_OF(read, TM)
#define A_DEPTH(at) ((at) + VEC_OF(read, TM) * V)
#define A_READ(at) a + (size_t)A_LINE * lda + A_DEPTH(at), A_LINE, A_DEPTH(at), rows, k
#if TRANSPOSED
#define B_LINE LINE_OF(read, TN)
#define B_DEPTH(at) ((at) + VEC_OF(read, TN) * V)
#define B_READ(at) b + (size_t)B_LINE * ldb + B_DEPTH(at), B_LINE, B_DEPTH(at), columns, k
#else
#define B_LINE (read / (TN / V))
#define B_VEC (read % (TN / V))
#define B_READ(at) b + (size_t)((at) + B_LINE) * ldb + B_VEC * V, (at) + B_LINE, B_VEC * V, k, \
        columns
#endif

#if TENSOR_CORES
#if TRANSPOSED
#define B_PLACE LINE_AT(B_LINE, VEC_OF(read, TN))
#else
#define B_PLACE DEPTH_AT(B_LINE, B_VEC)
#endif
#define START(at, stage) { \
        EACH(i, A_READS) { \
            const uint read = item + i * ITEMS; \
            copy_vec(A_STAGE(stage) + LINE_AT(A_LINE, VEC_OF(read, TM)), A_READ(at)); \
        } \
        EACH(i, B_READS) { \
            const uint read = item + i * ITEMS; \
            copy_vec(B_STAGE(stage) + B_PLACE, B_READ(at)); \
        } \
    }
#define FINISH(stage) asm volatile("cp.async.wait_all;" : : : "memory");
#else
    vec a_next[A_READS], b_next[B_READS];
#if TRANSPOSED
#define STORE_B(stage) store_column(B_STAGE(stage), b_next[i], B_LINE, VEC_OF(read, TN), TN)
#else
#define STORE_B(stage) *(__local vec *)(B_STAGE(stage) + DEPTH_AT(B_LINE, B_VEC)) = b_next[i]
#endif
#define START(at, stage) { \
        EACH(i, A_READS) { \
            const uint read = item + i * ITEMS; \
            a_next[i] = read_factors(A_READ(at)); \
        } \
        EACH(i, B_READS) { \
            const uint read = item + i * ITEMS; \
            b_next[i] = read_factors(B_READ(at)); \
        } \
    }
#define FINISH(stage) { \
        EACH(i, A_READS) { \
            const uint read = item + i * ITEMS; \
            store_column(A_STAGE(stage), a_next[i], A_LINE, VEC_OF(read, TM), TM); \
        } \
        EACH(i, B_READS) { \
            const uint read = item + i * ITEMS; \
            STORE_B(stage); \
        } \
    }
#endif

    // LOAD reads the operands of a step from local memory into one of the sets of
    // registers. MULTIPLY multiplies them.
#define DEPTH_OF(step) (slice * (TK / SLICES) + (step) * STEP)
#if TENSOR_CORES
    // The instruction multiplies 16 x 8 by 8 x 8 elements. Lane 4 g + t has rows g and
    // g + 8 and columns t and t + 4 of the left operand, rows t and t + 4 and column g
    // of the right operand, and rows g and g + 8 and columns 2 t and 2 t + 1 of the sum.
    // Any order of the depth is correct if it is the same for both operands: depths
    // 2 t and 2 t + 1 stand for t and t + 4, so that a lane reads 16 bytes at once.
    // Of B, a lane reads columns 2 g and 2 g + 1 at once: column g of two instructions.
    const uint g = lane / 4;
    const uint t = lane % 4;
    double sums[WARP_ROWS / 16][WARP_COLUMNS / 8][4];
    EACH(i, WARP_ROWS / 16) EACH(j, WARP_COLUMNS / 8) EACH(s, 4)
        sums[i][j][s] = 0;
    double2 left[1 + EARLY][WARP_ROWS / 8], right[1 + EARLY][WARP_COLUMNS / 8];
#if TRANSPOSED
#define RIGHT_AT(step) LINE_AT(warp_column + g, DEPTH_OF(step) / 2 + t) + j * 8 * TK
#define RIGHT_0(set) right[set][j].x
#define RIGHT_1(set) right[set][j].y
#else
#define RIGHT_AT(step) (DEPTH_OF(step) + 2 * t + j % 2) * TN + warp_column + j / 2 * 16 \
        + (g ^ (t * 2)) * 2
#define RIGHT_0(set) (j % 2 ? right[set][j / 2 * 2].y : right[set][j / 2 * 2].x)
#define RIGHT_1(set) (j % 2 ? right[set][j / 2 * 2 + 1].y : right[set][j / 2 * 2 + 1].x)
#endif
#define LOAD(set, stage, step) { \
        EACH(i, WARP_ROWS / 8) \
            left[set][i] = *(__local const double2 *)(A_STAGE(stage) \
                + LINE_AT(warp_row + g, DEPTH_OF(step) / 2 + t) + i * 8 * TK); \
        EACH(j, WARP_COLUMNS / 8) \
            right[set][j] = *(__local const double2 *)(B_STAGE(stage) + RIGHT_AT(step)); \
    }
#define MULTIPLY(set) \
    EACH(i, WARP_ROWS / 16) EACH(j, WARP_COLUMNS / 8) \
        asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 " \
            "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \
            : "+d"(sums[i][j][0]), "+d"(sums[i][j][1]), "+d"(sums[i][j][2]), "+d"(sums[i][j][3]) \
            : "d"(left[set][2 * i].x), "d"(left[set][2 * i + 1].x), \
              "d"(left[set][2 * i].y), "d"(left[set][2 * i + 1].y), \
              "d"(RIGHT_0(set)), "d"(RIGHT_1(set)));

    // Rows of a lane, vectors of each row, and where they are in the tile.
#define ROWS (WARP_ROWS / 8)
#define VECS (WARP_COLUMNS / 8)
#define ROW(i) (warp_row + (i) * 8 + g)
#if TRANSPOSED
#define COLUMN(j) (warp_column + (j) * 8 + t * 2)
#define SUM(i, j, s) sums[(i) / 2][j][(i) % 2 * 2 + (s)]
#else
#define COLUMN(j) (warp_column + (j) / 2 * 16 + t * 4 + (j) % 2 * 2)
#define SUM(i, j, s) sums[(i) / 2][(j) / 2 * 2 + (s)][(i) % 2 * 2 + (j) % 2]
#endif
#else
    // Lanes of a warp: bits 0 and 2 of the number are the row, bits 1, 3 and 4 the
    // column. Neighbours that read the same 16 bytes are served together: half as many
    // accesses to local memory as with rows of 8 lanes.
    const uint lane_down = (lane & 1) | (lane >> 1 & 2);
    const uint lane_across = (lane >> 1 & 1) | (lane >> 2 & 6);
    real sums[WM][WN];
    EACH(i, WM) EACH(j, WN)
        sums[i][j] = 0;
    vec left[1 + EARLY][WM / V], right[1 + EARLY][WN / V];
#define LEFT_AT(step) DEPTH_OF(step) * TM + warp_row + lane_down * V \
        + (i ^ SWAP(DEPTH_OF(step))) * LANES_DOWN * V
#if TRANSPOSED
#define RIGHT_AT(step) DEPTH_OF(step) * TN + warp_column \
        + (lane_across ^ (SWAP(DEPTH_OF(step)) * 4)) * V + j * LANES_ACROSS * V
#else
#define RIGHT_AT(step) DEPTH_OF(step) * TN + warp_column + lane_across * V + j * LANES_ACROSS * V
#endif
#define LOAD(set, stage, step) { \
        EACH(i, WM / V) \
            left[set][i] = *(__local const vec *)(A_STAGE(stage) + LEFT_AT(step)); \
        EACH(j, WN / V) \
            right[set][j] = *(__local const vec *)(B_STAGE(stage) + RIGHT_AT(step)); \
    }
#define MULTIPLY(set) \
    EACH(i, WM) EACH(j, WN) \
        sums[i][j] = fma(((const real *)left[set])[i], ((const real *)right[set])[j], sums[i][j]);

#define ROWS WM
#define VECS (WN / V)
#define ROW(i) (warp_row + (lane_down + (i) / V * LANES_DOWN) * V + (i) % V)
#define COLUMN(j) (warp_column + (lane_across + (j) * LANES_ACROSS) * V)
#define SUM(i, j, s) sums[i][(j) * V + (s)]
#endif

    START(0, 0)
    FINISH(0)
    barrier(CLK_LOCAL_MEM_FENCE);
#if EARLY
    LOAD(0, 0, 0)
#endif
    uint stage = 0;
    for (uint at = 0; at < k; at += TK) {
        // The last stage reads the first again, in vain: under a condition, NVIDIA's
        // compiler moves the reads to the end of the stage and waits there for them.
        const uint ahead = at + TK < k ? at + TK : 0;
        const uint next = 1 - stage;
        START(ahead, next)
#if EARLY
        EACH(s, STEPS - 1) {
            LOAD((s + 1) % 2, stage, s + 1)
            MULTIPLY(s % 2)
        }
        FINISH(next)
        barrier(CLK_LOCAL_MEM_FENCE);
        LOAD(0, next, 0)
        MULTIPLY(1)
#else
        EACH(s, STEPS) {
            LOAD(0, stage, s)
            MULTIPLY(0)
        }
        FINISH(next)
        barrier(CLK_LOCAL_MEM_FENCE);
#endif
        stage = next;
    }

#if SLICES > 1
    // Adds the slices' sums in the first slice, as many rows at once as local memory
    // holds.
#define FITS(count) ((count) <= ROWS && (count) * VECS * V * SLICE_ITEMS * (SLICES - 1) <= PANELS)
#define AT_ONCE (FITS(16) ? 16 : FITS(8) ? 8 : FITS(4) ? 4 : FITS(2) ? 2 : 1)
#define OTHER(from) \
    others[((((from) * AT_ONCE + i) * VECS + j) * V + s) * SLICE_ITEMS + item % SLICE_ITEMS]
    __local real *others = (__local real *)panels;
    EACH(part, ROWS / AT_ONCE) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (slice != 0)
            EACH(i, AT_ONCE) EACH(j, VECS) EACH(s, V)
                OTHER(slice - 1) = SUM(part * AT_ONCE + i, j, s);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (slice == 0)
            EACH(from, SLICES - 1) EACH(i, AT_ONCE) EACH(j, VECS) EACH(s, V)
                SUM(part * AT_ONCE + i, j, s) += OTHER(from);
    }
    if (slice != 0)
        return;
#endif

    // Reads 4 rows of C before it writes them, so that reads overlap.
    EACH(part, ROWS / 4) {
        vec old[4][VECS];
        EACH(i, 4) EACH(j, VECS)
            old[i][j] = (vec)((real)0);
        if (beta != (real)0)
            EACH(i, 4) EACH(j, VECS) {
                const uint row = ROW(part * 4 + i), column = COLUMN(j);
                old[i][j] = beta * read_vec(c + (size_t)row * ldc + column, row, column, rows,
                                            columns);
            }
        EACH(i, 4) EACH(j, VECS) {
            const uint row = ROW(part * 4 + i), column = COLUMN(j);
            elements sum;
            EACH(s, V)
                sum.r[s] = SUM(part * 4 + i, j, s);
            write_vec(c + (size_t)row * ldc + column, fma((vec)(alpha), sum.v, old[i][j]), row,
                      column, rows, columns);
        }
    }
}
