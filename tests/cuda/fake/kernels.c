/* The kernels that the fake driver knows, by the names of their entries. */
#include "fake.h"

#include <string.h>
#include <unistd.h>

static uint64_t memory(Launch *launch, int index) {
    uint64_t address;
    memcpy(&address, launch->arguments[index], sizeof address);
    return address;
}

static uint32_t number(Launch *launch, int index) {
    uint32_t value;
    memcpy(&value, launch->arguments[index], sizeof value);
    return value;
}

/* What lies outside of the device's memory ends its context. */
static uint32_t *at(Launch *launch, uint64_t address, size_t bytes) {
    if (launch->generation != launch->context->generation)
        return NULL;
    if (!is_reached(launch->context, address, bytes)) {
        launch->context->lost = ILLEGAL_ADDRESS;
        return NULL;
    }
    return (uint32_t *)(uintptr_t)address;
}

/* (numbers, value, global offset): adds the value to the number of each work-item. */
static void add(Launch *launch) {
    uint32_t value = number(launch, 1), first = number(launch, 2);
    size_t count = (size_t)launch->groups[0] * launch->items[0];
    uint32_t *numbers = at(launch, memory(launch, 0) + 4 * (size_t)first, 4 * count);
    for (size_t i = 0; numbers && i < count; i++)
        numbers[i] += value;
}

/* (one, other, to, value): three times each number of one, that of the other one, the value
 * and the number's index. */
static void mix(Launch *launch) {
    uint32_t value = number(launch, 3);
    size_t count = (size_t)launch->groups[0] * launch->items[0];
    uint32_t *one = at(launch, memory(launch, 0), 4 * count);
    uint32_t *other = at(launch, memory(launch, 1), 4 * count);
    uint32_t *to = at(launch, memory(launch, 2), 4 * count);
    for (size_t i = 0; one && other && to && i < count; i++)
        to[i] = 3 * one[i] + other[i] + value + (uint32_t)i;
}

/* (numbers, count): takes a while, and then counts the numbers up. */
static void slow(Launch *launch) {
    uint32_t count = number(launch, 1);
    pthread_mutex_unlock(&lock);
    usleep(20000);
    pthread_mutex_lock(&lock);
    uint32_t *numbers = at(launch, memory(launch, 0), 4 * (size_t)count);
    for (size_t i = 0; numbers && i < count; i++)
        numbers[i] += 1;
}

/* (numbers, width, group offsets, global offsets, groups): each work-item adds 1 to its
 * number, and its group's number and the count of groups in the upper bits. */
static void place(Launch *launch) {
    uint32_t width = number(launch, 1);
    for (unsigned gy = 0; gy < launch->groups[1]; gy++)
        for (unsigned gx = 0; gx < launch->groups[0]; gx++)
            for (unsigned y = 0; y < launch->items[1]; y++)
                for (unsigned x = 0; x < launch->items[0]; x++) {
                    size_t column = number(launch, 4) + gx * launch->items[0] + x;
                    size_t row = number(launch, 5) + gy * launch->items[1] + y;
                    uint32_t group = gy + number(launch, 3);
                    uint64_t address = memory(launch, 0) + 4 * (row * width + column);
                    uint32_t *own = at(launch, address, 4);
                    if (own)
                        *own += 1 + (group << 8) + (number(launch, 6) << 20);
                }
}

/* (numbers, local, local): the offsets of both and the bytes of all local memory. */
static void local(Launch *launch) {
    uint32_t *numbers = at(launch, memory(launch, 0), 12);
    if (!numbers)
        return;
    numbers[0] = (uint32_t)memory(launch, 1);
    numbers[1] = (uint32_t)memory(launch, 2);
    numbers[2] = launch->local;
}

/* (numbers, scratch): what scratch has is added and counted up. */
static void scratch(Launch *launch) {
    uint32_t *numbers = at(launch, memory(launch, 0), 4);
    uint32_t *own = at(launch, memory(launch, 1), 4);
    if (numbers && own)
        *numbers += ++*own;
}

static const struct {
    const char *name;
    Kernel kernel;
} KERNELS[] = {
    {"add", add},     {"mix", mix},     {"slow", slow},
    {"place", place}, {"local", local}, {"scratch", scratch},
};

Kernel kernel_named(const char *name) {
    for (size_t i = 0; i < sizeof KERNELS / sizeof *KERNELS; i++)
        if (strcmp(name, KERNELS[i].name) == 0)
            return KERNELS[i].kernel;
    return NULL;
}
