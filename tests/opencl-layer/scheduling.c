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

/* Kernels that say where they ran: the range that is set for a device tells it. */

static const char *places =
    "kernel void place(global uint *o) {"
    " if (get_global_id(0) == 0) o[0] = get_global_size(0) / 64 - 1; }"
    "kernel void more(global uint *o) { o[get_global_id(0)] += 1; }";

static cl_kernel placed;

static void open_places(cl_context_properties scheduler) {
    cl_int code;
    cl_context_properties properties[] = {CL_CONTEXT_PLATFORM, (cl_context_properties)platform,
                                          CL_CONTEXT_SCHEDULER, scheduler, 0};
    context = clCreateContext(properties, device_count, devices, NULL, NULL, &code);
    OK(code);
    cl_program program = build(places, "");
    placed = kernel_of(program, "place");
    OK(clReleaseProgram(program));
    for (cl_uint i = 0; i < device_count; i++) {
        size_t global = 64 * (i + 1), local = 64;
        OK(clSetKernelWorkGroupInfo(placed, 1, &devices[i], 1, NULL, &global, &local));
    }
}

static void close_places(void) {
    OK(clReleaseKernel(placed));
    OK(clReleaseContext(context));
}

static cl_command_queue queue_of(cl_device_id device, cl_command_queue_properties properties) {
    cl_int code;
    cl_command_queue queue = clCreateCommandQueue(context, device, properties, &code);
    OK(code);
    return queue;
}

/* Launches in a queue; the answer is in the buffer. */
static cl_mem launch(cl_command_queue queue) {
    cl_int code;
    size_t one = 64;
    cl_mem answer = clCreateBuffer(context, CL_MEM_READ_WRITE, 4096, NULL, &code);
    OK(code);
    OK(clSetKernelArg(placed, 0, sizeof answer, &answer));
    OK(clEnqueueNDRangeKernel(queue, placed, 1, NULL, &one, NULL, 0, NULL, NULL));
    return answer;
}

/* Where a launch ran, read by a queue that is not scheduled. */
static cl_uint where(cl_command_queue queue, cl_mem answer) {
    cl_uint place = 77;
    OK(clFinish(queue));
    cl_command_queue plain = queue_of(devices[0], 0);
    OK(clEnqueueReadBuffer(plain, answer, CL_TRUE, 0, sizeof place, &place, 0, NULL, NULL));
    OK(clReleaseCommandQueue(plain));
    OK(clReleaseMemObject(answer));
    return place;
}

static cl_device_id device_of(cl_command_queue queue) {
    cl_device_id device = NULL;
    OK(clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof device, &device, NULL));
    return device;
}

static void round_robin(void) {
    cl_mem a[4], b[4];
    cl_command_queue own[4];
    cl_uint turn = 0;
    open_places(ROUND_ROBIN);
    /* Each launch, whichever queue it is in. */
    for (int q = 0; q < 3; q++)
        own[q] = queue_of(NULL, SCHED_AUTO_DYNAMIC);
    for (int round = 0; round < 3; round++) {
        for (int q = 0; q < 3; q++) {
            a[q] = launch(own[q]);
            CHECK(device_of(own[q]) == devices[(turn + q) % device_count]);
        }
        for (int q = 0; q < 3; q++)
            OK(clFinish(own[q]));
        for (int q = 0; q < 3; q++)
            CHECK(where(own[q], a[q]) == turn++ % device_count);
    }
    for (int step = 0; step < 5; step++)
        CHECK(where(own[0], launch(own[0])) == turn++ % device_count);
    for (int q = 0; q < 3; q++)
        OK(clReleaseCommandQueue(own[q]));
    /* Each epoch. A queue that is not scheduled takes no turn. */
    for (int q = 0; q < 3; q++)
        own[q] = queue_of(NULL, q == 1 ? SCHED_KERNEL_EPOCH : SCHED_AUTO_DYNAMIC | SCHED_KERNEL_EPOCH);
    own[3] = queue_of(devices[device_count - 1], SCHED_OFF);
    for (int round = 0; round < 3; round++) {
        for (int q = 0; q < 4; q++)
            a[q] = launch(own[q]), b[q] = launch(own[q]);
        for (int q = 0; q < 4; q++)
            OK(clFinish(own[q]));
        for (int q = 0; q < 4; q++) {
            cl_uint expected = q == 3 ? device_count - 1 : turn++ % device_count;
            CHECK(where(own[q], a[q]) == expected);
            CHECK(where(own[q], b[q]) == expected);
            CHECK(device_of(own[q]) == devices[expected]);
        }
    }
    for (int q = 0; q < 4; q++)
        OK(clReleaseCommandQueue(own[q]));
    /* Each region, waits within it and all: the queue stays there until the next one begins. */
    for (int q = 0; q < 3; q++)
        own[q] = queue_of(NULL, SCHED_EXPLICIT_REGION);
    for (int round = 0; round < 3; round++)
        for (int q = 0; q < 3; q++, turn++) {
            OK(clSetCommandQueueSchedProperty(own[q], SCHED_AUTO_DYNAMIC));
            a[0] = launch(own[q]);
            OK(clFinish(own[q]));
            a[1] = launch(own[q]);
            OK(clSetCommandQueueSchedProperty(own[q], SCHED_OFF));
            a[2] = launch(own[q]);
            OK(clFinish(own[q]));
            for (int i = 0; i < 3; i++)
                CHECK(where(own[q], a[i]) == turn % device_count);
            CHECK(device_of(own[q]) == devices[turn % device_count]);
        }
    for (int q = 0; q < 3; q++)
        OK(clReleaseCommandQueue(own[q]));
    close_places();
}

/* A group size without a range: launches keep theirs. */
static void group_sizes(void) {
    cl_int code;
    cl_uint numbers[512];
    size_t local = 32, global = 512, zero = 0, plane[2] = {16, 8}, at = 256, few = 128;
    cl_program program = build(places, "");
    cl_kernel kernel = kernel_of(program, "more");
    memset(numbers, 0, sizeof numbers);
    cl_mem buffer = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof numbers, numbers, &code);
    OK(code);
    OK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
#define SET(...) clSetKernelWorkGroupInfo(kernel, device_count, devices, __VA_ARGS__)
#define LAUNCH(count, ...) clEnqueueNDRangeKernel(queues[0], kernel, count, __VA_ARGS__, 0, NULL, NULL)
    CODE(SET(1, NULL, &zero, &local), CL_INVALID_GLOBAL_WORK_SIZE);
    CODE(SET(1, NULL, NULL, &zero), CL_INVALID_WORK_GROUP_SIZE);
    CODE(SET(4, NULL, NULL, &local), CL_INVALID_WORK_DIMENSION);
    OK(SET(1, NULL, NULL, &local));
    OK(LAUNCH(1, NULL, &global, NULL));
    OK(LAUNCH(1, &at, &few, NULL));
    CODE(LAUNCH(2, NULL, plane, NULL), CL_INVALID_WORK_DIMENSION);
    /* What is not set is the launch's own. */
    OK(SET(1, NULL, NULL, NULL));
    OK(LAUNCH(1, NULL, &global, &local));
    OK(SET(1, &at, NULL, NULL));
    OK(LAUNCH(1, NULL, &few, NULL));
    OK(clEnqueueReadBuffer(queues[0], buffer, CL_TRUE, 0, sizeof numbers, numbers, 0, NULL, NULL));
    int wrong = 0;
    for (int i = 0; i < 512; i++)
        wrong += numbers[i] != (i >= 256 && i < 384 ? 4 : 2);
    CHECK(wrong == 0);
    OK(clReleaseMemObject(buffer));
    OK(clReleaseKernel(kernel));
    OK(clReleaseProgram(program));
}

/* A buffer that moves with every launch, while nothing has ended. */
static void long_epoch(void) {
    enum { LAUNCHES = 6000 };
    cl_int code;
    cl_uint numbers[64] = {0};
    size_t global = 64;
    cl_event event = clCreateUserEvent(context, &code);
    OK(code);
    cl_program program = build(places, "");
    cl_kernel kernel = kernel_of(program, "more");
    cl_mem buffer = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof numbers, numbers, &code);
    OK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
    for (int i = 0; i < LAUNCHES; i++)
        OK(clEnqueueNDRangeKernel(queues[0], kernel, 1, NULL, &global, NULL, i == 0,
                                  i == 0 ? &event : NULL, NULL));
    OK(clSetUserEventStatus(event, CL_COMPLETE));
    OK(clEnqueueReadBuffer(queues[0], buffer, CL_TRUE, 0, sizeof numbers, numbers, 0, NULL, NULL));
    CHECK(numbers[0] == LAUNCHES && numbers[63] == LAUNCHES);
    OK(clReleaseEvent(event));
    OK(clReleaseMemObject(buffer));
    OK(clReleaseKernel(kernel));
    OK(clReleaseProgram(program));
}

/* Where a queue with these properties runs, on unlike devices. */
static void say(const char *what, cl_command_queue_properties properties) {
    static const char big[4 << 20];
    cl_int code;
    size_t one = 64;
    cl_command_queue queue = queue_of(NULL, properties);
    cl_mem data = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof big, NULL, &code);
    OK(code);
    /* The first device has the data. */
    cl_command_queue plain = queue_of(devices[0], 0);
    OK(clEnqueueWriteBuffer(plain, data, CL_TRUE, 0, sizeof big, big, 0, NULL, NULL));
    OK(clReleaseCommandQueue(plain));
    OK(clSetKernelArg(placed, 0, sizeof data, &data));
    for (int epoch = 0; epoch < 2; epoch++) {
        OK(clEnqueueNDRangeKernel(queue, placed, 1, NULL, &one, NULL, 0, NULL, NULL));
        OK(clFinish(queue));
    }
    cl_uint place = where(queue, data);
    CHECK(place < device_count && device_of(queue) == devices[place]);
    printf("%s %u\n", what, place);
    OK(clReleaseCommandQueue(queue));
}

static void unlike(void) {
    open_places(AUTO_FIT);
    say("compute", SCHED_AUTO_STATIC | SCHED_COMPUTE_BOUND);
    say("memory", SCHED_AUTO_STATIC | SCHED_MEMORY_BOUND);
    say("io", SCHED_AUTO_STATIC | SCHED_IO_BOUND);
    cl_command_queue queue = queue_of(NULL, SCHED_AUTO_STATIC | SCHED_COMPUTE_BOUND);
    where(queue, launch(queue));
    OK(clSetCommandQueueSchedProperty(queue, SCHED_AUTO_STATIC | SCHED_MEMORY_BOUND));
    printf("changed %u\n", where(queue, launch(queue)));
    OK(clReleaseCommandQueue(queue));
    /* A queue with regions is mapped by what it does in one, and stays there. */
    queue = queue_of(NULL, SCHED_EXPLICIT_REGION | SCHED_ITERATIVE);
    printf("before %u\n", where(queue, launch(queue)));
    OK(clSetCommandQueueSchedProperty(queue, SCHED_AUTO_DYNAMIC));
    where(queue, launch(queue));
    OK(clSetCommandQueueSchedProperty(queue, SCHED_OFF));
    cl_uint place = where(queue, launch(queue));
    CHECK(place < device_count && device_of(queue) == devices[place]);
    printf("region %u\n", place);
    OK(clReleaseCommandQueue(queue));
    say("few", SCHED_AUTO_DYNAMIC | SCHED_KERNEL_EPOCH);
    say("iterative", SCHED_AUTO_DYNAMIC | SCHED_KERNEL_EPOCH | SCHED_ITERATIVE);
    close_places();
}

int main(int count, char **words) {
    static const cl_context_properties schedulers[] = {ROUND_ROBIN, AUTO_FIT};
    static const cl_command_queue_properties kinds[] = {
        SCHED_AUTO_DYNAMIC, SCHED_AUTO_DYNAMIC | SCHED_KERNEL_EPOCH | SCHED_COMPUTE_BOUND,
        SCHED_AUTO_STATIC | SCHED_MEMORY_BOUND, SCHED_EXPLICIT_REGION | SCHED_ITERATIVE, SCHED_OFF};
    begin(0);
    if (count > 1) {
        cl_context plain = context;
        strcmp(words[1], "long") == 0 ? long_epoch() : unlike();
        context = plain;
        return end();
    }
    errors();
    group_sizes();
    /* A device that stands for several has one range for all. */
    if (!getenv("PDAWL_VIRTUAL")) {
        cl_context plain = context;
        round_robin();
        context = plain;
    }
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
