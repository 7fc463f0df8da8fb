// C = A B for a batch of matrices of single precision, stored by rows.
// Arguments, and what sizes mean: src/codelet/gemm/mod.rs.
//
// A work-group computes a tile of TM x TN numbers of C, a work-item WM x WN of
// them, in blocks of 4 x 4. Stages of TK columns of A and rows of B go through
// local memory, which has two: while one is multiplied, the next is on its way
// from global memory to registers.
//
// Work-items that run in step, 32 of them, are 8 across and 4 down. Their reads
// of local memory are then runs of 128 bytes of B, and 4 numbers of A each that
// 8 work-items share: one access for the whole memory, without conflicts. A lies
// there by columns, since a work-item takes 4 of a column at once. PAD moves its
// columns apart, so that writing a row of A meets each bank twice, not 4 times.
//
// From src/codelet/gemm/opencl.rs:
//   TM TN TK WM WN   the sizes above
//   WHOLE            1 if C is whole tiles, and stages are whole: nothing is guarded
//   QUADS            1 if 4 neighbouring numbers of a row can be read at once:
//                    every row begins at a multiple of 4 numbers
//   TRANSPOSED       1 if B is stored transposed, so that C = A B^T as it lies

#define ACROSS (TN / WN)
#define DOWN (TM / WM)
#define ITEMS (ACROSS * DOWN)

// Blocks of 4 of a work-item.
#define ROW_BLOCKS (WM / 4)
#define COLUMN_BLOCKS (WN / 4)

// Work-items in step.
#define LANES_ACROSS 8
#define LANES_DOWN 4
#define LANES (LANES_ACROSS * LANES_DOWN)

#define PAD 4

// Reads of 4 numbers that a work-item does for a stage.
#define A_READS (TM * TK / 4 / ITEMS)
#define B_READS (TN * TK / 4 / ITEMS)

// Four numbers of a row; zeros where the matrix has none.
static inline float4 fetch(__global const float *matrix, uint row, uint column,
                           uint rows, uint columns)
{
    __global const float *from = matrix + (size_t)row * columns + column;
#if WHOLE
    return *(__global const float4 *)from;
#elif QUADS
    return row < rows && column < columns ? *(__global const float4 *)from : (float4)(0.0f);
#else
    float4 four = (float4)(0.0f);
    if (row < rows) {
        if (column < columns)
            four.x = from[0];
        if (column + 1 < columns)
            four.y = from[1];
        if (column + 2 < columns)
            four.z = from[2];
        if (column + 3 < columns)
            four.w = from[3];
    }
    return four;
#endif
}

// Writes four numbers of a row, as far as the matrix has them.
static inline void put(__global float *matrix, float4 four, uint row, uint column,
                       uint rows, uint columns)
{
    __global float *to = matrix + (size_t)row * columns + column;
#if WHOLE
    *(__global float4 *)to = four;
#elif QUADS
    if (row < rows && column < columns)
        *(__global float4 *)to = four;
#else
    if (row < rows) {
        if (column < columns)
            to[0] = four.x;
        if (column + 1 < columns)
            to[1] = four.y;
        if (column + 2 < columns)
            to[2] = four.z;
        if (column + 3 < columns)
            to[3] = four.w;
    }
#endif
}

// Reads a work-item's part of a stage: columns `at` and on of the rows `first`
// and on.
static inline void read_columns(__global const float *matrix, float4 *next, uint reads, uint item,
                                uint first, uint at, uint rows, uint columns)
{
#pragma unroll
    for (uint i = 0; i < reads; i++) {
        const uint read = item + i * ITEMS;
        next[i] = fetch(matrix, first + read / (TK / 4), at + read % (TK / 4) * 4, rows, columns);
    }
}

// Puts that into local memory, by columns, which are `width` numbers apart.
static inline void keep_columns(__local float *stage, const float4 *next, uint reads, uint item,
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

// Reads a work-item's part of a stage of B: rows `at` and on of the columns
// `first` and on.
static inline void read_rows(__global const float *matrix, float4 *next, uint item,
                             uint first, uint at, uint rows, uint columns)
{
#pragma unroll
    for (uint i = 0; i < B_READS; i++) {
        const uint read = item + i * ITEMS;
        next[i] = fetch(matrix, at + read / (TN / 4), first + read % (TN / 4) * 4, rows, columns);
    }
}

// Puts that into local memory as it lies.
static inline void keep_rows(__local float *stage, const float4 *next, uint item)
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
#define KEEP_B(stage) keep_columns((__local float *)b_stage[stage], b_next, B_READS, item, TN + PAD)
#else
#define READ_B(at) read_rows(b, b_next, item, first_column, at, depth, columns)
#define KEEP_B(stage) keep_rows((__local float *)b_stage[stage], b_next, item)
#endif
#define READ_A(at) read_columns(a, a_next, A_READS, item, first_row, at, rows, depth)
#define KEEP_A(stage) keep_columns((__local float *)a_stage[stage], a_next, A_READS, item, TM + PAD)

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void gemm(__global const float *restrict a, __global const float *restrict b,
          __global float *restrict c, uint rows, uint columns, uint depth,
          ulong a_apart, ulong b_apart, ulong c_apart, ulong a_first, ulong b_first)
{
    __local float4 a_stage[2][TK][(TM + PAD) / 4];
    __local float4 b_stage[2][TK][(TN + PAD) / 4];

    const uint item = get_local_id(0);
    const uint lane = item % LANES;
    const uint team = item / LANES;
    const uint first_row = (uint)get_group_id(1) * TM;
    const uint first_column = (uint)get_group_id(0) * TN;
    // In fours: where the work-item's first block is in the tile.
    const uint across = team % (ACROSS / LANES_ACROSS) * (LANES_ACROSS * COLUMN_BLOCKS)
                        + lane % LANES_ACROSS;
    const uint down = team / (ACROSS / LANES_ACROSS) * (LANES_DOWN * ROW_BLOCKS)
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
    KEEP_A(0);
    KEEP_B(0);
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
            KEEP_A(1 - stage);
            KEEP_B(1 - stage);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        stage = 1 - stage;
    }

#pragma unroll
    for (uint i = 0; i < WM; i++)
#pragma unroll
        for (uint j = 0; j < COLUMN_BLOCKS; j++)
            put(c, sums[i][j],
                first_row + (down + i / 4 * LANES_DOWN) * 4 + i % 4,
                first_column + (across + j * LANES_ACROSS) * 4, rows, columns);
}
