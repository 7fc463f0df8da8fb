/* Handles that are null, of another kind or released, and lists that do not fit. */
#include "check.h"

static cl_int code;
static cl_mem buffer;
static cl_kernel kernel;
static cl_program program;
static cl_event event;
static char bytes[64];
static size_t one[3] = {1, 1, 1}, zero[3];

/* Every function with a handle that is not of its kind. */
static void handles(void *bad) {
    cl_command_queue queue = queues[0];
    cl_event events[1] = {bad};
    cl_mem mems[1] = {bad};
    cl_device_id list[1] = {bad};
    size_t size;
    CODE(clRetainContext(bad), CL_INVALID_CONTEXT);
    CODE(clReleaseContext(bad), CL_INVALID_CONTEXT);
    CODE(clGetContextInfo(bad, CL_CONTEXT_DEVICES, 0, NULL, &size), CL_INVALID_CONTEXT);
    CODE(clRetainCommandQueue(bad), CL_INVALID_COMMAND_QUEUE);
    CODE(clReleaseCommandQueue(bad), CL_INVALID_COMMAND_QUEUE);
    CODE(clGetCommandQueueInfo(bad, CL_QUEUE_CONTEXT, 0, NULL, &size), CL_INVALID_COMMAND_QUEUE);
    CODE(clFlush(bad), CL_INVALID_COMMAND_QUEUE);
    CODE(clFinish(bad), CL_INVALID_COMMAND_QUEUE);
    CODE(clRetainMemObject(bad), CL_INVALID_MEM_OBJECT);
    CODE(clReleaseMemObject(bad), CL_INVALID_MEM_OBJECT);
    CODE(clGetMemObjectInfo(bad, CL_MEM_SIZE, 0, NULL, &size), CL_INVALID_MEM_OBJECT);
    CODE(clGetImageInfo(bad, CL_IMAGE_WIDTH, 0, NULL, &size), CL_INVALID_MEM_OBJECT);
    CODE(clRetainProgram(bad), CL_INVALID_PROGRAM);
    CODE(clReleaseProgram(bad), CL_INVALID_PROGRAM);
    CODE(clBuildProgram(bad, 0, NULL, NULL, NULL, NULL), CL_INVALID_PROGRAM);
    CODE(clCompileProgram(bad, 0, NULL, NULL, 0, NULL, NULL, NULL, NULL), CL_INVALID_PROGRAM);
    CODE(clGetProgramInfo(bad, CL_PROGRAM_SOURCE, 0, NULL, &size), CL_INVALID_PROGRAM);
    CODE(clRetainKernel(bad), CL_INVALID_KERNEL);
    CODE(clReleaseKernel(bad), CL_INVALID_KERNEL);
    CODE(clSetKernelArg(bad, 0, 4, bytes), CL_INVALID_KERNEL);
    CODE(clGetKernelInfo(bad, CL_KERNEL_NUM_ARGS, 0, NULL, &size), CL_INVALID_KERNEL);
    CODE(clRetainEvent(bad), CL_INVALID_EVENT);
    CODE(clReleaseEvent(bad), CL_INVALID_EVENT);
    CODE(clWaitForEvents(1, events), CL_INVALID_EVENT);
    CODE(clGetEventInfo(bad, CL_EVENT_CONTEXT, 0, NULL, &size), CL_INVALID_EVENT);
    CODE(clSetUserEventStatus(bad, CL_COMPLETE), CL_INVALID_EVENT);
    CODE(clRetainSampler(bad), CL_INVALID_SAMPLER);
    CODE(clReleaseSampler(bad), CL_INVALID_SAMPLER);
    CODE(clGetDeviceInfo(bad, CL_DEVICE_TYPE, 0, NULL, &size), CL_INVALID_DEVICE);
    CODE(clReleaseDevice(bad), CL_INVALID_DEVICE);
    CODE(clEnqueueReadBuffer(bad, buffer, CL_TRUE, 0, 4, bytes, 0, NULL, NULL),
         CL_INVALID_COMMAND_QUEUE);
    CODE(clEnqueueNDRangeKernel(bad, kernel, 1, NULL, one, NULL, 0, NULL, NULL),
         CL_INVALID_COMMAND_QUEUE);
    CODE(clEnqueueReadBuffer(queue, bad, CL_TRUE, 0, 4, bytes, 0, NULL, NULL), CL_INVALID_MEM_OBJECT);
    CODE(clEnqueueWriteBuffer(queue, bad, CL_TRUE, 0, 4, bytes, 0, NULL, NULL), CL_INVALID_MEM_OBJECT);
    CODE(clEnqueueCopyBuffer(queue, buffer, bad, 0, 0, 4, 0, NULL, NULL), CL_INVALID_MEM_OBJECT);
    CODE(clEnqueueReadBufferRect(queue, bad, CL_TRUE, zero, zero, one, 0, 0, 0, 0, bytes, 0, NULL,
                                 NULL), CL_INVALID_MEM_OBJECT);
    CODE(clEnqueueReadImage(queue, bad, CL_TRUE, zero, one, 0, 0, bytes, 0, NULL, NULL),
         CL_INVALID_MEM_OBJECT);
    CODE(clEnqueueUnmapMemObject(queue, bad, bytes, 0, NULL, NULL), CL_INVALID_MEM_OBJECT);
    CODE(clEnqueueMigrateMemObjects(queue, 1, mems, 0, 0, NULL, NULL), CL_INVALID_MEM_OBJECT);
    CODE(clEnqueueNDRangeKernel(queue, bad, 1, NULL, one, NULL, 0, NULL, NULL), CL_INVALID_KERNEL);
    CODE(clEnqueueTask(queue, bad, 0, NULL, NULL), CL_INVALID_KERNEL);
    CODE(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, 4, bytes, 1, events, NULL),
         CL_INVALID_EVENT_WAIT_LIST);
    CODE(clEnqueueMarkerWithWaitList(queue, 1, events, NULL), CL_INVALID_EVENT_WAIT_LIST);
    CHECK(!clCreateBuffer(bad, 0, 4, NULL, &code));
    CODE(code, CL_INVALID_CONTEXT);
    CHECK(!clCreateCommandQueue(bad, devices[0], 0, &code));
    CODE(code, CL_INVALID_CONTEXT);
    CHECK(!clCreateCommandQueue(context, bad, 0, &code));
    CODE(code, CL_INVALID_DEVICE);
    CHECK(!clCreateContext(NULL, 1, list, NULL, NULL, &code));
    CODE(code, CL_INVALID_DEVICE);
    CHECK(!clCreateKernel(bad, "f", &code));
    CODE(code, CL_INVALID_PROGRAM);
    CHECK(!clCreateUserEvent(bad, &code));
    CODE(code, CL_INVALID_CONTEXT);
    CHECK(!clEnqueueMapBuffer(queue, bad, CL_TRUE, CL_MAP_READ, 0, 4, 0, NULL, NULL, &code));
    CODE(code, CL_INVALID_MEM_OBJECT);
    CHECK(!clCreateSampler(bad, CL_TRUE, CL_ADDRESS_CLAMP, CL_FILTER_NEAREST, &code));
    CODE(code, CL_INVALID_CONTEXT);
}

/* A loader dispatches by the object, so only a layer sees what is no object at all. */
static void values(void) {
    cl_command_queue queue = queues[0];
    size_t size;
    cl_uint count;
    CODE(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, devices, NULL), CL_INVALID_VALUE);
    CODE(clGetDeviceIDs(platform, 1 << 20, 1, devices, NULL), CL_INVALID_DEVICE_TYPE);
    CODE(clGetDeviceInfo(devices[0], CL_DEVICE_NAME, 1, bytes, NULL), CL_INVALID_VALUE);
    CODE(clGetDeviceInfo(devices[0], 0x7777, 8, bytes, NULL), CL_INVALID_VALUE);
    CODE(clGetContextInfo(context, CL_CONTEXT_DEVICES, 1, bytes, NULL), CL_INVALID_VALUE);
    OK(clGetContextInfo(context, CL_CONTEXT_NUM_DEVICES, sizeof count, &count, &size));
    CHECK(count == device_count && size == sizeof count);
    CHECK(!clCreateBuffer(context, 0, 0, NULL, &code));
    CODE(code, CL_INVALID_BUFFER_SIZE);
    CHECK(!clCreateBuffer(context, CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY, 4, NULL, &code));
    CODE(code, CL_INVALID_VALUE);
    CHECK(!clCreateBuffer(context, CL_MEM_USE_HOST_PTR, 4, NULL, &code));
    CODE(code, CL_INVALID_HOST_PTR);
    CHECK(!clCreateBuffer(context, 0, 4, bytes, &code));
    CODE(code, CL_INVALID_HOST_PTR);
    CHECK(!clCreateBuffer(context, 0, (size_t)1 << 60, NULL, &code));
    CHECK(code == CL_INVALID_BUFFER_SIZE || code == CL_MEM_OBJECT_ALLOCATION_FAILURE);
    CHECK(!clCreateCommandQueue(context, devices[0], 1 << 20, &code));
    CODE(code, CL_INVALID_VALUE);
    CODE(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 60, 8, bytes, 0, NULL, NULL), CL_INVALID_VALUE);
    CODE(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, 4, NULL, 0, NULL, NULL), CL_INVALID_VALUE);
    CODE(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, 4, bytes, 1, NULL, NULL),
         CL_INVALID_EVENT_WAIT_LIST);
    CODE(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, 4, bytes, 0, &event, NULL),
         CL_INVALID_EVENT_WAIT_LIST);
    CODE(clEnqueueMarker(queue, NULL), CL_INVALID_VALUE);
    CODE(clWaitForEvents(0, NULL), CL_INVALID_VALUE);
    CODE(clEnqueueMigrateMemObjects(queue, 0, NULL, 0, 0, NULL, NULL), CL_INVALID_VALUE);
    CODE(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, 8, bytes, NULL),
         CL_PROFILING_INFO_NOT_AVAILABLE);
    CODE(clBuildProgram(program, 1, NULL, NULL, NULL, NULL), CL_INVALID_VALUE);
    CODE(clBuildProgram(program, 0, NULL, NULL, NULL, bytes), CL_INVALID_VALUE);
    CHECK(!clCreateProgramWithSource(context, 0, NULL, NULL, &code));
    CODE(code, CL_INVALID_VALUE);
    /* Objects of another context. */
    cl_context second = clCreateContext(NULL, 1, devices, NULL, NULL, &code);
    cl_mem foreign = clCreateBuffer(second, 0, 64, NULL, &code);
    cl_event strange = clCreateUserEvent(second, &code);
    CODE(clEnqueueReadBuffer(queue, foreign, CL_TRUE, 0, 4, bytes, 0, NULL, NULL), CL_INVALID_CONTEXT);
    CODE(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, 4, bytes, 1, &strange, NULL),
         CL_INVALID_CONTEXT);
    OK(clReleaseEvent(strange));
    OK(clReleaseMemObject(foreign));
    OK(clReleaseContext(second));
}

int main(void) {
    begin(0);
    buffer = clCreateBuffer(context, 0, sizeof bytes, NULL, &code);
    program = build("kernel void f(void) {}", "");
    kernel = kernel_of(program, "f");
    event = clCreateUserEvent(context, &code);
    handles(NULL);
    /* The platform is an object, but none that any of these functions takes. */
    if (getenv("PDAWL_POLICY"))
        handles(platform);
    values();
    OK(clSetUserEventStatus(event, CL_COMPLETE));
    OK(clReleaseEvent(event));
    OK(clReleaseKernel(kernel));
    OK(clReleaseProgram(program));
    OK(clReleaseMemObject(buffer));
    return end();
}
