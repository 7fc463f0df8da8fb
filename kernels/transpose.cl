// y = x^T for a batch of matrices of single precision, stored by rows.
// Arguments: src/codelet/transpose/mod.rs.
//
// A work-group of SIDE x DEEP work-items turns a square of SIDE x SIDE numbers
// in local memory, so that both matrices are read and written along their rows.
// One more column keeps the numbers of a column in different banks.
//
// SIDE and DEEP come from src/codelet/transpose/opencl.rs.

__kernel __attribute__((reqd_work_group_size(SIDE, DEEP, 1)))
void transpose(__global const float *restrict x, __global float *restrict y,
               uint rows, uint columns)
{
    __local float square[SIDE][SIDE + 1];
    const uint across = get_local_id(0);
    const uint down = get_local_id(1);
    const size_t matrix = get_global_id(2) * rows * columns;
    const uint first_row = (uint)get_group_id(1) * SIDE;
    const uint first_column = (uint)get_group_id(0) * SIDE;

#pragma unroll
    for (uint i = 0; i < SIDE; i += DEEP) {
        const uint row = first_row + down + i;
        const uint column = first_column + across;
        if (row < rows && column < columns)
            square[down + i][across] = x[matrix + (size_t)row * columns + column];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (uint i = 0; i < SIDE; i += DEEP) {
        const uint row = first_column + down + i;
        const uint column = first_row + across;
        if (row < columns && column < rows)
            y[matrix + (size_t)row * rows + column] = square[across][down + i];
    }
}
