/*
 * A libcuda.so.1 for machines without a GPU. Device memory is host memory, and a kernel is run by reading its PTX: so
 * the tests find out whether the text computes what the program expects, and not only whether calls are made.
 *
 * What goes wrong is chosen when it is compiled:
 *   DEVICES=n          how many devices there are
 *   FAIL="call"        this call answers CODE, on device FAIL_DEVICE or, if that is -1, on every one
 *   HANG="call"        this call never returns
 *   WRONG_AT=i         the kernel writes a wrong number there
 *   IDLE               launches report success and do nothing
 *   OLD                a driver without the newer versions of functions and without names of errors
 *   MIG                the devices are slices
 *   VERSION=n          what cuDriverGetVersion answers
 *   BROKEN             a library without cuInit
 *   LOG="file"         every call is appended there, with its device and its answer
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef DEVICES
#define DEVICES 2
#endif
#ifndef FAIL
#define FAIL ""
#endif
#ifndef FAIL_DEVICE
#define FAIL_DEVICE -1
#endif
#ifndef CODE
#define CODE 999
#endif
#ifndef HANG
#define HANG ""
#endif
#ifndef WRONG_AT
#define WRONG_AT -1
#endif
#ifndef VERSION
#define VERSION 13000
#endif

enum {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    NOT_INITIALIZED = 3,
    NO_DEVICE = 100,
    INVALID_DEVICE = 101,
    INVALID_CONTEXT = 201,
    INVALID_PTX = 218,
    ILLEGAL_STATE = 401,
    NOT_FOUND = 500,
    ILLEGAL_ADDRESS = 700,
};

#define MAX_DEVICES 8
#define MAX_BUFFERS 16
#define MAX_CODE 64
#define MAX_NAMES 32

static int started;
static int current = -1;
static int retained[MAX_DEVICES];

/* Logs a call and says whether it is the one that is to fail. */
static int answer(const char *call, int device, int result) {
    if (strcmp(call, HANG) == 0)
        for (;;)
            pause();
    if (strcmp(call, FAIL) == 0 && (FAIL_DEVICE == -1 || FAIL_DEVICE == device))
        result = CODE;
#ifdef LOG
    FILE *log = fopen(LOG, "a");
    if (log) {
        fprintf(log, "%s %d %d\n", call, device, result);
        fclose(log);
    }
#endif
    return result;
}

/* Answers for a call that is about a device, about the current context, or about neither. */
#define ANSWER(device)                                                                                                 \
    do {                                                                                                               \
        int known = started ? ((device) >= 0 && (device) < DEVICES ? SUCCESS : INVALID_DEVICE) : NOT_INITIALIZED;      \
        int result = answer(__func__, (device), known);                                                                \
        if (result != SUCCESS)                                                                                         \
            return result;                                                                                             \
    } while (0)
#define ANSWER_IN_CONTEXT()                                                                                            \
    do {                                                                                                               \
        int result = answer(__func__, current, current >= 0 ? SUCCESS : INVALID_CONTEXT);                              \
        if (result != SUCCESS)                                                                                         \
            return result;                                                                                             \
    } while (0)

#ifndef BROKEN
int cuInit(unsigned flags) {
    int result = answer(__func__, -1, flags == 0 ? SUCCESS : INVALID_VALUE);
    started = result == SUCCESS;
    return result;
}
#endif

int cuDriverGetVersion(int *version) {
    *version = VERSION;
    return answer(__func__, -1, SUCCESS);
}

int cuDeviceGetCount(int *count) {
    *count = DEVICES;
    return answer(__func__, -1, started ? SUCCESS : NOT_INITIALIZED);
}

int cuDeviceGet(int *device, int ordinal) {
    ANSWER(ordinal);
    *device = ordinal;
    return SUCCESS;
}

int cuDeviceGetName(char *name, int size, int device) {
    ANSWER(device);
#ifdef MIG
    snprintf(name, (size_t)size, "Fake GPU %d MIG 1g.5gb", device);
#else
    snprintf(name, (size_t)size, "Fake GPU %d", device);
#endif
    return SUCCESS;
}

int cuDeviceGetUuid(unsigned char *uuid, int device) {
    ANSWER(device);
    for (int i = 0; i < 16; i++)
        uuid[i] = (unsigned char)(16 * device + i);
    return SUCCESS;
}

#ifndef OLD
int cuDeviceGetUuid_v2(unsigned char *uuid, int device) {
    ANSWER(device);
    for (int i = 0; i < 16; i++)
        uuid[i] = (unsigned char)(16 * device + i);
#ifdef MIG
    uuid[15] = 0xee;
#endif
    return SUCCESS;
}
#endif

int cuDeviceGetAttribute(int *value, int attribute, int device) {
    ANSWER(device);
    if (attribute == 75)
        *value = 9;
    else if (attribute == 76)
        *value = device;
    else
        return INVALID_VALUE;
    return SUCCESS;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device) {
    ANSWER(device);
    *bytes = (size_t)16 << 30;
    return SUCCESS;
}

int cuDeviceGetPCIBusId(char *bus, int size, int device) {
    ANSWER(device);
    snprintf(bus, (size_t)size, "0000:%02X:00.0", 0x1b + device);
    return SUCCESS;
}

int cuDevicePrimaryCtxRetain(void **context, int device) {
    ANSWER(device);
    retained[device]++;
    *context = (void *)(intptr_t)(device + 1);
    return SUCCESS;
}

int cuCtxSetCurrent(void *context) {
    int device = (int)(intptr_t)context - 1;
    if (device >= 0) {
        int result = answer(__func__, device, retained[device] ? SUCCESS : INVALID_CONTEXT);
        if (result != SUCCESS)
            return result;
    }
    current = device;
    return SUCCESS;
}

/* Device memory. */

static struct buffer {
    unsigned char *start;
    size_t size;
    int device;
} buffers[MAX_BUFFERS];

static int modules[MAX_DEVICES];

/* Whether so many bytes from an address on are memory of the current device. */
static int is_mine(uint64_t address, size_t bytes) {
    for (int i = 0; i < MAX_BUFFERS; i++) {
        struct buffer *b = &buffers[i];
        uint64_t start = (uint64_t)(uintptr_t)b->start;
        if (b->start && b->device == current && address >= start && address - start <= b->size &&
            bytes <= b->size - (address - start))
            return 1;
    }
    return 0;
}

int cuMemGetInfo_v2(size_t *unused, size_t *total) {
    ANSWER_IN_CONTEXT();
    *unused = (size_t)15 << 30;
    *total = (size_t)16 << 30;
    return SUCCESS;
}

int cuMemAlloc_v2(uint64_t *address, size_t bytes) {
    ANSWER_IN_CONTEXT();
    for (int i = 0; i < MAX_BUFFERS; i++) {
        if (!buffers[i].start) {
            buffers[i] = (struct buffer){calloc(1, bytes), bytes, current};
            *address = (uint64_t)(uintptr_t)buffers[i].start;
            return SUCCESS;
        }
    }
    return 2;
}

int cuMemFree_v2(uint64_t address) {
    ANSWER_IN_CONTEXT();
    for (int i = 0; i < MAX_BUFFERS; i++) {
        if (buffers[i].start && (uint64_t)(uintptr_t)buffers[i].start == address && buffers[i].device == current) {
            free(buffers[i].start);
            buffers[i].start = NULL;
            return SUCCESS;
        }
    }
    return INVALID_VALUE;
}

int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes) {
    ANSWER_IN_CONTEXT();
    if (!is_mine(to, bytes))
        return INVALID_VALUE;
    memcpy((void *)(uintptr_t)to, from, bytes);
    return SUCCESS;
}

int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes) {
    ANSWER_IN_CONTEXT();
    if (!is_mine(from, bytes))
        return INVALID_VALUE;
    memcpy(to, (void *)(uintptr_t)from, bytes);
    return SUCCESS;
}

/* PTX: as much of it as one kernel of plain integer arithmetic needs. */

enum operation { MOV, LOAD_PARAM, LOAD, STORE, ADD, MULTIPLY_WIDE, MULTIPLY_ADD, AT_LEAST, BRANCH, RETURN };

struct instruction {
    enum operation operation;
    int guard;      /* the register that must hold for it to be run, or -1 */
    int wide;       /* 64 bits and not 32 */
    int operand[4]; /* registers; of BRANCH the label */
    int immediate;  /* whether the last operand is a number */
    int64_t value;
};

struct kernel {
    char name[64];
    int instructions, names, parameters;
    struct instruction code[MAX_CODE];
    char name_of[MAX_NAMES][32]; /* registers, labels and parameters */
    int place_of[MAX_NAMES];     /* of a label the instruction, of a parameter its number */
    int block, threads, thread;  /* the registers that tell a thread where it is */
};

/* The number of a name, which is made when first seen. */
static int named(struct kernel *k, const char *name) {
    for (int i = 0; i < k->names; i++)
        if (strcmp(k->name_of[i], name) == 0)
            return i;
    if (k->names == MAX_NAMES)
        abort();
    snprintf(k->name_of[k->names], sizeof k->name_of[0], "%s", name);
    k->place_of[k->names] = -1;
    return k->names++;
}

static const struct {
    const char *name;
    enum operation operation;
    int wide;
} OPERATIONS[] = {
    {"mov.u32", MOV, 0},
    {"cvta.to.global.u64", MOV, 1},
    {"ld.param.u32", LOAD_PARAM, 0},
    {"ld.param.u64", LOAD_PARAM, 1},
    {"ld.global.u32", LOAD, 0},
    {"st.global.u32", STORE, 0},
    {"add.u64", ADD, 1},
    {"mul.wide.u32", MULTIPLY_WIDE, 1},
    {"mad.lo.u32", MULTIPLY_ADD, 0},
    {"setp.ge.u32", AT_LEAST, 0},
    {"bra", BRANCH, 0},
    {"ret", RETURN, 0},
};

static int parse_instruction(struct kernel *k, char *line) {
    struct instruction in = {.guard = -1};
    char *rest = line, *word = strtok_r(line, " \t", &rest);
    if (word && word[0] == '@') {
        in.guard = named(k, word + 1);
        word = strtok_r(NULL, " \t", &rest);
    }
    int found = 0;
    for (size_t i = 0; word && i < sizeof OPERATIONS / sizeof *OPERATIONS; i++) {
        if (strcmp(word, OPERATIONS[i].name) == 0) {
            in.operation = OPERATIONS[i].operation;
            in.wide = OPERATIONS[i].wide;
            found = 1;
        }
    }
    if (!found || k->instructions == MAX_CODE)
        return 0;
    for (int i = 0; i < 4 && (word = strtok_r(NULL, " \t,[]", &rest)); i++) {
        if (word[0] >= '0' && word[0] <= '9') {
            in.immediate = 1;
            in.value = strtoll(word, NULL, 0);
        } else {
            in.operand[i] = named(k, word);
        }
    }
    k->code[k->instructions++] = in;
    return 1;
}

/* Reads a module with one kernel; 0 if there is anything in it that is not known here. */
static int parse(struct kernel *k, const char *text) {
    char line[256];
    int in_parameters = 0, in_body = 0, done = 0, version = 0, target = 0;
    k->block = named(k, "%ctaid.x");
    k->threads = named(k, "%ntid.x");
    k->thread = named(k, "%tid.x");
    for (; *text; text += strcspn(text, "\n"), text += *text == '\n') {
        size_t length = strcspn(text, "\n");
        if (length >= sizeof line)
            return 0;
        memcpy(line, text, length);
        line[length] = 0;
        line[strcspn(line, ";")] = 0;
        char *start = line + strspn(line, " \t");
        size_t end = strlen(start);
        while (end && (start[end - 1] == ' ' || start[end - 1] == ','))
            start[--end] = 0;
        char name[64];
        if (!*start || strncmp(start, ".reg ", 5) == 0 || strcmp(start, ".address_size 64") == 0) {
        } else if (strncmp(start, ".version ", 9) == 0) {
            version = 1;
        } else if (strncmp(start, ".target sm_", 11) == 0) {
            target = 1;
        } else if (sscanf(start, ".visible .entry %63[A-Za-z0-9_](", name) == 1) {
            snprintf(k->name, sizeof k->name, "%s", name);
            in_parameters = 1;
        } else if (in_parameters && sscanf(start, ".param .u%*d %63s", name) == 1) {
            k->place_of[named(k, name)] = k->parameters++;
        } else if (strcmp(start, ")") == 0) {
            in_parameters = 0;
        } else if (strcmp(start, "{") == 0) {
            in_body = 1;
        } else if (strcmp(start, "}") == 0) {
            in_body = 0;
            done = 1;
        } else if (in_body && start[strlen(start) - 1] == ':') {
            start[strlen(start) - 1] = 0;
            k->place_of[named(k, start)] = k->instructions;
        } else if (!in_body || !parse_instruction(k, start)) {
            return 0;
        }
    }
    return version && target && done;
}

/* Runs one thread; an error of the driver if it goes where it may not. */
static int run(const struct kernel *k, uint32_t block, uint32_t threads, uint32_t thread, void **arguments) {
    uint64_t r[MAX_NAMES] = {0};
    r[k->block] = block;
    r[k->threads] = threads;
    r[k->thread] = thread;
    for (int at = 0; at < k->instructions; at++) {
        const struct instruction *in = &k->code[at];
        const int *o = in->operand;
        uint64_t result, b = in->immediate ? (uint64_t)in->value : r[o[2]];
        if (in->guard >= 0 && !r[in->guard])
            continue;
        switch (in->operation) {
        case MOV:
            result = r[o[1]];
            break;
        case LOAD_PARAM:
            result = 0;
            memcpy(&result, arguments[k->place_of[o[1]]], in->wide ? 8 : 4);
            break;
        case LOAD:
            if (!is_mine(r[o[1]], 4) || r[o[1]] % 4)
                return ILLEGAL_ADDRESS;
            result = *(uint32_t *)(uintptr_t)r[o[1]];
            break;
        case STORE:
            if (!is_mine(r[o[0]], 4) || r[o[0]] % 4)
                return ILLEGAL_ADDRESS;
            *(uint32_t *)(uintptr_t)r[o[0]] = (uint32_t)r[o[1]];
            continue;
        case ADD:
            result = r[o[1]] + b;
            break;
        case MULTIPLY_WIDE:
            result = (uint64_t)(uint32_t)r[o[1]] * (uint32_t)b;
            break;
        case MULTIPLY_ADD:
            result = r[o[1]] * b + r[o[3]];
            break;
        case AT_LEAST:
            result = (uint32_t)r[o[1]] >= (uint32_t)b;
            break;
        case BRANCH:
            at = k->place_of[o[0]] - 1;
            continue;
        default:
            return SUCCESS;
        }
        r[o[0]] = in->wide ? result : (uint32_t)result;
    }
    return SUCCESS;
}

int cuModuleLoadData(void **module, const void *text) {
    ANSWER_IN_CONTEXT();
    struct kernel *k = calloc(1, sizeof *k);
    if (!k || !parse(k, text)) {
        free(k);
        return INVALID_PTX;
    }
    modules[current]++;
    *module = k;
    return SUCCESS;
}

int cuModuleUnload(void *module) {
    ANSWER_IN_CONTEXT();
    modules[current]--;
    free(module);
    return SUCCESS;
}

int cuModuleGetFunction(void **function, void *module, const char *name) {
    ANSWER_IN_CONTEXT();
    if (strcmp(((struct kernel *)module)->name, name) != 0)
        return NOT_FOUND;
    *function = module;
    return SUCCESS;
}

/* A kernel's own error comes out when it is waited for. */
static int pending;

int cuLaunchKernel(void *function, unsigned blocks, unsigned blocks_y, unsigned blocks_z, unsigned threads,
                   unsigned threads_y, unsigned threads_z, unsigned shared, void *stream, void **arguments,
                   void **extra) {
    ANSWER_IN_CONTEXT();
    if (blocks_y != 1 || blocks_z != 1 || threads_y != 1 || threads_z != 1 || shared || stream || extra)
        return INVALID_VALUE;
#ifdef IDLE
    (void)function, (void)blocks, (void)threads, (void)arguments;
#else
    for (unsigned block = 0; block < blocks && pending == SUCCESS; block++)
        for (unsigned thread = 0; thread < threads && pending == SUCCESS; thread++)
            pending = run(function, block, threads, thread, arguments);
    if (WRONG_AT >= 0 && pending == SUCCESS)
        (*(uint32_t **)arguments[0])[WRONG_AT] ^= 1u << 30;
#endif
    return SUCCESS;
}

int cuCtxSynchronize(void) {
    ANSWER_IN_CONTEXT();
    return pending;
}

/* A context may go only when nothing of it is left: so a leak in the program is an error in its report. */
#ifdef OLD
int cuDevicePrimaryCtxRelease(int device) {
#else
int cuDevicePrimaryCtxRelease_v2(int device) {
#endif
    ANSWER(device);
    for (int i = 0; i < MAX_BUFFERS; i++)
        if (buffers[i].start && buffers[i].device == device)
            return ILLEGAL_STATE;
    if (modules[device] || current == device || !retained[device])
        return ILLEGAL_STATE;
    retained[device]--;
    return SUCCESS;
}

#ifndef OLD
int cuGetErrorName(int code, const char **name) {
    *name = code == 2            ? "CUDA_ERROR_OUT_OF_MEMORY"
            : code == NO_DEVICE  ? "CUDA_ERROR_NO_DEVICE"
            : code == 218        ? "CUDA_ERROR_INVALID_PTX"
            : code == 719        ? "CUDA_ERROR_LAUNCH_FAILED"
            : code == 999        ? "CUDA_ERROR_UNKNOWN"
                                 : NULL;
    return *name ? SUCCESS : INVALID_VALUE;
}

int cuGetErrorString(int code, const char **text) {
    *text = code == NO_DEVICE ? "no CUDA-capable device is detected" : code == 999 ? "unknown error" : NULL;
    return *text ? SUCCESS : INVALID_VALUE;
}
#endif
