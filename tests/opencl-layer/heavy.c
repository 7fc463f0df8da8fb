/* A kernel that takes long enough to be worth its examination. */
#include "check.h"

enum { N = 8192, LAUNCHES = 20, STEPS = 4000 };

static int in[N], out[N];

int main(void) {
    cl_int code;
    size_t global = N, local = 64;
    begin(0);
    cl_program program = build(
        "kernel void heavy(global const int *in, global int *out, int steps) {"
        " size_t i = get_global_id(0); uint x = in[i];"
        " for (int k = 0; k < steps; k++) x = x * 1664525u + 1013904223u; out[i] = x; }", "");
    cl_kernel kernel = kernel_of(program, "heavy");
    cl_mem from = clCreateBuffer(context, CL_MEM_READ_ONLY, sizeof in, NULL, &code);
    OK(code);
    cl_mem to = clCreateBuffer(context, CL_MEM_WRITE_ONLY, sizeof out, NULL, &code);
    OK(code);
    cl_int steps = STEPS;
    OK(clSetKernelArg(kernel, 0, sizeof from, &from));
    OK(clSetKernelArg(kernel, 1, sizeof to, &to));
    OK(clSetKernelArg(kernel, 2, sizeof steps, &steps));
    for (int launch = 0; launch < LAUNCHES; launch++) {
        for (int i = 0; i < N; i++)
            in[i] = i + launch;
        OK(clEnqueueWriteBuffer(queues[0], from, CL_TRUE, 0, sizeof in, in, 0, NULL, NULL));
        OK(clEnqueueNDRangeKernel(queues[0], kernel, 1, NULL, &global, &local, 0, NULL, NULL));
        OK(clEnqueueReadBuffer(queues[0], to, CL_TRUE, 0, sizeof out, out, 0, NULL, NULL));
        for (int i = 0; i < N; i += 61) {
            unsigned x = in[i];
            for (int k = 0; k < STEPS; k++)
                x = x * 1664525u + 1013904223u;
            CHECK(out[i] == (int)x);
        }
    }
    OK(clReleaseMemObject(from));
    OK(clReleaseMemObject(to));
    OK(clReleaseKernel(kernel));
    OK(clReleaseProgram(program));
    return end();
}
