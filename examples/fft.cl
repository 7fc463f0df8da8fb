// A work-group transforms a row of COLUMNS numbers by Stockham's algorithm, in local memory.

#define COLUMNS 1024

__kernel void fft_ocl(__global const float2 *input, __global float2 *output)
{
    __local float2 buffers[2][COLUMNS];
    const uint item = get_local_id(0), items = get_local_size(0);
    for (uint j = item; j < COLUMNS; j += items)
        buffers[0][j] = input[j];
    barrier(CLK_LOCAL_MEM_FENCE);

    uint now = 0;
    for (uint span = 1; span < COLUMNS; span *= 2) {
        for (uint j = item; j < COLUMNS / 2; j += items) {
            const uint k = j & (span - 1), next = 2 * (j - k) + k;
            float cosine;
            const float sine = sincos(-M_PI_F * (float)k / (float)span, &cosine);
            const float2 a = buffers[now][j], b = buffers[now][j + COLUMNS / 2];
            const float2 turned = (float2)(b.x * cosine - b.y * sine, b.x * sine + b.y * cosine);
            buffers[1 - now][next] = a + turned;
            buffers[1 - now][next + span] = a - turned;
        }
        now = 1 - now;
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    for (uint j = item; j < COLUMNS; j += items)
        output[j] = buffers[now][j];
}
