/* Kernels: finds the entries of PTX and their parameters. */
#include "fake.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct Function {
    char name[64];
    Kernel kernel;
    int parameters;
    size_t bytes[PARAMETERS];
};

typedef struct {
    int count;
    Function functions[16];
} Module;

static int live;

int fake_modules(void) { return live; }

/* What CUDA's driver does not accept of OpenCL's PTX. */
static const char *const FOREIGN[] = {".ptr", "texmode_independent", "%envreg", "syntax error"};

static size_t bytes_of(const char *declared) {
    size_t bits = 0, count = 1;
    const char *array = strchr(declared, '[');
    for (const char *at = declared; *at && !bits; at++)
        if (at[0] == '.' && strchr("usbf", at[1]) && isdigit((unsigned char)at[2]))
            bits = (size_t)atoi(at + 2);
    if (array)
        count = (size_t)atoi(array + 1);
    return bits / 8 * count;
}

static void read_entry(const char *text, Function *function) {
    size_t length = strcspn(text, "( \t\n");
    memset(function, 0, sizeof *function);
    snprintf(function->name, sizeof function->name, "%.*s", (int)length, text);
    function->kernel = kernel_named(function->name);
    const char *end = strchr(text, ')');
    for (const char *at = strstr(text, ".param"); at && at < end;
         at = strstr(at + 1, ".param")) {
        char declared[128];
        snprintf(declared, sizeof declared, "%.*s", (int)strcspn(at, ",)"), at);
        function->bytes[function->parameters++] = bytes_of(declared + strlen(".param"));
    }
}

int cuModuleLoadDataEx(Module **made, const char *ptx, unsigned count, int *options,
                       void **values) {
    pthread_mutex_lock(&lock);
    int code = fault("cuModuleLoadDataEx", NULL);
    pthread_mutex_unlock(&lock);
    for (size_t i = 0; code == SUCCESS && i < sizeof FOREIGN / sizeof *FOREIGN; i++)
        if (strstr(ptx, FOREIGN[i])) {
            code = INVALID_PTX;
            /* The error log and its size are the options 5 and 6. */
            if (count == 2 && options[0] == 5 && options[1] == 6)
                snprintf(values[0], (size_t)(uintptr_t)values[1],
                         "ptxas fatal: unexpected %s", FOREIGN[i]);
        }
    if (code != SUCCESS)
        return code;
    Module *module = calloc(1, sizeof *module);
    for (const char *at = strstr(ptx, ".entry "); at && module->count < 16;
         at = strstr(at + 1, ".entry "))
        read_entry(at + strlen(".entry "), &module->functions[module->count++]);
    __atomic_add_fetch(&live, 1, __ATOMIC_SEQ_CST);
    *made = module;
    return SUCCESS;
}

int cuModuleUnload(Module *module) {
    __atomic_sub_fetch(&live, 1, __ATOMIC_SEQ_CST);
    free(module);
    return SUCCESS;
}

int cuModuleGetFunction(Function **found, Module *module, const char *name) {
    for (int i = 0; i < module->count; i++)
        if (strcmp(module->functions[i].name, name) == 0 && module->functions[i].kernel) {
            *found = &module->functions[i];
            return SUCCESS;
        }
    return NOT_FOUND;
}

int cuFuncGetAttribute(int *value, int attribute, Function *function) {
    (void)function;
    *value = 256;
    return attribute == 0 ? SUCCESS : INVALID_VALUE;
}

Kernel bind_arguments(Function *function, void **arguments, Launch *launch) {
    for (int i = 0; i < function->parameters; i++) {
        launch->arguments[i] = malloc(function->bytes[i] ? function->bytes[i] : 1);
        memcpy(launch->arguments[i], arguments[i], function->bytes[i]);
    }
    return function->kernel;
}

void release_arguments(Launch *launch) {
    for (int i = 0; i < PARAMETERS; i++)
        free(launch->arguments[i]);
}
