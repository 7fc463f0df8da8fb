/* Memory that a driver has pinned, as programs get it: a map of CL_MEM_ALLOC_HOST_PTR. A write
 * from it copies what is there when the events of its wait list have ended, of whatever queue. */
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
static void has(cl_mem mem, size_t size, uint32_t k) {
    uint32_t *got = malloc(size);
    OK(clEnqueueReadBuffer(turn(1), mem, CL_TRUE, 0, size, got, 0, NULL, NULL));
    for (size_t i = 0; i < size / 4; i++)
        if (got[i] != (uint32_t)i * 2654435761u + k) {
            printf("%zu bytes, round %u: word %zu is %u\n", size, k, i, got[i]);
            failures++;
            break;
        }
    free(got);
}

int main(void) {
    begin(0);
    cl_program program = build(source, "");
    cl_kernel kernel = kernel_of(program, "set");
    cl_int code;
    for (int s = 0; s < SIZES; s++) {
        size_t size = sizes[s], words = size / 4;
        cl_mem from = buffer(0, size), to = buffer(0, size), pinned = buffer(CL_MEM_ALLOC_HOST_PTR, size);
        void *mapped = clEnqueueMapBuffer(turn(0), pinned, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, size, 0, NULL, NULL, &code);
        OK(code);
        for (uint32_t k = 0; k < ROUNDS; k++) {
            cl_command_queue here = turn(k), there = turn(k + 1);
            cl_event read;
            memset(mapped, 0xee, size);
            OK(clSetKernelArg(kernel, 0, sizeof from, &from));
            OK(clSetKernelArg(kernel, 1, sizeof k, &k));
            OK(clEnqueueNDRangeKernel(there, kernel, 1, NULL, &words, NULL, 0, NULL, NULL));
            OK(clEnqueueReadBuffer(there, from, CL_FALSE, 0, size, mapped, 0, NULL, &read));
            OK(clFlush(there));
            OK(clEnqueueWriteBuffer(here, to, CL_FALSE, 0, size, mapped, 1, &read, NULL));
            OK(clReleaseEvent(read));
            OK(clFinish(here));
            has(to, size, k);
        }
        OK(clEnqueueUnmapMemObject(turn(0), pinned, mapped, 0, NULL, NULL));
        finish_all();
        cl_mem all[] = {from, to, pinned};
        for (int i = 0; i < 3; i++)
            OK(clReleaseMemObject(all[i]));
    }
    OK(clReleaseKernel(kernel));
    OK(clReleaseProgram(program));
    return end();
}
