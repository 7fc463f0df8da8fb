/* Threads with contexts of their own, each with several queues that launch one kernel. */
#include "check.h"
#include <pthread.h>

enum { THREADS = 8, ROUNDS = 1, QUEUES = 4, LAUNCHES = 12, N = 256 };

static const char *source =
    "kernel void f(global int *b, int add) { b[get_global_id(0)] += add; }";

static void *work(void *number) {
    size_t seed = (size_t)number, size = N;
    cl_int code, sum = 0, zero = 0, out[N];
    for (int round = 0; round < ROUNDS; round++, sum = 0) {
        cl_context own = clCreateContext(NULL, device_count, devices, NULL, NULL, &code);
        OK(code);
        cl_command_queue all[QUEUES];
        for (int q = 0; q < QUEUES; q++) {
            cl_device_id device = devices[(seed + round + q) % device_count];
            all[q] = clCreateCommandQueue(own, device, 0, &code);
            OK(code);
        }
        cl_program program = clCreateProgramWithSource(own, 1, &source, NULL, &code);
        OK(clBuildProgram(program, 0, NULL, "", NULL, NULL));
        cl_kernel kernel = kernel_of(program, "f");
        cl_mem buffer = clCreateBuffer(own, 0, sizeof out, NULL, &code);
        OK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
        OK(clEnqueueFillBuffer(all[0], buffer, &zero, sizeof zero, 0, sizeof out, 0, NULL, NULL));
        OK(clFinish(all[0]));
        for (int i = 0; i < LAUNCHES; i++) {
            cl_int add = (cl_int)seed + i;
            sum += add;
            OK(clSetKernelArg(kernel, 1, sizeof add, &add));
            OK(clEnqueueNDRangeKernel(all[i % QUEUES], kernel, 1, NULL, &size, NULL, 0, NULL, NULL));
            OK(clFinish(all[i % QUEUES]));
        }
        OK(clEnqueueReadBuffer(all[0], buffer, CL_TRUE, 0, sizeof out, out, 0, NULL, NULL));
        for (int i = 0; i < N; i++)
            CHECK(out[i] == sum);
        OK(clReleaseMemObject(buffer));
        OK(clReleaseKernel(kernel));
        OK(clReleaseProgram(program));
        for (int q = 0; q < QUEUES; q++)
            OK(clReleaseCommandQueue(all[q]));
        OK(clReleaseContext(own));
    }
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    begin(0);
    for (size_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return end();
}
