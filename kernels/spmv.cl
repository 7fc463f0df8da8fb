// Sparse matrix times vector over units of about equal work.
// Arguments and what a unit is: src/codelet/spmv/mod.rs.
//
// A work-group computes a unit. Its entries are read side by side, so that
// loads are whole lines whatever the rows' lengths are; all loads of a
// work-item are under way before the first is used. Products go to local
// memory, where rows are summed. Entries that do not exist are not computed: a
// product of nothing with an infinite x would be no number.
//
// `restrict` and `const` let x come through the read-only cache.
//
// REAL, LANES and WEIGHT come from src/codelet/spmv/opencl.rs.

#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

#define PER_LANE (WEIGHT / LANES)

// Rows of 16 products would all begin in one bank of the local memory.
#define PLACE(i) ((i) + ((i) >> 4))

// The sum of every work-item's `value`, for work-item 0.
static inline REAL sum_of_group(REAL value, uint lane, __local REAL *room)
{
    room[lane] = value;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint apart = LANES / 2; apart > 0; apart /= 2) {
        if (lane < apart)
            room[lane] += room[lane + apart];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    return room[0];
}

__kernel __attribute__((reqd_work_group_size(LANES, 1, 1)))
void spmv(__global const REAL *restrict x, __global REAL *restrict y,
          __global const uint *restrict columns, __global const REAL *restrict values,
          __global const ushort *restrict ends,
          __global const ulong *restrict unit_entries, __global const uint *restrict unit_rows,
          __global REAL *restrict sums,
          ulong entries, uint rows, uint pieces, uint first, REAL scale, uint squares)
{
    __local REAL products[PLACE(WEIGHT)];
    __local REAL room[LANES];
    const uint lane = get_local_id(0);
    const uint unit = first + (uint)get_group_id(0);
    const ulong begin = unit_entries[unit];
    const uint count = (uint)(unit_entries[unit + 1] - begin);
    const size_t at = begin < entries ? begin : begin % entries;

    uint column[PER_LANE];
    REAL product[PER_LANE];
#pragma unroll
    for (uint k = 0; k < PER_LANE; k++) {
        const uint i = lane + k * LANES;
        if (i < count) {
            column[k] = columns[at + i];
            product[k] = values[at + i];
        }
    }
#pragma unroll
    for (uint k = 0; k < PER_LANE; k++)
        if (lane + k * LANES < count)
            product[k] *= x[column[k]];

    if (unit < pieces) {
        REAL own = 0;
#pragma unroll
        for (uint k = 0; k < PER_LANE; k++)
            if (lane + k * LANES < count)
                own += product[k];
        const REAL sum = sum_of_group(own, lane, room);
        if (lane == 0)
            sums[unit] = scale * sum;
        return;
    }

#pragma unroll
    for (uint k = 0; k < PER_LANE; k++) {
        const uint i = lane + k * LANES;
        if (i < count)
            products[PLACE(i)] = product[k];
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    const uint first_row = unit_rows[unit];
    const uint own_rows = unit_rows[unit + 1] - first_row;
    __global const ushort *end = ends + (first_row < rows ? first_row : first_row % rows);
    REAL square = 0;
    // Work-items a row.
    uint width = 1;
    while (width < 32 && 2 * width * own_rows <= LANES)
        width *= 2;
    if (width == 1) {
        for (uint row = lane; row < own_rows; row += LANES) {
            const uint stop = end[row];
            REAL sum = 0;
            for (uint i = row == 0 ? 0 : end[row - 1]; i < stop; i++)
                sum += products[PLACE(i)];
            sum *= scale;
            y[first_row + row] = sum;
            square += sum * sum;
        }
    } else {
        const uint row = lane / width;
        const uint part = lane % width;
        REAL sum = 0;
        if (row < own_rows) {
            const uint stop = end[row];
            for (uint i = (row == 0 ? 0 : end[row - 1]) + part; i < stop; i += width)
                sum += products[PLACE(i)];
        }
        room[lane] = sum;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (row < own_rows && part == 0) {
            for (uint i = 1; i < width; i++)
                sum += room[lane + i];
            sum *= scale;
            y[first_row + row] = sum;
            square = sum * sum;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (squares) {
        const REAL sum = sum_of_group(square, lane, room);
        if (lane == 0)
            sums[unit] = sum;
    }
}
