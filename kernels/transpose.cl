// y = x^T for a batch of row-major matrices.
// src/codelet/transpose/mod.rs describes the arguments.
//
// A work-group of SIDE x DEEP work-items transposes a tile of SIDE x SIDE elements
// in local memory, so that reads and writes of global memory are coalesced. A
// padding column avoids bank conflicts.
//
// src/codelet/transpose/opencl.rs defines SIDE, DEEP and FORMAT (stored.h).

__kernel __attribute__((reqd_work_group_size(SIDE, DEEP, 1)))
void transpose(__global const stored *restrict x, __global stored *restrict y,
               uint rows, uint columns)
{
    __local stored tile[SIDE][SIDE + 1];
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
            tile[down + i][across] = x[matrix + (size_t)row * columns + column];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (uint i = 0; i < SIDE; i += DEEP) {
        const uint row = first_column + down + i;
        const uint column = first_row + across;
        if (row < columns && column < rows)
            y[matrix + (size_t)row * rows + column] = tile[across][down + i];
    }
}
