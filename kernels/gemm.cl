// C = A B for a batch of row-major matrices in single precision, or stored in another format,
// which stored.h converts when A and B are read and C is written.
// src/codelet/gemm/mod.rs describes the arguments and the sizes.
//
// A work-group computes a tile of TM x TN elements of C. Each work-item computes
// WM x WN of them, in blocks of 4 x 4. The depth is processed in stages of TK
// columns of A and TK rows of B. Local memory is double-buffered: while one stage
// is multiplied, the next is loaded from global memory into registers.
//
// A group of 32 lockstep work-items (a warp) covers 8 columns and 4 rows of
// blocks. Its reads of local memory are 128 consecutive bytes of B, and 4
// elements of A for each 8 work-items: one access without bank conflicts. Local
// memory stores A by columns, since a work-item reads 4 elements of a column at
// once. PAD separates the columns, so that a write of a row of A causes two-way
// instead of four-way bank conflicts.
//
// src/codelet/gemm/opencl.rs defines FORMAT (stored.h) and these macros:
//   TM TN TK WM WN   the sizes above
//   WHOLE            1 if the tiles cover C exactly and the stages the depth: no
//                    bounds checks
//   QUADS            1 if rows start at multiples of 4 elements, so that 4
//                    consecutive elements of a row can be read at once
//   TRANSPOSED       1 if B is stored transposed: C = A B^T

#define ACROSS (TN / WN)
#define DOWN (TM / WM)
#define ITEMS (ACROSS * DOWN)

// 4 x 4 blocks of a work-item.
#define ROW_BLOCKS (WM / 4)
#define COLUMN_BLOCKS (WN / 4)

// A warp of lockstep work-items.
#define LANES_ACROSS 8
#define LANES_DOWN 4
#define LANES (LANES_ACROSS * LANES_DOWN)

#define PAD 4

// Reads of 4 elements per work-item and stage.
#define A_READS (TM * TK / 4 / ITEMS)
#define B_READS (TN * TK / 4 / ITEMS)

// Reads 4 elements of a row; elements outside of the matrix are 0.
static inline float4 read_four(__global const stored *matrix, uint row, uint column,
                           uint rows, uint columns)
{
    __global const stored *from = matrix + (size_t)row * columns + column;
#if WHOLE
    return factors_of(*(__global const stored4 *)from);
#elif QUADS
    return row < rows && column < columns ? factors_of(*(__global const stored4 *)from)
                                          : (float4)(0.0f);
#else
    float4 four = (float4)(0.0f);
    if (row < rows) {
        if (column < columns)
            four.x = factor_of(from[0]);
        if (column + 1 < columns)
            four.y = factor_of(from[1]);
        if (column + 2 < columns)
            four.z = factor_of(from[2]);
        if (column + 3 < columns)
            four.w = factor_of(from[3]);
    }
    return four;
#endif
}

// Writes 4 elements of a row, except those outside of the matrix.
static inline void write_four(__global stored *matrix, float4 four, uint row, uint column,
                       uint rows, uint columns)
{
    __global stored *to = matrix + (size_t)row * columns + column;
#if WHOLE
    *(__global stored4 *)to = fours_of(four);
#elif QUADS
    if (row < rows && column < columns)
        *(__global stored4 *)to = fours_of(four);
#else
    if (row < rows) {
        if (column < columns)
            to[0] = stored_of(four.x);
        if (column + 1 < columns)
            to[1] = stored_of(four.y);
        if (column + 2 < columns)
            to[2] = stored_of(four.z);
        if (column + 3 < columns)
            to[3] = stored_of(four.w);
    }
#endif
}

// Reads a work-item's part of a stage into registers: columns from `at` of the
// rows from `first`.
static inline void read_columns(__global const stored *matrix, float4 *next, uint reads, uint item,
                                uint first, uint at, uint rows, uint columns)
{
#pragma unroll
    for (uint i = 0; i < reads; i++) {
        const uint read = item + i * ITEMS;
        next[i] = read_four(matrix, first + read / (TK / 4), at + read % (TK / 4) * 4, rows, columns);
    }
}

// Stores these registers in local memory by columns with a stride of `width`.
static inline void store_columns(__local float *stage, const float4 *next, uint reads, uint item,
                                uint width)
{
#pragma unroll
    for (uint i = 0; i < reads; i++) {
        const uint read = item + i * ITEMS;
        __local float *to = stage + read % (TK / 4) * 4 * width + read / (TK / 4);
        to[0] = next[i].x;
        to[width] = next[i].y;
        to[2 * width] = next[i].z;
        to[3 * width] = next[i].w;
    }
}

// Reads a work-item's part of a stage of B into registers: rows from `at` of the
// columns from `first`.
static inline void read_rows(__global const stored *matrix, float4 *next, uint item,
                             uint first, uint at, uint rows, uint columns)
{
#pragma unroll
    for (uint i = 0; i < B_READS; i++) {
        const uint read = item + i * ITEMS;
        next[i] = read_four(matrix, at + read / (TN / 4), first + read % (TN / 4) * 4, rows, columns);
    }
}

// Stores these registers in local memory by rows.
static inline void store_rows(__local float *stage, const float4 *next, uint item)
{
#pragma unroll
    for (uint i = 0; i < B_READS; i++) {
        const uint read = item + i * ITEMS;
        __local float *to = stage + read / (TN / 4) * (TN + PAD) + read % (TN / 4) * 4;
        *(__local float4 *)to = next[i];
    }
}

#if TRANSPOSED
#define READ_B(at) read_columns(b, b_next, B_READS, item, first_column, at, columns, depth)
#define STORE_B(stage) store_columns((__local float *)b_stage[stage], b_next, B_READS, item, TN + PAD)
#else
#define READ_B(at) read_rows(b, b_next, item, first_column, at, depth, columns)
#define STORE_B(stage) store_rows((__local float *)b_stage[stage], b_next, item)
#endif
#define READ_A(at) read_columns(a, a_next, A_READS, item, first_row, at, rows, depth)
#define STORE_A(stage) store_columns((__local float *)a_stage[stage], a_next, A_READS, item, TM + PAD)

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void gemm(__global const stored *restrict a, __global const stored *restrict b,
          __global stored *restrict c, uint rows, uint columns, uint depth,
          ulong a_apart, ulong b_apart, ulong c_apart, ulong a_first, ulong b_first)
{
    __local float4 a_stage[2][TK][(TM + PAD) / 4];
    __local float4 b_stage[2][TK][(TN + PAD) / 4];

    const uint item = get_local_id(0);
    const uint lane = item % LANES;
    const uint warp = item / LANES;
    const uint first_row = (uint)get_group_id(1) * TM;
    const uint first_column = (uint)get_group_id(0) * TN;
    // Position of the work-item's first block in the tile, in units of 4 elements.
    const uint across = warp % (ACROSS / LANES_ACROSS) * (LANES_ACROSS * COLUMN_BLOCKS)
                        + lane % LANES_ACROSS;
    const uint down = warp / (ACROSS / LANES_ACROSS) * (LANES_DOWN * ROW_BLOCKS)
                      + lane / LANES_ACROSS;

    const size_t matrix = get_global_id(2);
    a += a_first + matrix * a_apart;
    b += b_first + matrix * b_apart;
    c += matrix * c_apart;

    float4 sums[WM][COLUMN_BLOCKS];
#pragma unroll
    for (uint i = 0; i < WM; i++)
#pragma unroll
        for (uint j = 0; j < COLUMN_BLOCKS; j++)
            sums[i][j] = (float4)(0.0f);

    float4 a_next[A_READS], b_next[B_READS];
    READ_A(0);
    READ_B(0);
    STORE_A(0);
    STORE_B(0);
    barrier(CLK_LOCAL_MEM_FENCE);

    uint stage = 0;
    for (uint at = 0; at < depth; at += TK) {
        const bool more = at + TK < depth;
        if (more) {
            READ_A(at + TK);
            READ_B(at + TK);
        }
#pragma unroll
        for (uint k = 0; k < TK; k++) {
            float4 left[ROW_BLOCKS], right[COLUMN_BLOCKS];
#pragma unroll
            for (uint i = 0; i < ROW_BLOCKS; i++)
                left[i] = a_stage[stage][k][down + i * LANES_DOWN];
#pragma unroll
            for (uint j = 0; j < COLUMN_BLOCKS; j++)
                right[j] = b_stage[stage][k][across + j * LANES_ACROSS];
#pragma unroll
            for (uint i = 0; i < ROW_BLOCKS; i++)
#pragma unroll
                for (uint j = 0; j < COLUMN_BLOCKS; j++) {
                    sums[4 * i][j] = fma((float4)(left[i].x), right[j], sums[4 * i][j]);
                    sums[4 * i + 1][j] = fma((float4)(left[i].y), right[j], sums[4 * i + 1][j]);
                    sums[4 * i + 2][j] = fma((float4)(left[i].z), right[j], sums[4 * i + 2][j]);
                    sums[4 * i + 3][j] = fma((float4)(left[i].w), right[j], sums[4 * i + 3][j]);
                }
        }
        if (more) {
            STORE_A(1 - stage);
            STORE_B(1 - stage);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        stage = 1 - stage;
    }

#pragma unroll
    for (uint i = 0; i < WM; i++)
#pragma unroll
        for (uint j = 0; j < COLUMN_BLOCKS; j++)
            write_four(c, sums[i][j],
                first_row + (down + i / 4 * LANES_DOWN) * 4 + i % 4,
                first_column + (across + j * LANES_ACROSS) * 4, rows, columns);
}
