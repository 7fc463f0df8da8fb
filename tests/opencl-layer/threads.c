/* Threads that make all kinds of objects at once, and leave none. */
#include "check.h"
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { THREADS = 8, ROUNDS = 100, N = 64 };

static atomic_int calls;
static cl_program shared;

static void CL_CALLBACK called(cl_event event, cl_int status, void *data) {
    (void)event, (void)status, (void)data;
    calls++;
}

static void *work(void *number) {
    unsigned seed = (unsigned)(size_t)number;
    cl_int code, data[N], out[N];
    for (int round = 0; round < ROUNDS; round++) {
        cl_device_id device = devices[(seed + round) % device_count];
        cl_context own = clCreateContext(NULL, device_count, devices, NULL, NULL, &code);
        OK(code);
        cl_command_queue queue = clCreateCommandQueue(own, device, 0, &code);
        OK(code);
        cl_event user = clCreateUserEvent(own, &code), events[2];
        cl_mem a = clCreateBuffer(own, 0, sizeof data, NULL, &code);
        cl_mem b = clCreateBuffer(own, 0, sizeof data, NULL, &code);
        for (int i = 0; i < N; i++)
            data[i] = seed * 1000 + round + i;
        OK(clEnqueueWriteBuffer(queue, a, CL_FALSE, 0, sizeof data, data, 1, &user, &events[0]));
        OK(clEnqueueCopyBuffer(queue, a, b, 0, 0, sizeof data, 1, &events[0], &events[1]));
        OK(clSetEventCallback(events[1], CL_COMPLETE, called, NULL));
        OK(clFlush(queue));
        OK(clSetUserEventStatus(user, CL_COMPLETE));
        OK(clEnqueueReadBuffer(queue, b, CL_TRUE, 0, sizeof out, out, 1, &events[1], NULL));
        CHECK(memcmp(data, out, sizeof out) == 0);
        OK(clReleaseEvent(user));
        OK(clReleaseEvent(events[0]));
        OK(clReleaseEvent(events[1]));
        OK(clReleaseMemObject(a));
        OK(clReleaseMemObject(b));
        OK(clReleaseCommandQueue(queue));
        OK(clReleaseContext(own));
    }
    /* Launches of one program from all threads, each with its own kernel and buffer. */
    cl_kernel kernel = kernel_of(shared, "f");
    cl_command_queue queue = clCreateCommandQueue(context, devices[seed % device_count], 0, &code);
    cl_mem buffer = clCreateBuffer(context, 0, sizeof data, NULL, &code);
    memset(data, 0, sizeof data);
    OK(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, sizeof data, data, 0, NULL, NULL));
    OK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
    for (int round = 0; round < ROUNDS; round++) {
        cl_int add = seed + round;
        size_t size = N;
        OK(clSetKernelArg(kernel, 1, sizeof add, &add));
        OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &size, NULL, 0, NULL, NULL));
    }
    OK(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof out, out, 0, NULL, NULL));
    for (int i = 0; i < N; i++)
        CHECK(out[i] == (int)(ROUNDS * seed + ROUNDS * (ROUNDS - 1) / 2));
    OK(clReleaseMemObject(buffer));
    OK(clReleaseKernel(kernel));
    OK(clReleaseCommandQueue(queue));
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    begin(0);
    shared = build("kernel void f(global int *b, int add) { b[get_global_id(0)] += add; }", "");
    for (size_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 1000 && calls < THREADS * ROUNDS; i++)
        usleep(10000);
    CHECK(calls == THREADS * ROUNDS);
    OK(clReleaseProgram(shared));
    return end();
}
