/* A library of Fourier transforms, as cuFFT, which computes on the fake driver's streams by the
 * definition. */
#include "fake.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { INVALID_PLAN = 1, INVALID_VALUE_OF_FFT = 4, PLANS = 256 };

typedef struct {
    int is_open, is_made, has_own_room;
    Stream *stream;
    int length, lines, strides[4];
    size_t room_bytes;
    uint64_t room, x, y;
    int direction;
} Plan;

static Plan plans[PLANS];

static int failure(const char *call) {
    pthread_mutex_lock(&lock);
    int code = fault(call, NULL);
    pthread_mutex_unlock(&lock);
    return code;
}

int cufftGetVersion(int *version) {
    *version = 12000;
    return 0;
}

int cufftCreate(int *plan) {
    int code = failure("cufftCreate");
    if (code)
        return code;
    for (*plan = 0; *plan < PLANS && plans[*plan].is_open; ++*plan)
        ;
    plans[*plan] = (Plan){.is_open = 1, .has_own_room = 1};
    count_handles(1);
    return 0;
}

int cufftDestroy(int plan) {
    plans[plan].is_open = 0;
    count_handles(-1);
    return 0;
}

int cufftSetAutoAllocation(int plan, int has_own_room) {
    plans[plan].has_own_room = has_own_room;
    return 0;
}

int cufftMakePlanMany(int plan, int rank, int *length, int *x_extent, int x_stride, int x_distance,
                      int *y_extent, int y_stride, int y_distance, int type, int lines,
                      size_t *room) {
    if (rank != 1 || !x_extent || !y_extent || type != 0x29 || lines < 1 || *length < 1)
        return INVALID_VALUE_OF_FFT;
    int code = failure("cufftMakePlanMany");
    Plan *own = &plans[plan];
    own->is_made = 1;
    own->length = *length;
    own->lines = lines;
    memcpy(own->strides, (int[]){x_stride, x_distance, y_stride, y_distance}, sizeof own->strides);
    own->room_bytes = *room = 8 * (size_t)*length;
    return code;
}

int cufftSetStream(int plan, Stream *stream) {
    plans[plan].stream = stream;
    return 0;
}

int cufftSetWorkArea(int plan, void *room) {
    plans[plan].room = (uintptr_t)room;
    return 0;
}

static void transform(Launch *launch) {
    Plan p = *(Plan *)launch->arguments[0];
    take_time();
    const int *s = p.strides;
    size_t of_x = (size_t)(p.length - 1) * (size_t)s[0] + (size_t)(p.lines - 1) * (size_t)s[1] + 1;
    size_t of_y = (size_t)(p.length - 1) * (size_t)s[2] + (size_t)(p.lines - 1) * (size_t)s[3] + 1;
    float *x = device_memory(launch, p.x, 8 * of_x), *y = device_memory(launch, p.y, 8 * of_y);
    float *line = device_memory(launch, p.room, p.room_bytes);
    for (size_t number = 0; x && y && line && number < (size_t)p.lines; number++) {
        for (size_t i = 0; i < (size_t)p.length; i++)
            memcpy(line + 2 * i, x + 2 * (number * (size_t)s[1] + i * (size_t)s[0]), 8);
        for (size_t k = 0; k < (size_t)p.length; k++) {
            double real = 0, imaginary = 0;
            for (size_t i = 0; i < (size_t)p.length; i++) {
                double angle = p.direction * 2 * M_PI * (double)(i * k % (size_t)p.length) / p.length;
                real += line[2 * i] * cos(angle) - line[2 * i + 1] * sin(angle);
                imaginary += line[2 * i] * sin(angle) + line[2 * i + 1] * cos(angle);
            }
            float *to = y + 2 * (number * (size_t)s[3] + k * (size_t)s[2]);
            to[0] = (float)real;
            to[1] = (float)imaginary;
        }
    }
}

int cufftExecC2C(int plan, void *x, void *y, int direction) {
    int code = failure("cufftExecC2C");
    Plan own = plans[plan];
    if (code || !own.is_made || own.has_own_room || !own.room || !own.stream)
        return code ? code : INVALID_PLAN;
    own.x = (uintptr_t)x;
    own.y = (uintptr_t)y;
    own.direction = direction;
    enqueue_computation(own.stream, transform, &own, sizeof own);
    return 0;
}
