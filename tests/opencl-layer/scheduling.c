/* MultiCL's interface: schedulers of contexts, properties of queues, shapes by device. */
#include "check.h"
#include <CL/cl_pdawl.h>

enum { N = 50021, ROUNDS = 6, QUEUES = 3 };

static const char *source =
    "kernel void advance(global float *x, uint n, float a) {"
    " for (size_t i = get_global_id(0); i < n; i += get_global_size(0)) x[i] = a * x[i] + 1; }";

static float values[N];

/* Runs steps in a queue and compares with the same steps on the host. */
static void run(cl_program program, cl_command_queue queue, int region) {
    cl_int code;
    cl_uint n = N;
    float a = 0.75f;
    size_t size = 1024, local = 64;
    cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof values, NULL, &code);
    OK(code);
    for (int i = 0; i < N; i++)
        values[i] = (float)(i % 31);
    OK(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, sizeof values, values, 0, NULL, NULL));
    cl_kernel kernel = kernel_of(program, "advance");
    OK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
    OK(clSetKernelArg(kernel, 1, sizeof n, &n));
    OK(clSetKernelArg(kernel, 2, sizeof a, &a));
    size_t other = 2048, group = 32;
    OK(clSetKernelWorkGroupInfo(kernel, 1, devices, 1, NULL, &other, &group));
    /* What cannot run is refused before it is launched: too many in a group, a size that does not
     * divide the range. */
    size_t huge = 1 << 20, odd = 48;
    CODE(clSetKernelWorkGroupInfo(kernel, 1, devices, 1, NULL, &huge, &huge),
         CL_INVALID_WORK_GROUP_SIZE);
    CODE(clSetKernelWorkGroupInfo(kernel, 1, devices, 1, NULL, &other, &odd),
         CL_INVALID_WORK_GROUP_SIZE);
    if (region)
        OK(clSetCommandQueueSchedProperty(queue, SCHED_AUTO_DYNAMIC));
    for (int round = 0; round < ROUNDS; round++) {
        OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &size, &local, 0, NULL, NULL));
        if (round % 2)
            OK(clFinish(queue));
        if (region && round == ROUNDS / 2)
            OK(clSetCommandQueueSchedProperty(queue, SCHED_OFF));
    }
    static float results[N];
    OK(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof results, results, 0, NULL, NULL));
    int wrong = 0;
    for (int i = 0; i < N; i++) {
        float right = values[i];
        for (int round = 0; round < ROUNDS; round++)
            right = a * right + 1;
        float difference = results[i] > right ? results[i] - right : right - results[i];
        wrong += !(difference <= 1e-5f * right);
    }
    CHECK(wrong == 0);
    OK(clReleaseKernel(kernel));
    OK(clReleaseMemObject(buffer));
}

static void errors(void) {
    cl_int code;
    cl_context_properties unknown[] = {CL_CONTEXT_SCHEDULER, 77, 0};
    CHECK(clCreateContext(unknown, 1, devices, NULL, NULL, &code) == NULL);
    CHECK(code == CL_INVALID_PROPERTY);
    CHECK(clCreateCommandQueue(context, NULL, 0, &code) == NULL);
    CHECK(code == CL_INVALID_DEVICE);
    CHECK(clCreateCommandQueue(context, devices[0], SCHED_OFF | SCHED_AUTO_STATIC, &code) == NULL);
    CHECK(code == CL_INVALID_VALUE);
    CHECK(clCreateCommandQueue(context, devices[0], SCHED_IO_BOUND | SCHED_COMPUTE_BOUND, &code) == NULL);
    CHECK(code == CL_INVALID_VALUE);
    CODE(clSetCommandQueueSchedProperty(queues[0], SCHED_IO_BOUND), CL_INVALID_VALUE);
    CODE(clSetCommandQueueSchedProperty(queues[0], 1), CL_INVALID_VALUE);
    CODE(clSetKernelWorkGroupInfo(NULL, 1, devices, 1, NULL, NULL, NULL), CL_INVALID_KERNEL);
    CODE(clSetKernelWorkGroupInfo(NULL, 0, NULL, 1, NULL, NULL, NULL), CL_INVALID_VALUE);
}

int main(void) {
    static const cl_context_properties schedulers[] = {ROUND_ROBIN, AUTO_FIT};
    static const cl_command_queue_properties kinds[] = {
        SCHED_AUTO_DYNAMIC, SCHED_AUTO_DYNAMIC | SCHED_KERNEL_EPOCH | SCHED_COMPUTE_BOUND,
        SCHED_AUTO_STATIC | SCHED_MEMORY_BOUND, SCHED_EXPLICIT_REGION | SCHED_ITERATIVE, SCHED_OFF};
    begin(0);
    errors();
    for (int s = 0; s < 2; s++) {
        cl_int code;
        cl_context_properties properties[] = {
            CL_CONTEXT_PLATFORM, (cl_context_properties)platform,
            CL_CONTEXT_SCHEDULER, schedulers[s], 0};
        cl_context plain = context;
        context = clCreateContext(properties, device_count, devices, NULL, NULL, &code);
        OK(code);
        cl_program program = build(source, "");
        for (int kind = 0; kind < 5; kind++) {
            cl_command_queue own[QUEUES];
            for (int q = 0; q < QUEUES; q++) {
                cl_device_id device = kinds[kind] & SCHED_OFF ? devices[0] : NULL;
                own[q] = clCreateCommandQueue(context, device, kinds[kind], &code);
                OK(code);
                cl_command_queue_properties said;
                OK(clGetCommandQueueInfo(own[q], CL_QUEUE_PROPERTIES, sizeof said, &said, NULL));
                CHECK(said == kinds[kind]);
            }
            for (int q = 0; q < QUEUES; q++)
                run(program, own[q], (kinds[kind] & SCHED_EXPLICIT_REGION) != 0);
            for (int q = 0; q < QUEUES; q++)
                OK(clReleaseCommandQueue(own[q]));
        }
        OK(clReleaseProgram(program));
        OK(clReleaseContext(context));
        context = plain;
    }
    return end();
}
