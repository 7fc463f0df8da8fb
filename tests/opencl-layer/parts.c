/* Parts of devices, and functions of the program that run as commands. */
#include "check.h"
#include <stdatomic.h>
#include <unistd.h>

static atomic_int freed;

static void CL_CALLBACK released(cl_mem handle, void *data) {
    if (freed++ == 0 && handle != data)
        printf("a callback got another handle\n"), failures++;
}

static void CL_CALLBACK add(void *arguments) {
    struct { int *buffer; int number; } *a = arguments;
    for (int i = 0; i < 16; i++)
        a->buffer[i] += a->number;
}

static void native(void) {
    cl_device_exec_capabilities can = 0;
    cl_int code, data[16];
    OK(clGetDeviceInfo(devices[0], CL_DEVICE_EXECUTION_CAPABILITIES, sizeof can, &can, NULL));
    for (int i = 0; i < 16; i++)
        data[i] = i;
    cl_mem buffer = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof data, data, &code);
    OK(code);
    struct { cl_mem buffer; int number; } arguments = {buffer, 5};
    const void *location = &arguments.buffer;
    CODE(clEnqueueNativeKernel(turn(0), NULL, &arguments, sizeof arguments, 1, &buffer, &location, 0,
                               NULL, NULL), CL_INVALID_VALUE);
    code = clEnqueueNativeKernel(turn(0), add, &arguments, sizeof arguments, 1, &buffer, &location, 0,
                                 NULL, NULL);
    CODE(code, can & CL_EXEC_NATIVE_KERNEL ? CL_SUCCESS : CL_INVALID_OPERATION);
    OK(clFinish(turn(0)));
    OK(clEnqueueReadBuffer(turn(1), buffer, CL_TRUE, 0, sizeof data, data, 0, NULL, NULL));
    for (int i = 0; i < 16 && code == CL_SUCCESS; i++)
        CHECK(data[i] == i + 5);
    OK(clSetMemObjectDestructorCallback(buffer, released, buffer));
    OK(clSetMemObjectDestructorCallback(buffer, released, buffer));
    CODE(clSetMemObjectDestructorCallback(buffer, NULL, NULL), CL_INVALID_VALUE);
    OK(clReleaseMemObject(buffer));
    for (int i = 0; i < 1000 && freed < 2; i++)
        usleep(10000);
    CHECK(freed == 2);
}

static void use(cl_device_id *parts, cl_uint count) {
    cl_int code;
    cl_context inner = clCreateContext(NULL, count, parts, NULL, NULL, &code);
    OK(code);
    const char *source = "kernel void f(global int *b) { b[get_global_id(0)] += 1; }";
    cl_program program = clCreateProgramWithSource(inner, 1, &source, NULL, &code);
    OK(clBuildProgram(program, 0, NULL, "", NULL, NULL));
    cl_kernel kernel = kernel_of(program, "f");
    int data[32] = {0};
    cl_mem buffer = clCreateBuffer(inner, CL_MEM_COPY_HOST_PTR, sizeof data, data, &code);
    OK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
    for (cl_uint i = 0; i < count; i++) {
        cl_command_queue queue = clCreateCommandQueue(inner, parts[i], 0, &code);
        OK(code);
        size_t size = 32;
        OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &size, NULL, 0, NULL, NULL));
        OK(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof data, data, 0, NULL, NULL));
        for (int j = 0; j < 32; j++)
            CHECK(data[j] == (int)i + 1);
        OK(clReleaseCommandQueue(queue));
    }
    OK(clReleaseMemObject(buffer));
    OK(clReleaseKernel(kernel));
    OK(clReleaseProgram(program));
    OK(clReleaseContext(inner));
}

int main(void) {
    begin(0);
    native();
    CODE(clCreateSubDevices(devices[0], NULL, 0, NULL, NULL), CL_INVALID_VALUE);
    for (cl_uint i = 0; i < device_count; i++) {
        cl_uint most = 0, units = 0, count = 0, references = 0;
        OK(clGetDeviceInfo(devices[i], CL_DEVICE_PARTITION_MAX_SUB_DEVICES, 4, &most, NULL));
        OK(clGetDeviceInfo(devices[i], CL_DEVICE_MAX_COMPUTE_UNITS, 4, &units, NULL));
        OK(clRetainDevice(devices[i]));
        OK(clReleaseDevice(devices[i]));
        if (most < 2 || units < 2)
            continue;
        cl_device_partition_property equally[3] = {CL_DEVICE_PARTITION_EQUALLY, units / 2, 0};
        cl_device_id parts[4], parent = NULL;
        if (clCreateSubDevices(devices[i], equally, 0, NULL, &count) != CL_SUCCESS || count > 4)
            continue;
        OK(clCreateSubDevices(devices[i], equally, 4, parts, &count));
        CODE(clCreateSubDevices(devices[i], equally, count - 1, parts, NULL), CL_INVALID_VALUE);
        OK(clGetDeviceInfo(parts[0], CL_DEVICE_PARENT_DEVICE, sizeof parent, &parent, NULL));
        CHECK(parent == devices[i]);
        OK(clGetDeviceInfo(parts[0], CL_DEVICE_REFERENCE_COUNT, 4, &references, NULL));
        CHECK(references == 1);
        OK(clGetDeviceInfo(parts[0], CL_DEVICE_MAX_COMPUTE_UNITS, 4, &units, NULL));
        CHECK(units == equally[1]);
        use(parts, 1);
        use(parts, count);
        for (cl_uint j = 0; j < count; j++)
            OK(clReleaseDevice(parts[j]));
        CODE(clReleaseDevice(parts[0]), CL_INVALID_DEVICE);
    }
    return end();
}
