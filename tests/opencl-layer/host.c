/* Buffers in the program's own memory on CPUs: read and changed in place, without maps. */
#include "check.h"

enum { N = 4096 };

int main(void) {
    cl_int code;
    static int in[N], out[N];
    begin(0);
    for (cl_uint i = 0; i < device_count; i++) {
        cl_device_type type;
        OK(clGetDeviceInfo(devices[i], CL_DEVICE_TYPE, sizeof type, &type, NULL));
        if (!(type & CL_DEVICE_TYPE_CPU))
            return SKIPPED;
    }
    cl_mem a = clCreateBuffer(context, CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR, sizeof in, in, &code);
    OK(code);
    cl_mem b = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, sizeof out, out, &code);
    OK(code);
    cl_program program = build("kernel void f(global const int *a, global int *b) {"
                               " int i = get_global_id(0); b[i] = 2 * a[i] + b[i]; }", "");
    cl_kernel kernel = kernel_of(program, "f");
    OK(clSetKernelArg(kernel, 0, sizeof a, &a));
    OK(clSetKernelArg(kernel, 1, sizeof b, &b));
    for (unsigned step = 0; step < 12; step++) {
        size_t size = N;
        cl_event event;
        for (int i = 0; i < N; i++) {
            in[i] = i + step;
            out[i] = step;
        }
        OK(clEnqueueNDRangeKernel(turn(step), kernel, 1, NULL, &size, NULL, 0, NULL, &event));
        if (step % 3 == 0)
            OK(clFinish(turn(step)));
        else
            OK(clWaitForEvents(1, &event));
        int wrong = 0;
        for (int i = 0; i < N; i++)
            wrong += out[i] != (int)(2 * (i + step) + step);
        if (wrong)
            printf("step %u: %d numbers are wrong\n", step, wrong), failures++;
        OK(clReleaseEvent(event));
    }
    OK(clReleaseKernel(kernel));
    OK(clReleaseProgram(program));
    OK(clReleaseMemObject(a));
    OK(clReleaseMemObject(b));
    return end();
}
