/* A program of one queue that launches one kernel again and again, which computes much on few
 * bytes: what `pdawl exec --policy divide` is measured with.
 *
 *   cc -O2 -o repeated-launches scripts/repeated-launches.c -lOpenCL
 *   ./repeated-launches LAUNCHES ROUNDS [async]
 *
 * ROUNDS are thousands of steps of each work-item; a launch takes 0.47 ms for each on an H100.
 * The program waits after each launch or, with `async`, only at the end. It prints the seconds of
 * all launches and of the second half of them, and compares some results with its own. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { N = 1 << 22, COMPARED = 4099 };

static const char *const text =
    "kernel void heavy(global const uint *in, global uint *out, int steps) {\n"
    "  size_t i = get_global_id(0); uint x = in[i];\n"
    "  for (int k = 0; k < steps; k++) x = x * 1664525u + 1013904223u + (x >> 7);\n"
    "  out[i] = x; }\n";

static void check(cl_int code, const char *what) {
    if (code != CL_SUCCESS) {
        fprintf(stderr, "repeated-launches: %s: %d\n", what, code);
        exit(1);
    }
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + 1e-9 * time.tv_nsec;
}

int main(int argc, char **argv) {
    int launches = argc > 2 ? atoi(argv[1]) : 0, steps = argc > 2 ? atoi(argv[2]) * 1000 : 0;
    if (launches < 1 || steps < 1) {
        fprintf(stderr, "usage: repeated-launches LAUNCHES ROUNDS [async]\n");
        return 2;
    }
    cl_platform_id platform;
    cl_device_id device;
    cl_int code;
    check(clGetPlatformIDs(1, &platform, NULL), "platforms");
    check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "devices");
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
    check(code, "a context");
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &code);
    check(code, "a queue");
    cl_program program = clCreateProgramWithSource(context, 1, (const char **)&text, NULL, &code);
    check(code, "a program");
    check(clBuildProgram(program, 1, &device, "", NULL, NULL), "a build");
    cl_kernel kernel = clCreateKernel(program, "heavy", &code);
    check(code, "a kernel");
    cl_mem in = clCreateBuffer(context, CL_MEM_READ_ONLY, 4 * N, NULL, &code);
    check(code, "a buffer");
    cl_mem out = clCreateBuffer(context, CL_MEM_WRITE_ONLY, 4 * N, NULL, &code);
    check(code, "a buffer");
    cl_uint *given = malloc(4 * N), *got = malloc(4 * N);
    for (cl_uint i = 0; i < N; i++)
        given[i] = i * 2654435761u;
    check(clEnqueueWriteBuffer(queue, in, CL_TRUE, 0, 4 * N, given, 0, NULL, NULL), "a write");
    check(clSetKernelArg(kernel, 0, sizeof in, &in), "an argument");
    check(clSetKernelArg(kernel, 1, sizeof out, &out), "an argument");
    check(clSetKernelArg(kernel, 2, sizeof steps, &steps), "an argument");
    size_t global = N, local = 256;
    double began = now(), half = began;
    for (int i = 0; i < launches; i++) {
        check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, &local, 0, NULL, NULL), "a launch");
        if (argc < 4)
            check(clFinish(queue), "the end of a launch");
        if (i + 1 == launches / 2)
            half = now();
    }
    check(clFinish(queue), "the end");
    double ended = now();
    check(clEnqueueReadBuffer(queue, out, CL_TRUE, 0, 4 * N, got, 0, NULL, NULL), "a read");
    int wrong = 0;
    for (int i = 0; i < N; i += COMPARED) {
        cl_uint x = given[i];
        for (int k = 0; k < steps; k++)
            x = x * 1664525u + 1013904223u + (x >> 7);
        wrong += x != got[i];
    }
    printf("seconds %.3f second half %.3f wrong %d\n", ended - began, ended - half, wrong);
    return wrong != 0;
}
