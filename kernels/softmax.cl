// y = softmax(factor x), row by row, in single precision.
// src/codelet/softmax/mod.rs describes the arguments.
//
// A work-group computes one row. Each work-item reads and writes only its own
// columns, so it may read back what it wrote. Only the maximum and the sum need
// the group.
//
// src/codelet/softmax/opencl.rs defines LANES, the size of a work-group.

__kernel __attribute__((reqd_work_group_size(LANES, 1, 1)))
void softmax(__global const float *restrict x, __global float *restrict y,
             uint width, float factor)
{
    // Every work-item reads the whole array, which replaces a tree reduction.
    __local float maxima[LANES];
    __local float sums[LANES];
    const uint lane = get_local_id(0);
    const size_t row = get_global_id(0) / LANES;
    x += row * width;
    y += row * width;

    float maximum = -INFINITY;
    for (uint column = lane; column < width; column += LANES)
        maximum = fmax(maximum, x[column]);
    maxima[lane] = maximum;
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (uint i = 0; i < LANES; i++)
        maximum = fmax(maximum, maxima[i]);

    float sum = 0.0f;
    for (uint column = lane; column < width; column += LANES) {
        const float exponential = exp(factor * (x[column] - maximum));
        y[column] = exponential;
        sum += exponential;
    }
    sums[lane] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    float total = 0.0f;
#pragma unroll
    for (uint i = 0; i < LANES; i++)
        total += sums[i];

    const float scale = 1.0f / total;
    for (uint column = lane; column < width; column += LANES)
        y[column] *= scale;
}
