/* A program that ends while its launch may not have begun, as programs may. */
#include "check.h"

int main(void) {
    static int data[4096];
    cl_int code;
    begin(0);
    cl_program program = build("kernel void f(global int *b) { int i = get_global_id(0), s = b[i];"
                               " for (int j = 0; j < 2000; j++) s = s * 3 + j; b[i] = s; }", "");
    cl_kernel kernel = kernel_of(program, "f");
    cl_mem buffer = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof data, data, &code);
    size_t size = 4096;
    OK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
    OK(clEnqueueNDRangeKernel(turn(0), kernel, 1, NULL, &size, NULL, 0, NULL, NULL));
    OK(clFlush(turn(0)));
    return failures != 0;
}
