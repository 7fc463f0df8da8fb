// A block of an image convolved with a square filter, in single precision.
// src/codelet/convolution/mod.rs describes the arguments.
//
// A work-group computes ITEMS_X numbers of ITEMS_Y * ROWS rows; a work-item computes ROWS
// of them, ITEMS_Y rows apart. With TILED, the group's input is copied to local memory
// first, with zeros outside of the image.
//
// src/codelet/convolution/opencl.rs defines the sizes in capital letters.

#define RADIUS (SIZE / 2)
#define REACH (RADIUS * CHANNELS)

float number(__global const float *in, uint rows, uint width, uint stride, int y, int x)
{
    const bool inside = y >= 0 && y < (int)rows && x >= 0 && x < (int)width;
    return inside ? in[(size_t)y * stride + x] : 0.0f;
}

__kernel __attribute__((reqd_work_group_size(ITEMS_X, ITEMS_Y, 1)))
void convolution(__global const float *restrict in, __global const float *restrict filter,
                 __global float *restrict out, ulong in_first, uint in_stride,
                 ulong out_first, uint out_stride, uint in_rows, uint in_columns, uint above,
                 uint left, uint rows, uint columns, uint size, uint channels)
{
    const uint width = in_columns * CHANNELS;
    const uint out_width = columns * CHANNELS;
    in += in_first;
    out += out_first;
    const int local_x = get_local_id(0), local_y = get_local_id(1);
    const int group_x = get_group_id(0) * ITEMS_X;
    const int group_y = get_group_id(1) * ITEMS_Y * ROWS;
    // Where the group's input begins in the block.
    const int from_x = group_x + (int)left * CHANNELS - REACH;
    const int from_y = group_y + (int)above - RADIUS;
    float sums[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        sums[r] = 0.0f;

#if TILED
    __local float tile[DOWN][ACROSS];
    for (int y = local_y; y < DOWN; y += ITEMS_Y)
        for (int x = local_x; x < ACROSS; x += ITEMS_X)
            tile[y][x] = number(in, in_rows, width, in_stride, from_y + y, from_x + x);
    barrier(CLK_LOCAL_MEM_FENCE);
#define INPUT(y, x) tile[y][x]
#else
#define INPUT(y, x) number(in, in_rows, width, in_stride, from_y + (y), from_x + (x))
#endif

    for (int i = 0; i < SIZE; i++)
        for (int j = 0; j < SIZE; j++) {
            const float weight = filter[i * SIZE + j];
#pragma unroll
            for (int r = 0; r < ROWS; r++)
                sums[r] = fma(weight, INPUT(local_y + r * ITEMS_Y + i, local_x + j * CHANNELS),
                              sums[r]);
        }

    const uint x = group_x + local_x;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const uint y = group_y + local_y + r * ITEMS_Y;
        if (y < rows && x < out_width)
            out[(size_t)y * out_stride + x] = sums[r];
    }
}
