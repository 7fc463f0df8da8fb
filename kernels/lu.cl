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
                             uint first)
{
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
                const real size = fabs(a[(size_t)row * n + column]);
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
                    const real kept = a[(size_t)column * n + i];
                    a[(size_t)column * n + i] = a[(size_t)pivot * n + i];
                    a[(size_t)pivot * n + i] = kept;
                }
            barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
            if (column + item < end)
                top[item] = a[(size_t)column * n + column + item];
            barrier(CLK_LOCAL_MEM_FENCE);
            if (has_pivot)
                for (uint row = column + 1 + item; row < m; row += ITEMS) {
                    __global real *of = a + (size_t)row * n + column;
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
                real sum = a[(size_t)row * n + to];
                for (uint known = begin; known < row; known++)
                    sum -= a[(size_t)row * n + known] * a[(size_t)known * n + to];
                a[(size_t)row * n + to] = sum;
            }
        barrier(CLK_GLOBAL_MEM_FENCE);
        // The rest below them, if there is one: then the strip has STRIP columns.
        for (uint to = end + item % ACROSS; to < n; to += ACROSS) {
            real u[STRIP];
            for (uint k = 0; k < STRIP; k++)
                u[k] = a[(size_t)(begin + k) * n + to];
            for (uint row = end + item / ACROSS; row < m; row += ITEMS / ACROSS) {
                __global const real *l = a + (size_t)row * n + begin;
                real sum = a[(size_t)row * n + to];
                for (uint k = 0; k < STRIP; k++)
                    sum -= l[k] * u[k];
                a[(size_t)row * n + to] = sum;
            }
        }
        barrier(CLK_GLOBAL_MEM_FENCE);
    }
}

// Exchanges rows of a column of b, of which row 0 is row first of the matrix.
void exchange(__global real *b, __global const uint *pivots, uint count, uint m, uint w,
              uint first)
{
    for (uint row = 0; row < count; row++) {
        const uint pivot = pivots[row] - first;
        // A column without a pivot has no such row.
        if (pivot != row && pivot < m) {
            const real kept = b[(size_t)row * w];
            b[(size_t)row * w] = b[(size_t)pivot * w];
            b[(size_t)pivot * w] = kept;
        }
    }
}

// A work-item exchanges the rows of a column, and solves its first n rows.
__kernel GROUP void lu_row(__global const real *restrict factors,
                           __global const uint *restrict pivots,
                           __global real *restrict b, uint m, uint w, uint n, uint first)
{
    const size_t column = get_global_id(0);
    if (column >= w)
        return;
    exchange(b + column, pivots, n, m, w, first);
    for (uint row = 1; row < n; row++) {
        real sum = b[(size_t)row * w + column];
        for (uint known = 0; known < row; known++)
            sum -= factors[(size_t)row * n + known] * b[(size_t)known * w + column];
        b[(size_t)row * w + column] = sum;
    }
}

// A work-item exchanges the rows of a column.
__kernel GROUP void lu_exchange(__global const uint *restrict pivots, __global real *restrict b,
                                uint m, uint w, uint first)
{
    const size_t column = get_global_id(0);
    if (column < w)
        exchange(b + column, pivots, m, m, w, first);
}
