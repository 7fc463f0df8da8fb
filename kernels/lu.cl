// Operations on the blocks of an LU factorisation, in single precision.
// src/codelet/lu/mod.rs describes them and their arguments.
//
// src/codelet/lu/opencl.rs defines ITEMS, the size of a work-group.

#define GROUP __attribute__((reqd_work_group_size(ITEMS, 1, 1)))

// One group factors the block, column by column.
__kernel GROUP void lu_factor(__global float *d, __global uint *pivots, uint n)
{
    __local float greatest[ITEMS];
    __local uint where[ITEMS];
    const uint item = get_local_id(0);
    for (uint column = 0; column < n; column++) {
        float most = -1.0f;
        uint at = column;
        for (uint row = column + item; row < n; row += ITEMS) {
            const float size = fabs(d[(size_t)row * n + column]);
            if (size > most) {
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
                const float other = greatest[item + apart];
                const bool better = other > greatest[item]
                    || (other == greatest[item] && where[item + apart] < where[item]);
                if (better) {
                    greatest[item] = other;
                    where[item] = where[item + apart];
                }
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        const uint pivot = where[0];
        if (item == 0)
            pivots[column] = pivot;
        if (pivot != column)
            for (uint i = item; i < n; i += ITEMS) {
                const float kept = d[(size_t)column * n + i];
                d[(size_t)column * n + i] = d[(size_t)pivot * n + i];
                d[(size_t)pivot * n + i] = kept;
            }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        const float diagonal = d[(size_t)column * n + column];
        for (uint row = column + 1 + item; row < n; row += ITEMS)
            d[(size_t)row * n + column] /= diagonal;
        barrier(CLK_GLOBAL_MEM_FENCE);
        const uint rest = n - column - 1;
        for (size_t i = item; i < (size_t)rest * rest; i += ITEMS) {
            const size_t row = column + 1 + i / rest, to = column + 1 + i % rest;
            d[row * n + to] -= d[row * n + column] * d[(size_t)column * n + to];
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    }
}

// A work-item exchanges the rows of a column and solves it.
__kernel GROUP void lu_row(__global const float *restrict factors,
                           __global const uint *restrict pivots,
                           __global float *restrict b, uint n, uint m)
{
    const size_t column = get_global_id(0);
    if (column >= m)
        return;
    for (uint row = 0; row < n; row++) {
        const uint pivot = pivots[row];
        if (pivot != row) {
            const float kept = b[(size_t)row * m + column];
            b[(size_t)row * m + column] = b[(size_t)pivot * m + column];
            b[(size_t)pivot * m + column] = kept;
        }
    }
    for (uint row = 1; row < n; row++) {
        float sum = b[(size_t)row * m + column];
        for (uint known = 0; known < row; known++)
            sum -= factors[(size_t)row * n + known] * b[(size_t)known * m + column];
        b[(size_t)row * m + column] = sum;
    }
}

// A group solves a row: a column is divided, then the columns after it change.
__kernel GROUP void lu_column(__global const float *restrict factors,
                              __global float *restrict b, uint n, uint m)
{
    __global float *row = b + (size_t)get_group_id(0) * n;
    for (uint column = 0; column < n; column++) {
        const float number = row[column] / factors[(size_t)column * n + column];
        for (uint to = column + 1 + get_local_id(0); to < n; to += ITEMS)
            row[to] -= number * factors[(size_t)column * n + to];
        barrier(CLK_GLOBAL_MEM_FENCE);
        if (get_local_id(0) == 0)
            row[column] = number;
    }
}
