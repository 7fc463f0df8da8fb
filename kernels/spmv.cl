// Product of a sparse matrix and a vector, over units of about equal work.
// src/codelet/spmv/mod.rs describes the arguments and defines a unit.
//
// A work-group computes one unit. Consecutive work-items read consecutive
// entries, so that loads are coalesced for any row lengths. A work-item issues
// all of its loads before it uses the first. The products are stored in local
// memory, where the rows are summed. Work-items without an entry compute nothing,
// since 0 times an infinite x would be NaN.
//
// `restrict` and `const` allow loads of x through the read-only cache.
//
// src/codelet/spmv/opencl.rs defines REAL, LANES (the size of a work-group), WEIGHT
// (the most entries and rows of a unit together), END (the bits of a row's end without
// its mark), and SQUARES and RANKS (what units sum).

#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

#define PER_LANE (WEIGHT / LANES)

// Index in local memory, padded: otherwise rows of 16 products would all start in
// the same bank.
#define PADDED(i) ((i) + ((i) >> 4))

// Tree reduction: work-item 0 gets the sum of the work-items' values.
static inline REAL sum_of_group(REAL value, uint lane, __local REAL *scratch)
{
    scratch[lane] = value;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint span = LANES / 2; span > 0; span /= 2) {
        if (lane < span)
            scratch[lane] += scratch[lane + span];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    return scratch[0];
}

__kernel __attribute__((reqd_work_group_size(LANES, 1, 1)))
void spmv(__global const REAL *restrict x, __global REAL *restrict y,
          __global const uint *restrict columns, __global const REAL *restrict values,
          __global const ushort *restrict ends,
          __global const ulong *restrict unit_entries, __global const uint *restrict unit_rows,
          __global REAL *restrict sums,
          ulong entries, uint rows, uint pieces, uint first, REAL scale, REAL shift,
          uint sums_kind)
{
    __local REAL products[PADDED(WEIGHT)];
    __local REAL scratch[LANES];
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
        const REAL sum = sum_of_group(own, lane, scratch);
        if (lane == 0)
            sums[sums_kind == RANKS ? 2 * unit : unit] = scale * sum;
        return;
    }

#pragma unroll
    for (uint k = 0; k < PER_LANE; k++) {
        const uint i = lane + k * LANES;
        if (i < count)
            products[PADDED(i)] = product[k];
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    const uint first_row = unit_rows[unit];
    const uint own_rows = unit_rows[unit + 1] - first_row;
    __global const ushort *end = ends + (first_row < rows ? first_row : first_row % rows);
    REAL first_sum = 0;
    REAL second_sum = 0;
    // Work-items per row.
    uint width = 1;
    while (width < 32 && 2 * width * own_rows <= LANES)
        width *= 2;
    if (width == 1) {
        for (uint row = lane; row < own_rows; row += LANES) {
            const uint stop = end[row] & END;
            REAL sum = 0;
            for (uint i = row == 0 ? 0 : end[row - 1] & END; i < stop; i++)
                sum += products[PADDED(i)];
            sum = scale * sum + shift;
            y[first_row + row] = sum;
            if (sums_kind == RANKS) {
                first_sum += end[row] > END ? sum : 0;
                second_sum += fabs(sum - x[first_row + row]);
            } else {
                first_sum += sum * sum;
            }
        }
    } else {
        const uint row = lane / width;
        const uint part = lane % width;
        REAL sum = 0;
        if (row < own_rows) {
            const uint stop = end[row] & END;
            for (uint i = (row == 0 ? 0 : end[row - 1] & END) + part; i < stop; i += width)
                sum += products[PADDED(i)];
        }
        scratch[lane] = sum;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (row < own_rows && part == 0) {
            for (uint i = 1; i < width; i++)
                sum += scratch[lane + i];
            sum = scale * sum + shift;
            y[first_row + row] = sum;
            if (sums_kind == RANKS) {
                first_sum = end[row] > END ? sum : 0;
                second_sum = fabs(sum - x[first_row + row]);
            } else {
                first_sum = sum * sum;
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (sums_kind == SQUARES) {
        const REAL sum = sum_of_group(first_sum, lane, scratch);
        if (lane == 0)
            sums[unit] = sum;
    } else if (sums_kind == RANKS) {
        const REAL marked = sum_of_group(first_sum, lane, scratch);
        if (lane == 0)
            sums[2 * unit] = marked;
        barrier(CLK_LOCAL_MEM_FENCE);
        const REAL changes = sum_of_group(second_sum, lane, scratch);
        if (lane == 0)
            sums[2 * unit + 1] = changes;
    }
}
