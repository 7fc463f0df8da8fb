/* Events: the program's own, callbacks, wait lists across queues, order, times. */
#include "check.h"
#include <stdatomic.h>
#include <unistd.h>

static atomic_int calls, wrong;

static void CL_CALLBACK called(cl_event event, cl_int status, void *data) {
    if (event != *(cl_event *)data || status != CL_COMPLETE)
        wrong++;
    calls++;
}

static void CL_CALLBACK count_down(cl_event event, cl_int status, void *data) {
    (void)event, (void)status;
    (*(atomic_int *)data)++;
}

static void wait_calls(int number) {
    for (int i = 0; i < 1000 && calls < number; i++)
        usleep(10000);
    CHECK(calls == number);
    CHECK(wrong == 0);
}

static cl_int status_of(cl_event event) {
    cl_int status = 99;
    OK(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL));
    return status;
}

/* A write that waits for the program, a copy in another queue that waits for the write. */
static void chain(void) {
    enum { N = 1000 };
    int in[N], out[N] = {0};
    cl_int code;
    cl_event user = clCreateUserEvent(context, &code), events[3];
    OK(code);
    CHECK(status_of(user) == CL_SUBMITTED);
    cl_mem a = clCreateBuffer(context, 0, sizeof in, NULL, &code);
    cl_mem b = clCreateBuffer(context, 0, sizeof in, NULL, &code);
    for (int i = 0; i < N; i++)
        in[i] = i * i;
    OK(clEnqueueWriteBuffer(turn(0), a, CL_FALSE, 0, sizeof in, in, 1, &user, &events[0]));
    OK(clEnqueueCopyBuffer(turn(1), a, b, 0, 0, sizeof in, 1, &events[0], &events[1]));
    OK(clEnqueueReadBuffer(turn(0), b, CL_FALSE, 0, sizeof in, out, 1, &events[1], &events[2]));
    OK(clSetEventCallback(events[2], CL_COMPLETE, called, &events[2]));
    OK(clSetEventCallback(user, CL_COMPLETE, called, &user));
    OK(clFlush(turn(0)));
    OK(clFlush(turn(1)));
    CHECK(status_of(events[2]) > CL_COMPLETE);
    CHECK(calls == 0);
    CODE(clSetUserEventStatus(user, CL_RUNNING), CL_INVALID_VALUE);
    OK(clSetUserEventStatus(user, CL_COMPLETE));
    CODE(clSetUserEventStatus(user, CL_COMPLETE), CL_INVALID_OPERATION);
    OK(clWaitForEvents(3, events));
    CHECK(memcmp(in, out, sizeof in) == 0);
    wait_calls(2);
    /* An event that has ended calls at once. */
    OK(clSetEventCallback(events[0], CL_RUNNING, count_down, &calls));
    wait_calls(3);
    CODE(clSetEventCallback(events[0], CL_QUEUED, called, NULL), CL_INVALID_VALUE);
    CODE(clSetEventCallback(events[0], CL_COMPLETE, NULL, NULL), CL_INVALID_VALUE);
    CODE(clSetUserEventStatus(events[0], CL_COMPLETE), CL_INVALID_EVENT);
    for (int i = 0; i < 3; i++)
        OK(clReleaseEvent(events[i]));
    OK(clReleaseEvent(user));
    OK(clReleaseMemObject(a));
    OK(clReleaseMemObject(b));
}

static void failing(void) {
    cl_int code;
    cl_event user = clCreateUserEvent(context, &code);
    OK(clSetUserEventStatus(user, -5));
    CHECK(status_of(user) == -5);
    CODE(clWaitForEvents(1, &user), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    OK(clReleaseEvent(user));
}

/* Without order a command does not wait for one that was enqueued before it. */
static void unordered(void) {
    cl_int code;
    cl_command_queue_properties can = 0;
    OK(clGetDeviceInfo(devices[0], CL_DEVICE_QUEUE_PROPERTIES, sizeof can, &can, NULL));
    if (!(can & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE))
        return;
    cl_command_queue queue =
        clCreateCommandQueue(context, devices[0], CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &code);
    OK(code);
    cl_event user = clCreateUserEvent(context, &code), late, early, all;
    int one = 1, two = 2, out[3] = {0};
    cl_mem a = clCreateBuffer(context, 0, 4, NULL, &code);
    cl_mem b = clCreateBuffer(context, 0, 4, NULL, &code);
    OK(clEnqueueWriteBuffer(queue, a, CL_FALSE, 0, 4, &one, 1, &user, &late));
    OK(clEnqueueWriteBuffer(queue, b, CL_FALSE, 0, 4, &two, 0, NULL, &early));
    OK(clWaitForEvents(1, &early));
    CHECK(status_of(late) > CL_COMPLETE);
    OK(clEnqueueMarkerWithWaitList(queue, 0, NULL, &all));
    OK(clEnqueueBarrierWithWaitList(queue, 0, NULL, NULL));
    OK(clEnqueueCopyBuffer(queue, a, b, 0, 0, 4, 0, NULL, NULL));
    OK(clFlush(queue));
    CHECK(status_of(all) > CL_COMPLETE);
    OK(clSetUserEventStatus(user, CL_COMPLETE));
    OK(clWaitForEvents(1, &all));
    CHECK(status_of(late) == CL_COMPLETE);
    OK(clFinish(queue));
    OK(clEnqueueReadBuffer(queue, b, CL_TRUE, 0, 4, out, 0, NULL, NULL));
    CHECK(out[0] == 1);
    cl_event list[4] = {user, late, early, all};
    for (int i = 0; i < 4; i++)
        OK(clReleaseEvent(list[i]));
    OK(clReleaseMemObject(a));
    OK(clReleaseMemObject(b));
    OK(clReleaseCommandQueue(queue));
}

/* The times of all devices are of one clock. */
static void times(void) {
    cl_int code;
    cl_ulong last = 0;
    cl_mem buffer = clCreateBuffer(context, 0, 4096, NULL, &code);
    for (unsigned step = 0; step < 6; step++) {
        char bytes[4096] = {0};
        cl_event event;
        cl_ulong time[4];
        OK(clEnqueueWriteBuffer(turn(step), buffer, CL_TRUE, 0, 4096, bytes, 0, NULL, &event));
        for (cl_uint i = 0; i < 4; i++)
            OK(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_QUEUED + i, 8, &time[i], NULL));
        CHECK(time[0] <= time[1] && time[1] <= time[2] && time[2] <= time[3]);
        /* What a clock is measured against is known to a fraction of a second. */
        CHECK(time[3] + 500000000 > last);
        last = time[3];
        CODE(clGetEventProfilingInfo(event, 0x1299, 8, &time[0], NULL), CL_INVALID_VALUE);
        OK(clReleaseEvent(event));
    }
    OK(clReleaseMemObject(buffer));
}

int main(void) {
    begin(CL_QUEUE_PROFILING_ENABLE);
    chain();
    failing();
    unordered();
    times();
    finish_all();
    return end();
}
