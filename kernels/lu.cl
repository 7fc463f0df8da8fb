// Operations on the blocks of an LU factorisation with partial pivoting.
// src/codelet/lu/mod.rs describes them and their arguments.
//
// src/codelet/lu/opencl.rs defines ITEMS, the size of a work-group, and DOUBLE.

#if DOUBLE
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double real;
#else
typedef float real;
#endif

#define GROUP __attribute__((reqd_work_group_size(ITEMS, 1, 1)))

#define NO_PIVOT 0xffffffffu
#define NOT_FINITE 0xfffffffeu

// Columns of a panel that are factored one by one. The rest of the panel follows a strip
// at a time, so that it is read and written a few times only.
#define STRIP 16

// Work-items across a row of the rest.
#define ACROSS 32

// Whether a size is a better pivot: one that is no number is the best, so that it is found.
#define BETTER(size, than) ((size) > (than) || (isnan(size) && !isnan(than)))

// One group factors the panel of m rows and n columns, which begins at row first.
__kernel GROUP void lu_panel(__global real *a, __global uint *pivots, uint m, uint n,
                             uint first, ulong a_first, uint stride, ulong pivots_first)
{
    a += a_first;
    pivots += pivots_first;
    __local real greatest[ITEMS];
    __local uint where[ITEMS];
    __local real top[STRIP];
    const uint item = get_local_id(0);
    for (uint begin = 0; begin < n; begin += STRIP) {
        const uint end = min(begin + STRIP, n);
        for (uint column = begin; column < end; column++) {
            real most = -1;
            uint at = column;
            for (uint row = column + item; row < m; row += ITEMS) {
                const real size = fabs(a[(size_t)row * stride + column]);
                if (BETTER(size, most)) {
                    most = size;
                    at = row;
                }
            }
            greatest[item] = most;
            where[item] = at;
            barrier(CLK_LOCAL_MEM_FENCE);
            // The first of the greatest, as on the host.
            for (uint apart = ITEMS / 2; apart > 0; apart /= 2) {
                if (item < apart) {
                    const real other = greatest[item + apart], own = greatest[item];
                    const bool better = BETTER(other, own)
                        || (other == own && where[item + apart] < where[item]);
                    if (better) {
                        greatest[item] = other;
                        where[item] = where[item + apart];
                    }
                }
                barrier(CLK_LOCAL_MEM_FENCE);
            }
            const uint pivot = where[0];
            const real size = greatest[0];
            const bool has_pivot = isfinite(size) && size > 0;
            if (item == 0)
                pivots[column] = has_pivot ? first + pivot : size == 0 ? NO_PIVOT : NOT_FINITE;
            if (has_pivot && pivot != column)
                for (uint i = item; i < n; i += ITEMS) {
                    const real kept = a[(size_t)column * stride + i];
                    a[(size_t)column * stride + i] = a[(size_t)pivot * stride + i];
                    a[(size_t)pivot * stride + i] = kept;
                }
            barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
            if (column + item < end)
                top[item] = a[(size_t)column * stride + column + item];
            barrier(CLK_LOCAL_MEM_FENCE);
            if (has_pivot)
                for (uint row = column + 1 + item; row < m; row += ITEMS) {
                    __global real *of = a + (size_t)row * stride + column;
                    const real factor = of[0] / top[0];
                    of[0] = factor;
                    for (uint i = 1; i < end - column; i++)
                        of[i] -= factor * top[i];
                }
            barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        }
        // The rows of U beside the strip: a work-item a column.
        for (uint to = end + item; to < n; to += ITEMS)
            for (uint row = begin + 1; row < end; row++) {
                real sum = a[(size_t)row * stride + to];
                for (uint known = begin; known < row; known++)
                    sum -= a[(size_t)row * stride + known] * a[(size_t)known * stride + to];
                a[(size_t)row * stride + to] = sum;
            }
        barrier(CLK_GLOBAL_MEM_FENCE);
        // The rest below them, if there is one: then the strip has STRIP columns.
        for (uint to = end + item % ACROSS; to < n; to += ACROSS) {
            real u[STRIP];
            for (uint k = 0; k < STRIP; k++)
                u[k] = a[(size_t)(begin + k) * stride + to];
            for (uint row = end + item / ACROSS; row < m; row += ITEMS / ACROSS) {
                __global const real *l = a + (size_t)row * stride + begin;
                real sum = a[(size_t)row * stride + to];
                for (uint k = 0; k < STRIP; k++)
                    sum -= l[k] * u[k];
                a[(size_t)row * stride + to] = sum;
            }
        }
        barrier(CLK_GLOBAL_MEM_FENCE);
    }
}

// Columns of b that a group exchanges and solves, and rows that it solves at a time.
#define ACROSS_B 32
#define BLOCK 32

// Numbers of a group's copy of rows that are exchanged, and most pivots of a panel for which
// it is enough room.
#define COPIED (32768 / sizeof(real))
#define MOST 1024

// Exchanges the rows of a column of b one after the other.
void exchange(__global real *b, __global const uint *pivots, uint count, uint m, uint stride,
              uint first)
{
    for (uint row = 0; row < count; row++) {
        const uint pivot = pivots[row] - first;
        // A column without a pivot has no such row.
        if (pivot != row && pivot < m) {
            const real kept = b[(size_t)row * stride];
            b[(size_t)row * stride] = b[(size_t)pivot * stride];
            b[(size_t)pivot * stride] = kept;
        }
    }
}

// Exchanges rows of some columns of b, by all items of a group: what all exchanges together
// move is found first, since they follow one another, and then moved at once. A row that is
// exchanged has a slot: row i is slot i for the first rows, and the row of pivot i is slot
// count + i, unless it is a first row or that of an earlier pivot.
void exchange_together(__global real *b, __global const uint *pivots, uint count, uint m,
                       uint columns, uint stride, uint first, __local ushort *slots,
                       __local ushort *content, __local real *copy)
{
    const uint item = get_local_id(0);
    for (uint i = item; i < count; i += ITEMS) {
        const uint row = pivots[i] - first;
        uint slot = row < m ? row : i;
        if (slot >= count) {
            slot = count + i;
            for (uint earlier = 0; earlier < i; earlier++)
                if (pivots[earlier] - first == row) {
                    slot = count + earlier;
                    break;
                }
        }
        slots[i] = slot;
        content[i] = i;
        content[count + i] = count + i;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item == 0)
        for (uint i = 0; i < count; i++) {
            const ushort kept = content[i];
            content[i] = content[slots[i]];
            content[slots[i]] = kept;
        }
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint rows = 2 * count;
    const uint together = min(max((uint)(COPIED / rows), 1u), (uint)ACROSS_B);
    for (uint begin = 0; begin < columns; begin += together) {
        const uint width = min(together, columns - begin);
        for (uint at = item; at < rows * width; at += ITEMS) {
            const uint slot = at / width, from = content[slot];
            if (from == slot)
                continue;
            const size_t row = from < count ? from : pivots[from - count] - first;
            copy[at] = b[row * stride + begin + at % width];
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        for (uint at = item; at < rows * width; at += ITEMS) {
            const uint slot = at / width;
            if (content[slot] == slot)
                continue;
            const size_t row = slot < count ? slot : pivots[slot - count] - first;
            b[row * stride + begin + at % width] = copy[at];
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    }
}

// A group exchanges the rows of ACROSS_B columns of b, and solves the first n rows, BLOCK of
// them after the other.
__kernel GROUP void lu_row(__global const real *factors, __global const uint *pivots,
                           __global real *b, uint m, uint w, uint n, uint first,
                           ulong factors_first, uint l_stride, ulong pivots_first,
                           ulong b_first, uint stride)
{
    __local ushort slots[MOST], content[2 * MOST];
    __local real copy[COPIED];
    const uint item = get_local_id(0);
    const uint begin = get_group_id(0) * ACROSS_B;
    const uint columns = min((uint)ACROSS_B, w - begin);
    factors += factors_first;
    pivots += pivots_first;
    b += b_first + begin;
    if (n <= MOST)
        exchange_together(b, pivots, n, m, columns, stride, first, slots, content, copy);
    else if (item < columns)
        exchange(b + item, pivots, n, m, stride, first);
    barrier(CLK_GLOBAL_MEM_FENCE);

    // Blocks of the factors and of solved rows, in the place of the copy.
    __local real *l = copy, *x = copy + BLOCK * BLOCK;
    const uint column = item % ACROSS_B, down = item / ACROSS_B;
    for (uint top = 0; top < n; top += BLOCK) {
        const uint height = min((uint)BLOCK, n - top);
        real sums[BLOCK * ACROSS_B / ITEMS];
#pragma unroll
        for (uint q = 0; q < BLOCK * ACROSS_B / ITEMS; q++) {
            const uint row = down + q * (ITEMS / ACROSS_B);
            sums[q] = row < height && column < columns
                ? b[(size_t)(top + row) * stride + column] : 0;
        }
        for (uint known = 0; known <= top; known += BLOCK) {
            for (uint at = item; at < BLOCK * BLOCK; at += ITEMS) {
                const uint row = at / BLOCK, k = at % BLOCK;
                l[at] = row < height && known + k < top + height
                    ? factors[(size_t)(top + row) * l_stride + known + k] : 0;
                // Blocks before this one have all their rows.
                if (known < top)
                    x[at] = k < columns ? b[(size_t)(known + row) * stride + k] : 0;
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            if (known < top) {
#pragma unroll
                for (uint q = 0; q < BLOCK * ACROSS_B / ITEMS; q++) {
                    const uint row = down + q * (ITEMS / ACROSS_B);
                    for (uint k = 0; k < BLOCK; k++)
                        sums[q] -= l[row * BLOCK + k] * x[k * BLOCK + column];
                }
                barrier(CLK_LOCAL_MEM_FENCE);
            }
        }
        // The triangle of this block is in l.
#pragma unroll
        for (uint q = 0; q < BLOCK * ACROSS_B / ITEMS; q++)
            x[(down + q * (ITEMS / ACROSS_B)) * BLOCK + column] = sums[q];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint k = 0; k + 1 < height; k++) {
            for (uint row = k + 1 + down; row < height; row += ITEMS / ACROSS_B)
                x[row * BLOCK + column] -= l[row * BLOCK + k] * x[k * BLOCK + column];
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        for (uint row = down; row < height; row += ITEMS / ACROSS_B)
            if (column < columns)
                b[(size_t)(top + row) * stride + column] = x[row * BLOCK + column];
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    }
}

// A work-item exchanges the rows of a column.
__kernel GROUP void lu_exchange(__global const uint *pivots, __global real *b, uint m, uint w,
                                uint first, ulong pivots_first, ulong b_first, uint stride)
{
    const size_t column = get_global_id(0);
    if (column < w)
        exchange(b + b_first + column, pivots + pivots_first, m, m, stride, first);
}
