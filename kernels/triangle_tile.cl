// The solution X of X L^T = B with a lower triangle L, in the place of B (trsm_tile);
// the Cholesky factor L of A = L L^T, in the place of A's lower triangle (potrf_tile).
//
// Matrices are stored by rows. L and A have n rows and columns, B has m rows and n
// columns. Row i of L starts at element l_first + i * ldl; likewise A and B. Elements
// above the diagonals of L and A have no influence, and potrf_tile may overwrite those
// of A.
//
// Both compute strips of ROWS rows and BLOCK columns, column by column of blocks: the
// strip less the product of what is left of it and the rows of L, then the solution
// with the triangle on the diagonal. The rows of a factor below the diagonal are such
// solutions, so that potrf_tile needs in addition only the factors of the triangles.
//
// Macros of the host:
//   DOUBLE   1 for double precision, 0 for single
//   POTRF    1 for potrf_tile, 0 for trsm_tile
//   ROWS     rows of a strip, at least BLOCK with POTRF, at most ITEMS
//   ITEMS    work-items of a group
//
// trsm_tile has a group a strip: the global size is ceil(m / ROWS) * ITEMS.
// potrf_tile has one group, since each block of columns needs all before it.
// potrf_unfinished has a work-item a row.

#if DOUBLE
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double real;
#else
typedef float real;
#endif

#define BLOCK 32

// Work-items a row of a strip, and elements of a row each of them computes.
#define ACROSS (ITEMS / ROWS)
#define EACH_ITEM (BLOCK / ACROSS)

// A row of local memory is 1 longer than a block, so that a column is in different banks.
#define STRIDE (BLOCK + 1)
#define AT(row, column) ((row) * STRIDE + (column))

#if ACROSS * ROWS != ITEMS || EACH_ITEM * ACROSS != BLOCK || (POTRF && ROWS < BLOCK)
#error "A strip does not divide into work-items"
#endif

// Without the attribute, PoCL 3.1 (LLVM 15) ends with a segmentation fault as it inlines.
#define INLINE static inline __attribute__((always_inline))

#define EACH(i, count) _Pragma("unroll") for (uint i = 0; i < (count); i++)

// Copies a block of L to local memory. Outside of L are the rows and columns of the
// identity, whose solution changes nothing.
INLINE void read_block(__local real *block, __global const real *l, uint ldl, uint row,
                       uint column, uint n)
{
    EACH(i, BLOCK * BLOCK / ITEMS) {
        const uint at = get_local_id(0) + i * ITEMS;
        const uint r = row + at / BLOCK, c = column + at % BLOCK;
        block[AT(at / BLOCK, at % BLOCK)] = r < n && c < n ? l[(size_t)r * ldl + c] : (real)(r == c);
    }
}

#if POTRF
// Replaces the lower triangle of a block by its factor.
INLINE void factor(__local real *block)
{
    const uint item = get_local_id(0);
    for (uint column = 0; column < BLOCK; column++) {
        const real diagonal = sqrt(block[AT(column, column)]);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item == column)
            block[AT(column, column)] = diagonal;
        else if (item > column && item < BLOCK)
            block[AT(item, column)] /= diagonal;
        barrier(CLK_LOCAL_MEM_FENCE);
        EACH(i, BLOCK * BLOCK / ITEMS) {
            const uint at = item + i * ITEMS;
            const uint r = at / BLOCK, c = at % BLOCK;
            if (c > column && c <= r)
                block[AT(r, c)] -= block[AT(r, column)] * block[AT(c, column)];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
#endif

// Solves the columns from `first` of the strip at `b`, of which m rows exist. The
// columns before are solved. With `factors`, the strip begins with the diagonal of the
// matrix at `l`, whose triangle there becomes its factor.
INLINE void solve(__local real *strip, __local real *block,
                  __global const real *l, __global real *b, uint first, uint m, uint n,
                  uint ldl, uint ldb, bool factors)
{
    const uint item = get_local_id(0);
    const uint row = item / ACROSS;
    const uint column = item % ACROSS;
    real sums[EACH_ITEM];
    EACH(i, EACH_ITEM) {
        const uint c = first + column + i * ACROSS;
        sums[i] = row < m && c < n ? b[(size_t)row * ldb + c] : (real)0;
    }
    for (uint at = 0; at < first; at += BLOCK) {
        EACH(i, EACH_ITEM) {
            const uint c = column + i * ACROSS;
            strip[AT(row, c)] = row < m ? b[(size_t)row * ldb + at + c] : (real)0;
        }
        read_block(block, l, ldl, first, at, n);
        barrier(CLK_LOCAL_MEM_FENCE);
        EACH(k, BLOCK) {
            const real left = strip[AT(row, k)];
            EACH(i, EACH_ITEM)
                sums[i] = fma(-left, block[AT(column + i * ACROSS, k)], sums[i]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    EACH(i, EACH_ITEM)
        strip[AT(row, column + i * ACROSS)] = sums[i];
    read_block(block, l, ldl, first, first, n);
    barrier(CLK_LOCAL_MEM_FENCE);
#if POTRF
    if (factors) {
        // L is the solution with the factor for the block itself.
        EACH(i, BLOCK * BLOCK / ITEMS) {
            const uint at = item + i * ITEMS;
            const uint r = at / BLOCK, c = at % BLOCK;
            if (first + r < n && first + c < n)
                block[AT(r, c)] = strip[AT(r, c)];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        factor(block);
    }
#endif
    // A row each in registers, without barriers: rows do not depend on each other.
    if (item < ROWS) {
        real x[BLOCK];
        EACH(c, BLOCK)
            x[c] = strip[AT(item, c)];
        // Constant bounds, so that the loops unroll and `x` is in registers.
        EACH(k, BLOCK) {
            x[k] /= block[AT(k, k)];
            EACH(c, BLOCK)
                if (c > k)
                    x[c] = fma(-x[k], block[AT(c, k)], x[c]);
        }
        EACH(c, BLOCK)
            strip[AT(item, c)] = x[c];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    EACH(i, EACH_ITEM) {
        const uint c = column + i * ACROSS;
        if (row < m && first + c < n)
            b[(size_t)row * ldb + first + c] = strip[AT(row, c)];
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
}

#if POTRF
__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void potrf_tile(__global real *a, uint n, uint lda, ulong a_first)
{
    __local real strip[ROWS * STRIDE], block[BLOCK * STRIDE];
    a += a_first;
    for (uint first = 0; first < n; first += BLOCK) {
        // `factors` is a constant: PoCL computes wrong results if barriers are in a branch.
        solve(strip, block, a, a + (size_t)first * lda, first, n - first, n, lda, lda, true);
        for (uint row = first + ROWS; row < n; row += ROWS)
            solve(strip, block, a, a + (size_t)row * lda, first, n - row, n, lda, lda, false);
    }
}

// After a factorisation by a library, which stopped before the column whose number, counted
// from 1, is in info; 0: it did not. A work-item makes a row's numbers from that column on no
// numbers.
__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void potrf_unfinished(__global real *a, uint n, uint lda, ulong a_first,
                      __global const int *info)
{
    const uint row = get_global_id(0);
    if (*info > 0 && row < n)
        for (uint column = *info - 1; column <= row; column++)
            a[a_first + (size_t)row * lda + column] = NAN;
}
#else
__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void trsm_tile(__global const real *restrict l, __global real *restrict b, uint m, uint n,
               uint ldl, uint ldb, ulong l_first, ulong b_first)
{
    __local real strip[ROWS * STRIDE], block[BLOCK * STRIDE];
    const uint row = get_global_id(0) / ITEMS * ROWS;
    l += l_first;
    b += b_first + (size_t)row * ldb;
    // Units of the host are longer than strips: a group may be after the last row.
    for (uint first = 0; row < m && first < n; first += BLOCK)
        solve(strip, block, l, b, first, m - row, n, ldl, ldb, false);
}
#endif
