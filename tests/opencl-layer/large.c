/* Large buffers that several devices change in turns, several of them at once: what goes from
 * device to device goes in pieces, and there may be no pinned memory left for some. */
#include "check.h"
#include <stdint.h>

enum { BUFFERS = 6, ROUNDS = 4 };
static const size_t words = (21 << 18) + 192, local = 64;

static const char *const source =
    "kernel void advance(global uint *a, uint k) { size_t i = get_global_id(0); a[i] = a[i] * 1664525u + (uint)i + k; }\n";

int main(void) {
    begin(0);
    cl_program program = build(source, "");
    cl_kernel kernel = kernel_of(program, "advance");
    uint32_t *made = malloc(words * 4), *got = malloc(words * 4);
    cl_mem mems[BUFFERS];
    cl_event events[BUFFERS];
    for (int b = 0; b < BUFFERS; b++) {
        cl_int code;
        for (size_t i = 0; i < words; i++)
            made[i] = (uint32_t)(i * 7 + b);
        mems[b] = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, words * 4, made, &code);
        OK(code);
    }
    for (uint32_t round = 0; round < ROUNDS; round++)
        for (int b = 0; b < BUFFERS; b++) {
            cl_event *last = round ? &events[b] : NULL, event;
            uint32_t k = round * 100 + b;
            cl_command_queue queue = turn(round + b);
            OK(clSetKernelArg(kernel, 0, sizeof mems[b], &mems[b]));
            OK(clSetKernelArg(kernel, 1, sizeof k, &k));
            OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &words, &local, last != NULL, last, &event));
            OK(clFlush(queue));
            if (last)
                OK(clReleaseEvent(*last));
            events[b] = event;
        }
    for (int b = 0; b < BUFFERS; b++) {
        OK(clEnqueueReadBuffer(turn(b), mems[b], CL_TRUE, 0, words * 4, got, 1, &events[b], NULL));
        for (size_t i = 0; i < words; i++) {
            uint32_t expected = (uint32_t)(i * 7 + b);
            for (uint32_t round = 0; round < ROUNDS; round++)
                expected = expected * 1664525u + (uint32_t)i + round * 100 + b;
            if (got[i] != expected) {
                printf("buffer %d: word %zu is %u, not %u\n", b, i, got[i], expected);
                failures++;
                break;
            }
        }
        OK(clReleaseEvent(events[b]));
        OK(clReleaseMemObject(mems[b]));
    }
    free(made);
    free(got);
    OK(clReleaseKernel(kernel));
    OK(clReleaseProgram(program));
    return end();
}
