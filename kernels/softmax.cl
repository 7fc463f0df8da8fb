// y = softmax(factor x), row by row, in single precision.
// Arguments: src/codelet/softmax/mod.rs.
//
// A work-group computes a row. Each work-item keeps to its own columns, so what
// it wrote it may read again; only the greatest value and the sum need the group.
//
// LANES comes from src/codelet/softmax/opencl.rs.

__kernel __attribute__((reqd_work_group_size(LANES, 1, 1)))
void softmax(__global const float *restrict x, __global float *restrict y,
             uint width, float factor)
{
    // Every work-item reads all of it, so no rounds of halving are needed.
    __local float greatest_of[LANES];
    __local float sum_of[LANES];
    const uint lane = get_local_id(0);
    const size_t row = get_global_id(0) / LANES;
    x += row * width;
    y += row * width;

    float greatest = -INFINITY;
    for (uint column = lane; column < width; column += LANES)
        greatest = fmax(greatest, x[column]);
    greatest_of[lane] = greatest;
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (uint i = 0; i < LANES; i++)
        greatest = fmax(greatest, greatest_of[i]);

    float sum = 0.0f;
    for (uint column = lane; column < width; column += LANES) {
        const float power = exp(factor * (x[column] - greatest));
        y[column] = power;
        sum += power;
    }
    sum_of[lane] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    float total = 0.0f;
#pragma unroll
    for (uint i = 0; i < LANES; i++)
        total += sum_of[i];

    const float scale = 1.0f / total;
    for (uint column = lane; column < width; column += LANES)
        y[column] *= scale;
}
