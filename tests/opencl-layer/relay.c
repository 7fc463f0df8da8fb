/* Bytes that the program passes on through its own memory, without waiting.
 *
 * In one queue in order, a write may copy what a read before it has filled. From memory that a
 * driver has pinned, a write of any queue copies what is there when its events have ended. */
#include "check.h"
#include <stdint.h>

enum { SIZES = 4, ROUNDS = 6 };
static const size_t sizes[SIZES] = {64, 4096, 60000, 300000};

static const char *const source =
    "kernel void set(global uint *a, uint k) { size_t i = get_global_id(0); a[i] = i * 2654435761u + k; }\n";

static cl_mem buffer(cl_mem_flags flags, size_t size) {
    cl_int code;
    cl_mem mem = clCreateBuffer(context, flags, size, NULL, &code);
    OK(code);
    return mem;
}

/* The whole buffer is as `set` has left it. */
static void has(cl_mem mem, size_t size, uint32_t k, const char *what) {
    uint32_t *got = malloc(size);
    OK(clEnqueueReadBuffer(turn(1), mem, CL_TRUE, 0, size, got, 0, NULL, NULL));
    for (size_t i = 0; i < size / 4; i++)
        if (got[i] != (uint32_t)i * 2654435761u + k) {
            printf("%s: %zu bytes: word %zu is %u\n", what, size, i, got[i]);
            failures++;
            break;
        }
    free(got);
}

static void set(cl_command_queue queue, cl_kernel kernel, cl_mem mem, size_t size, uint32_t k) {
    size_t words = size / 4;
    OK(clSetKernelArg(kernel, 0, sizeof mem, &mem));
    OK(clSetKernelArg(kernel, 1, sizeof k, &k));
    OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &words, NULL, 0, NULL, NULL));
}

int main(void) {
    begin(0);
    cl_program program = build(source, "");
    cl_kernel kernel = kernel_of(program, "set");
    cl_int code;
    for (int s = 0; s < SIZES; s++) {
        size_t size = sizes[s];
        cl_mem from = buffer(0, size), other = buffer(0, size), to = buffer(0, size);
        cl_mem pinned = buffer(CL_MEM_ALLOC_HOST_PTR, size);
        void *mapped = clEnqueueMapBuffer(turn(0), pinned, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, size, 0, NULL, NULL, &code);
        OK(code);
        char *own = malloc(size);
        for (uint32_t k = 0; k < ROUNDS; k++) {
            cl_command_queue here = turn(k), there = turn(k + 1);
            memset(own, 0xee, size);
            memset(mapped, 0xee, size);
            set(there, kernel, from, size, k);
            OK(clFinish(there));
            OK(clEnqueueReadBuffer(here, from, CL_FALSE, 0, size, own, 0, NULL, NULL));
            if (k % 2) /* Something between them, which may be elsewhere. */
                set(here, kernel, other, size, k);
            OK(clEnqueueWriteBuffer(here, to, CL_FALSE, 0, size, own, 0, NULL, NULL));
            OK(clFinish(here));
            has(to, size, k, "one queue");

            size_t zero[3] = {0, 0, 0}, region[3] = {size / 4, 2, 2};
            memset(own, 0xee, size);
            set(there, kernel, from, size, 7 * k);
            OK(clFinish(there));
            OK(clEnqueueReadBufferRect(here, from, CL_FALSE, zero, zero, region, 0, 0, 0, 0, own, 0, NULL, NULL));
            OK(clEnqueueWriteBufferRect(here, to, CL_FALSE, zero, zero, region, 0, 0, 0, 0, own, 0, NULL, NULL));
            OK(clFinish(here));
            has(to, size, 7 * k, "boxes");

            cl_event read;
            set(there, kernel, from, size, 9 * k);
            OK(clEnqueueReadBuffer(there, from, CL_FALSE, 0, size, mapped, 0, NULL, &read));
            OK(clFlush(there));
            OK(clEnqueueWriteBuffer(here, to, CL_FALSE, 0, size, mapped, 1, &read, NULL));
            OK(clReleaseEvent(read));
            OK(clFinish(here));
            OK(clFinish(there));
            has(to, size, 9 * k, "pinned memory");
        }
        OK(clEnqueueUnmapMemObject(turn(0), pinned, mapped, 0, NULL, NULL));
        finish_all();
        free(own);
        cl_mem all[] = {from, other, to, pinned};
        for (int i = 0; i < 4; i++)
            OK(clReleaseMemObject(all[i]));
    }
    OK(clReleaseKernel(kernel));
    OK(clReleaseProgram(program));
    return end();
}
