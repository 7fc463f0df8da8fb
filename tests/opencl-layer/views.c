/* Memory of the program in a buffer that one thread uses, while another waits for its own
 * commands again and again: what is shown to that one never replaces newer bytes. */
#include "check.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

enum { SIZE = 4 << 20, PART = 64, ROUNDS = 60 };

static atomic_int ended;

/* Waits for commands of its own. */
static void *waits(void *none) {
    cl_int code;
    unsigned char bytes[16] = {0};
    cl_mem mem = clCreateBuffer(context, 0, sizeof bytes, NULL, &code);
    OK(code);
    cl_command_queue queue = clCreateCommandQueue(context, devices[0], 0, &code);
    OK(code);
    while (!ended) {
        OK(clEnqueueWriteBuffer(queue, mem, CL_FALSE, 0, sizeof bytes, bytes, 0, NULL, NULL));
        OK(clFinish(queue));
    }
    OK(clReleaseCommandQueue(queue));
    OK(clReleaseMemObject(mem));
    return none;
}

/* Has ended, which shows nothing to the program. */
static void poll(cl_event event) {
    cl_int status = CL_QUEUED;
    while (status > CL_COMPLETE)
        OK(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL));
    OK(clReleaseEvent(event));
}

int main(void) {
    begin(0);
    cl_int code;
    unsigned char *memory = aligned_alloc(4096, SIZE), *made = malloc(SIZE), *got = malloc(SIZE);
    memset(memory, 0, SIZE);
    cl_mem mem = clCreateBuffer(context, CL_MEM_USE_HOST_PTR, SIZE, memory, &code);
    OK(code);
    cl_mem other = clCreateBuffer(context, 0, PART, NULL, &code);
    OK(code);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, waits, NULL) == 0);
    for (unsigned round = 0; round < ROUNDS && failures == 0; round++) {
        unsigned char part[PART];
        size_t at = round * 7919u % (SIZE - PART);
        cl_event event;
        memset(made, round, SIZE);
        memset(part, round + 1, PART);
        OK(clEnqueueWriteBuffer(turn(1), mem, CL_FALSE, 0, SIZE, made, 0, NULL, &event));
        OK(clFlush(turn(1)));
        poll(event);
        OK(clEnqueueWriteBuffer(turn(0), other, CL_FALSE, 0, PART, part, 0, NULL, NULL));
        OK(clEnqueueCopyBuffer(turn(0), other, mem, 0, at, PART, 0, NULL, &event));
        OK(clFlush(turn(0)));
        poll(event);
        if (round % 2) {
            /* The host replaces the part. */
            memset(part, round + 2, PART);
            void *bytes = clEnqueueMapBuffer(turn(0), mem, CL_TRUE, CL_MAP_WRITE_INVALIDATE_REGION, at, PART, 0, NULL,
                                             NULL, &code);
            OK(code);
            memcpy(bytes, part, PART);
            OK(clEnqueueUnmapMemObject(turn(0), mem, bytes, 0, NULL, &event));
            OK(clFlush(turn(0)));
            poll(event);
        }
        memcpy(made + at, part, PART);
        OK(clEnqueueReadBuffer(turn(1), mem, CL_TRUE, 0, SIZE, got, 0, NULL, NULL));
        if (memcmp(got, made, SIZE)) {
            size_t wrong = 0;
            while (got[wrong] == made[wrong])
                wrong++;
            printf("round %u: byte %zu is %02x, not %02x; the part begins at %zu\n", round, wrong, got[wrong], made[wrong],
                   at);
            failures++;
        }
    }
    ended = 1;
    CHECK(pthread_join(thread, NULL) == 0);
    OK(clReleaseMemObject(mem));
    OK(clReleaseMemObject(other));
    free(memory);
    free(made);
    free(got);
    return end();
}
