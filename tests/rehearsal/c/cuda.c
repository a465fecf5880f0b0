/* libcuda.so.1: enough of the driver API to ask whether there is a device and how much memory it has. */
#include "gpu.h"

#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    NOT_INITIALIZED = 3,
    NO_DEVICE = 100,
    INVALID_DEVICE = 101,
    SYSTEM_DRIVER_MISMATCH = 803,
    UNKNOWN = 999,
};

static bool initialised;

EXPORT int cuInit(unsigned int flags)
{
    struct gpu_state state;
    if (flags != 0)
        return INVALID_VALUE;
    gpu_read_state(&state);
    if (state.driver[0] && strcmp(state.driver, DRIVER_VERSION) != 0)
        return SYSTEM_DRIVER_MISMATCH;
    if (!state.loaded || gpu_access("/dev/nvidiactl") != ACCESS_OK || gpu_access("/dev/nvidia0") != ACCESS_OK)
        return NO_DEVICE;
    /* Unified memory has a module and a node of its own; without it nvidia-smi works and CUDA does not. */
    if (state.lost || gpu_access("/dev/nvidia-uvm") != ACCESS_OK)
        return UNKNOWN;
    initialised = true;
    return SUCCESS;
}

EXPORT int cuDriverGetVersion(int *version)
{
    if (!version)
        return INVALID_VALUE;
    *version = CUDA_MAJOR * 1000 + CUDA_MINOR * 10;
    return SUCCESS;
}

EXPORT int cuDeviceGetCount(int *count)
{
    if (!initialised)
        return NOT_INITIALIZED;
    *count = 1;
    return SUCCESS;
}

EXPORT int cuDeviceGet(int *device, int ordinal)
{
    if (!initialised)
        return NOT_INITIALIZED;
    if (ordinal != 0)
        return INVALID_DEVICE;
    *device = 0;
    return SUCCESS;
}

EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    if (!initialised)
        return NOT_INITIALIZED;
    if (device != 0)
        return INVALID_DEVICE;
    *bytes = SIM_CUDA_TOTAL_MIB * MIB;
    return SUCCESS;
}

EXPORT int cuDeviceGetName(char *name, int length, int device)
{
    if (!initialised)
        return NOT_INITIALIZED;
    if (device != 0 || length <= 0)
        return INVALID_DEVICE;
    strncpy(name, SIM_NAME, (size_t)length - 1);
    name[length - 1] = '\0';
    return SUCCESS;
}
