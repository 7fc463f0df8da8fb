/* Asks every object every question and prints the answers, so that runs can be compared: the
 * question, the status and the answer's size, and the answer where it is a plain number. */
#define CL_TARGET_OPENCL_VERSION 300
#include "check.h"

static void say(const char *kind, unsigned what, cl_int status, size_t size, const void *value) {
    printf("%s %#x %d", kind, what, status);
    if (status == CL_SUCCESS)
        printf(" %zu", size);
    cl_ulong number = 0;
    if (status == CL_SUCCESS && size <= sizeof number) {
        memcpy(&number, value, size);
        /* Handles and times differ from run to run. */
        printf(number < 1ull << 40 ? " %llu" : " large", (unsigned long long)number);
    }
    printf("\n");
}

#define ASK(kind, first, last, function, ...)                                             \
    for (unsigned what = first; what <= last; what++) {                                   \
        char value[65536] = {0};                                                          \
        size_t size = 0;                                                                  \
        cl_int status = function(__VA_ARGS__, what, sizeof value, value, &size);          \
        say(kind, what, status, size, value);                                             \
    }

int main(void) {
    cl_int code;
    int data = 7;
    size_t one = 1, bad[] = {3};
    begin(CL_QUEUE_PROFILING_ENABLE);
    cl_device_id device = devices[0];
    cl_command_queue queue = queues[0];
    cl_program program = build("kernel void f(global int *b, int n) { b[0] += n; }"
                               "kernel __attribute__((reqd_work_group_size(4, 1, 1)))"
                               " void g(global int *b) { b[get_global_id(0)] = 1; }",
                               "-cl-kernel-arg-info");
    cl_kernel kernel = kernel_of(program, "f"), required = kernel_of(program, "g");
    cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, 64, NULL, &code);
    cl_sampler sampler = clCreateSampler(context, CL_FALSE, CL_ADDRESS_CLAMP, CL_FILTER_NEAREST, &code);
    cl_event event;
    OK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
    OK(clSetKernelArg(kernel, 1, sizeof data, &data));
    OK(clSetKernelArg(required, 0, sizeof buffer, &buffer));
    OK(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, sizeof data, &data, 0, NULL, NULL));
    OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 0, NULL, &event));
    OK(clFinish(queue));
    ASK("platform", 0x900, 0x907, clGetPlatformInfo, platform)
    ASK("device", 0x1000, 0x1077, clGetDeviceInfo, device)
    ASK("context", 0x1080, 0x1084, clGetContextInfo, context)
    ASK("queue", 0x1090, 0x1099, clGetCommandQueueInfo, queue)
    ASK("memory", 0x1100, 0x110b, clGetMemObjectInfo, buffer)
    ASK("image", 0x1110, 0x111b, clGetImageInfo, buffer)
    ASK("sampler", 0x1150, 0x1159, clGetSamplerInfo, sampler)
    ASK("program", 0x1160, 0x1164, clGetProgramInfo, program)
    ASK("program", 0x1167, 0x116c, clGetProgramInfo, program)
    ASK("build", 0x1181, 0x1186, clGetProgramBuildInfo, program, device)
    ASK("kernel", 0x1190, 0x1195, clGetKernelInfo, kernel)
    ASK("argument", 0x1196, 0x119b, clGetKernelArgInfo, kernel, 1)
    ASK("argument", 0x1196, 0x119b, clGetKernelArgInfo, kernel, 2)
    ASK("group", 0x11b0, 0x11b6, clGetKernelWorkGroupInfo, kernel, device)
    ASK("event", 0x11d0, 0x11d5, clGetEventInfo, event)
    ASK("profile", 0x1280, 0x1285, clGetEventProfilingInfo, event)

    /* Launches with nothing to do, and those that cannot run. */
    size_t many = 8, four = 4, huge = 1 << 20, none = 0;
    struct {
        cl_kernel kernel;
        const size_t *global, *local;
    } launches[] = {{kernel, NULL, NULL},    {kernel, NULL, &one},     {kernel, &none, NULL},
                    {kernel, &many, bad},    {kernel, &huge, &huge},   {kernel, &many, &none},
                    {required, &many, &four}, {required, &many, &one}};
    for (unsigned i = 0; i < sizeof launches / sizeof *launches; i++) {
        code = clEnqueueNDRangeKernel(queue, launches[i].kernel, 1, NULL, launches[i].global,
                                      launches[i].local, 0, NULL, NULL);
        say("launch", i, code, 0, &code);
    }
    OK(clFinish(queue));

    /* A copy of a kernel has its arguments, and keeps them. */
    cl_kernel copy = clCloneKernel(kernel, &code);
    say("clone", 0, code, 0, &code);
    int other = 100;
    OK(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, sizeof data, &data, 0, NULL, NULL));
    OK(clSetKernelArg(kernel, 1, sizeof other, &other));
    OK(clEnqueueNDRangeKernel(queue, copy, 1, NULL, &one, NULL, 0, NULL, NULL));
    OK(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof data, &data, 0, NULL, NULL));
    CHECK(data == 14);
    OK(clReleaseKernel(copy));
    CHECK(clCloneKernel(NULL, &code) == NULL);
    say("clone", 1, code, 0, &code);

    OK(clReleaseEvent(event));
    OK(clReleaseSampler(sampler));
    OK(clReleaseMemObject(buffer));
    OK(clReleaseKernel(kernel));
    OK(clReleaseKernel(required));
    OK(clReleaseProgram(program));
    return end();
}
