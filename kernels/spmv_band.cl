// Product of a band of a sparse matrix's rows and parts of a vector.
// src/codelet/spmv/band.rs describes the arguments.
//
// LANES work-items sum a row: they read its entries side by side and add their sums in
// local memory. Every work-item takes part in every barrier, whether it has a row or not.
//
// src/codelet/spmv/band.rs defines REAL, LANES (a power of two), GROUP (the size of a
// work-group, a multiple of LANES) and SLOTS.

#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void spmv_band(__global const REAL *restrict x, __global const uint *restrict columns,
               __global const REAL *restrict values, __global const uint *restrict ends,
               __global const REAL *restrict totals, __global REAL *restrict y,
               REAL scale, REAL base, REAL share, uint normalises, uint rows)
{
    __local REAL sums[GROUP];
    const uint item = get_local_id(0);
    const uint lane = item % LANES;
    const size_t row = get_global_id(0) / LANES;
    const bool has_row = row < rows;

    REAL sum = 0;
    if (has_row) {
        const uint end = ends[row];
        for (uint at = (row > 0 ? ends[row - 1] : 0) + lane; at < end; at += LANES)
            sum += values[at] * x[columns[at]];
    }
    sums[item] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint apart = LANES / 2; apart > 0; apart /= 2) {
        if (lane < apart)
            sums[item] += sums[item + apart];
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    if (has_row && lane == 0) {
        REAL total = 0;
        for (uint slot = 0; slot < SLOTS; slot++)
            total += totals[slot];
        const bool has_length = normalises && total > 0 && isfinite(total);
        const REAL factor = has_length ? scale / sqrt(total) : scale;
        y[row] = factor * sums[item] + (base + share * total);
    }
}
