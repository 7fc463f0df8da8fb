/* A program that ends while its launch may not have begun, as programs may: it returns from
 * main, has the launch wait for an event that it never sets, calls exit, or forks a process
 * that does. */
#include "check.h"
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **words) {
    static int data[4096];
    const char *how = count > 1 ? words[1] : "return";
    cl_int code;
    begin(0);
    cl_program program = build("kernel void f(global int *b) { int i = get_global_id(0), s = b[i];"
                               " for (int j = 0; j < 2000; j++) s = s * 3 + j; b[i] = s; }", "");
    cl_kernel kernel = kernel_of(program, "f");
    cl_mem buffer = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof data, data, &code);
    cl_event event = clCreateUserEvent(context, &code);
    int waits = strcmp(how, "event") == 0;
    size_t size = 4096;
    OK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
    OK(clEnqueueNDRangeKernel(turn(0), kernel, 1, NULL, &size, NULL, waits, waits ? &event : NULL,
                              NULL));
    OK(clFlush(turn(0)));
    if (strcmp(how, "fork") == 0) {
        pid_t child = fork();
        if (child == 0) {
            /* It has none of the threads that could end the launch. */
            alarm(5);
            exit(3);
        }
        int ended = 0;
        CHECK(waitpid(child, &ended, 0) == child);
        CHECK(WIFEXITED(ended) && WEXITSTATUS(ended) == 3);
    }
    int status = failures != 0;
    if (!waits)
        OK(clReleaseEvent(event));
    if (strcmp(how, "exit") == 0)
        exit(status);
    return status;
}
