/*
 * libnvidia-ml.so.1 for the simulated L4.
 *
 * Types come from NVIDIA's own header, as the go-nvml module ships it; every function of that header which is not written
 * here is generated at build time and answers NVML_ERROR_NOT_SUPPORTED (debs.py, `nvml_unsupported`).
 */
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <nvml.h>

#include "gpu.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define MHZ_GRAPHICS_MAX 2040u
#define MHZ_MEMORY_MAX 6251u
#define MHZ_VIDEO_MAX 1770u
#define POLL_MS 100

static int references;

/* There is one GPU; its handle is the address of this byte. (go-nvml's header wraps each handle in a struct of one pointer.) */
static char the_gpu;
#define DEVICE ((nvmlDevice_t){.handle = (void *)&the_gpu})

static bool busy(const struct gpu_state *state)
{
    return state->processes > 0;
}

/* Every call that concerns the device passes through here: the answer of a GPU that is lost or barred. */
static nvmlReturn_t check(nvmlDevice_t device, const void *result, struct gpu_state *state)
{
    if (references == 0)
        return NVML_ERROR_UNINITIALIZED;
    if (device.handle != DEVICE.handle || !result)
        return NVML_ERROR_INVALID_ARGUMENT;
    gpu_read_state(state);
    if (state->lost)
        return NVML_ERROR_GPU_IS_LOST;
    if (state->no_permission)
        return NVML_ERROR_NO_PERMISSION;
    return NVML_SUCCESS;
}

static nvmlReturn_t text(nvmlDevice_t device, const char *value, char *result, unsigned int length)
{
    struct gpu_state state;
    nvmlReturn_t code = check(device, result, &state);
    if (code != NVML_SUCCESS)
        return code;
    if (strlen(value) + 1 > length)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    strcpy(result, value);
    return NVML_SUCCESS;
}

static nvmlReturn_t number(nvmlDevice_t device, unsigned int value, unsigned int *result)
{
    struct gpu_state state;
    nvmlReturn_t code = check(device, result, &state);
    if (code == NVML_SUCCESS)
        *result = value;
    return code;
}

nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
    struct gpu_state state;
    (void)flags;
    gpu_read_state(&state);
    switch (gpu_access("/dev/nvidiactl")) {
    case ACCESS_MISSING:
        return NVML_ERROR_DRIVER_NOT_LOADED;
    case ACCESS_DENIED:
        /* What NVML says in a container whose device rules were taken away. */
        return NVML_ERROR_UNKNOWN;
    case ACCESS_OK:
        break;
    }
    if (!state.loaded)
        return NVML_ERROR_DRIVER_NOT_LOADED;
    if (state.driver[0] && strcmp(state.driver, DRIVER_VERSION) != 0)
        return NVML_ERROR_LIB_RM_VERSION_MISMATCH;
    references++;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlInit_v2(void)
{
    return nvmlInitWithFlags(0);
}

nvmlReturn_t nvmlInit(void)
{
    return nvmlInitWithFlags(0);
}

nvmlReturn_t nvmlShutdown(void)
{
    if (references == 0)
        return NVML_ERROR_UNINITIALIZED;
    references--;
    return NVML_SUCCESS;
}

const char *nvmlErrorString(nvmlReturn_t result)
{
    switch (result) {
    case NVML_SUCCESS: return "Success";
    case NVML_ERROR_UNINITIALIZED: return "Uninitialized";
    case NVML_ERROR_INVALID_ARGUMENT: return "Invalid Argument";
    case NVML_ERROR_NOT_SUPPORTED: return "Not Supported";
    case NVML_ERROR_NO_PERMISSION: return "Insufficient Permissions";
    case NVML_ERROR_NOT_FOUND: return "Not Found";
    case NVML_ERROR_INSUFFICIENT_SIZE: return "Insufficient Size";
    case NVML_ERROR_DRIVER_NOT_LOADED: return "Driver Not Loaded";
    case NVML_ERROR_TIMEOUT: return "Timeout";
    case NVML_ERROR_GPU_IS_LOST: return "GPU is lost";
    case NVML_ERROR_LIB_RM_VERSION_MISMATCH: return "Driver/library version mismatch";
    default: return "Unknown Error";
    }
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
    if (references == 0)
        return NVML_ERROR_UNINITIALIZED;
    return snprintf(version, length, "%s", DRIVER_VERSION) < (int)length ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length)
{
    return snprintf(version, length, "%d.%s", CUDA_MAJOR, DRIVER_VERSION) < (int)length ? NVML_SUCCESS
                                                                                          : NVML_ERROR_INSUFFICIENT_SIZE;
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    *version = CUDA_MAJOR * 1000 + CUDA_MINOR * 10;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version)
{
    return nvmlSystemGetCudaDriverVersion_v2(version);
}

nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char *name, unsigned int length)
{
    struct gpu_state state;
    if (references == 0)
        return NVML_ERROR_UNINITIALIZED;
    gpu_read_state(&state);
    for (size_t i = 0; i < state.processes; i++) {
        if (state.process[i].pid == pid) {
            snprintf(name, length, "%s", state.process[i].name);
            return NVML_SUCCESS;
        }
    }
    return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
    if (references == 0)
        return NVML_ERROR_UNINITIALIZED;
    *count = gpu_access("/dev/nvidia0") == ACCESS_OK ? 1 : 0;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount(unsigned int *count)
{
    return nvmlDeviceGetCount_v2(count);
}

static nvmlReturn_t handle(bool found, nvmlDevice_t *device)
{
    struct gpu_state state;
    unsigned int count = 0;
    nvmlReturn_t code = nvmlDeviceGetCount_v2(&count);
    if (code != NVML_SUCCESS)
        return code;
    if (!found || count == 0)
        return NVML_ERROR_NOT_FOUND;
    code = check(DEVICE, device, &state);
    if (code == NVML_SUCCESS)
        *device = DEVICE;
    return code;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
    unsigned int count = 0;
    nvmlReturn_t code = nvmlDeviceGetCount_v2(&count);
    if (code == NVML_SUCCESS && index >= count)
        return NVML_ERROR_INVALID_ARGUMENT;
    return code == NVML_SUCCESS ? handle(true, device) : code;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *device)
{
    return nvmlDeviceGetHandleByIndex_v2(index, device);
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    return handle(strcmp(uuid, SIM_UUID) == 0, device);
}

nvmlReturn_t nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *device)
{
    return handle(strcmp(serial, SIM_SERIAL) == 0, device);
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *device)
{
    return handle(strcmp(bus_id, SIM_BUS_ID) == 0 || strcmp(bus_id, SIM_BUS_ID_LEGACY) == 0, device);
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length)
{
    return text(device, SIM_NAME, name, length);
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length)
{
    return text(device, SIM_UUID, uuid, length);
}

nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t device, char *serial, unsigned int length)
{
    return text(device, SIM_SERIAL, serial, length);
}

nvmlReturn_t nvmlDeviceGetVbiosVersion(nvmlDevice_t device, char *version, unsigned int length)
{
    return text(device, SIM_VBIOS, version, length);
}

nvmlReturn_t nvmlDeviceGetGspFirmwareVersion(nvmlDevice_t device, char *version)
{
    return text(device, DRIVER_VERSION, version, NVML_GSP_FIRMWARE_VERSION_BUF_SIZE);
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index)
{
    return number(device, 0, index);
}

nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int *minor)
{
    return number(device, 0, minor);
}

nvmlReturn_t nvmlDeviceGetBrand(nvmlDevice_t device, nvmlBrandType_t *brand)
{
    struct gpu_state state;
    nvmlReturn_t code = check(device, brand, &state);
    if (code == NVML_SUCCESS)
        *brand = NVML_BRAND_NVIDIA;
    return code;
}

nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t device, nvmlDeviceArchitecture_t *architecture)
{
    return number(device, NVML_DEVICE_ARCH_ADA, architecture);
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor)
{
    struct gpu_state state;
    nvmlReturn_t code = check(device, major && minor ? major : NULL, &state);
    if (code == NVML_SUCCESS) {
        *major = 8;
        *minor = 9;
    }
    return code;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    struct gpu_state state;
    nvmlReturn_t code = check(device, pci, &state);
    if (code != NVML_SUCCESS)
        return code;
    *pci = (nvmlPciInfo_t){
        .busIdLegacy = SIM_BUS_ID_LEGACY,
        .device = SIM_PCI_DEVICE,
        .pciDeviceId = SIM_PCI_DEVICE_ID,
        .pciSubSystemId = SIM_PCI_SUBSYSTEM_ID,
        .busId = SIM_BUS_ID,
    };
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    return nvmlDeviceGetPciInfo_v3(device, pci);
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    struct gpu_state state;
    nvmlReturn_t code = check(device, memory, &state);
    if (code != NVML_SUCCESS)
        return code;
    memory->total = SIM_TOTAL_MIB * MIB;
    memory->reserved = SIM_RESERVED_MIB * MIB;
    memory->used = gpu_used_mib(&state) * MIB;
    memory->free = memory->total - memory->reserved - memory->used;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    nvmlMemory_v2_t detail = {0};
    nvmlReturn_t code = nvmlDeviceGetMemoryInfo_v2(device, memory ? &detail : NULL);
    if (code != NVML_SUCCESS)
        return code;
    memory->total = detail.total;
    memory->free = detail.free;
    memory->used = detail.used + detail.reserved;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t *bar1)
{
    struct gpu_state state;
    nvmlReturn_t code = check(device, bar1, &state);
    if (code != NVML_SUCCESS)
        return code;
    *bar1 = (nvmlBAR1Memory_t){.bar1Total = 32768 * MIB, .bar1Used = 1 * MIB, .bar1Free = 32767 * MIB};
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device, nvmlEnableState_t *mode)
{
    struct gpu_state state;
    nvmlReturn_t code = check(device, mode, &state);
    if (code == NVML_SUCCESS)
        *mode = state.persistence ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
    return code;
}

nvmlReturn_t nvmlDeviceSetPersistenceMode(nvmlDevice_t device, nvmlEnableState_t mode)
{
    struct gpu_state state;
    nvmlReturn_t code = check(device, &mode, &state);
    if (code != NVML_SUCCESS)
        return code;
    return gpu_set_persistence(mode == NVML_FEATURE_ENABLED) == 0 ? NVML_SUCCESS : NVML_ERROR_NO_PERMISSION;
}

nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, nvmlEnableState_t *current, nvmlEnableState_t *pending)
{
    struct gpu_state state;
    nvmlReturn_t code = check(device, current && pending ? current : NULL, &state);
    if (code == NVML_SUCCESS)
        *current = *pending = NVML_FEATURE_ENABLED;
    return code;
}

nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, nvmlComputeMode_t *mode)
{
    struct gpu_state state;
    nvmlReturn_t code = check(device, mode, &state);
    if (code == NVML_SUCCESS)
        *mode = NVML_COMPUTEMODE_DEFAULT;
    return code;
}

nvmlReturn_t nvmlDeviceGetDisplayActive(nvmlDevice_t device, nvmlEnableState_t *active)
{
    struct gpu_state state;
    nvmlReturn_t code = check(device, active, &state);
    if (code == NVML_SUCCESS)
        *active = NVML_FEATURE_DISABLED;
    return code;
}

nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int *is_mig)
{
    return number(device, 0, is_mig);
}

nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int *count)
{
    return number(device, 0, count);
}

nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t device, nvmlPstates_t *state_code)
{
    struct gpu_state state;
    nvmlReturn_t code = check(device, state_code, &state);
    if (code == NVML_SUCCESS)
        *state_code = busy(&state) ? NVML_PSTATE_0 : NVML_PSTATE_8;
    return code;
}

nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device, unsigned long long *reasons)
{
    struct gpu_state state;
    nvmlReturn_t code = check(device, reasons, &state);
    if (code == NVML_SUCCESS)
        *reasons = busy(&state) ? nvmlClocksEventReasonNone : nvmlClocksEventReasonGpuIdle;
    return code;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *utilization)
{
    struct gpu_state state;
    nvmlReturn_t code = check(device, utilization, &state);
    if (code == NVML_SUCCESS)
        *utilization = (nvmlUtilization_t){0};
    return code;
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t sensor, unsigned int *degrees)
{
    struct gpu_state state;
    nvmlReturn_t code = check(device, degrees, &state);
    if (code == NVML_SUCCESS && sensor != NVML_TEMPERATURE_GPU)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (code == NVML_SUCCESS)
        *degrees = busy(&state) ? 48 : 36;
    return code;
}

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *milliwatt)
{
    struct gpu_state state;
    nvmlReturn_t code = check(device, milliwatt, &state);
    if (code == NVML_SUCCESS)
        *milliwatt = busy(&state) ? 27450 : 11870;
    return code;
}

nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned int *milliwatt)
{
    return number(device, 72000, milliwatt);
}

nvmlReturn_t nvmlDeviceGetPowerManagementLimit(nvmlDevice_t device, unsigned int *milliwatt)
{
    return number(device, 72000, milliwatt);
}

nvmlReturn_t nvmlDeviceGetPowerManagementDefaultLimit(nvmlDevice_t device, unsigned int *milliwatt)
{
    return number(device, 72000, milliwatt);
}

nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t device, unsigned int *least, unsigned int *most)
{
    nvmlReturn_t code = number(device, 40000, least);
    return code == NVML_SUCCESS ? number(device, 72000, most) : code;
}

nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int *mhz)
{
    unsigned int value = type == NVML_CLOCK_MEM ? MHZ_MEMORY_MAX : type == NVML_CLOCK_VIDEO ? MHZ_VIDEO_MAX : MHZ_GRAPHICS_MAX;
    return number(device, value, mhz);
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int *mhz)
{
    struct gpu_state state;
    nvmlReturn_t code = check(device, mhz, &state);
    if (code != NVML_SUCCESS || busy(&state))
        return code == NVML_SUCCESS ? nvmlDeviceGetMaxClockInfo(device, type, mhz) : code;
    *mhz = type == NVML_CLOCK_MEM ? 405 : type == NVML_CLOCK_VIDEO ? 555 : 210;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t device, unsigned int *generation)
{
    return number(device, 4, generation);
}

nvmlReturn_t nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t device, unsigned int *width)
{
    return number(device, 16, width);
}

nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t device, unsigned int *generation)
{
    struct gpu_state state;
    nvmlReturn_t code = check(device, generation, &state);
    if (code == NVML_SUCCESS)
        *generation = busy(&state) ? 4 : 1;
    return code;
}

nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t device, unsigned int *width)
{
    return number(device, 16, width);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos)
{
    struct gpu_state state;
    nvmlReturn_t code = check(device, count, &state);
    if (code != NVML_SUCCESS)
        return code;
    unsigned int room = *count;
    *count = state.remote ? 0 : (unsigned int)state.processes;
    if (*count > room)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned int i = 0; i < *count; i++)
        infos[i] = (nvmlProcessInfo_t){
            .pid = state.process[i].pid,
            .usedGpuMemory = state.process[i].mib * MIB,
            .gpuInstanceId = 0xFFFFFFFFu,
            .computeInstanceId = 0xFFFFFFFFu,
        };
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos)
{
    (void)infos;
    return number(device, 0, count);
}

/* An event set remembers how many xid lines it has already told of. */
struct events {
    unsigned int told;
    bool registered;
};

#define MAX_EVENT_SETS 8
static struct events event_sets[MAX_EVENT_SETS];
static unsigned int event_sets_used;

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set)
{
    if (references == 0)
        return NVML_ERROR_UNINITIALIZED;
    struct events *events = &event_sets[event_sets_used++ % MAX_EVENT_SETS];
    *events = (struct events){0};
    set->handle = (void *)events;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set)
{
    return set.handle ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *types)
{
    struct gpu_state state;
    nvmlReturn_t code = check(device, types, &state);
    if (code == NVML_SUCCESS)
        *types = nvmlEventTypeXidCriticalError | nvmlEventTypeSingleBitEccError | nvmlEventTypeDoubleBitEccError;
    return code;
}

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set)
{
    struct gpu_state state;
    nvmlReturn_t code = check(device, set.handle, &state);
    if (code != NVML_SUCCESS)
        return code;
    struct events *events = (struct events *)(void *)set.handle;
    events->told = state.xids;
    events->registered = (types & nvmlEventTypeXidCriticalError) != 0;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms)
{
    struct events *events = (struct events *)(void *)set.handle;
    struct timespec nap = {.tv_nsec = POLL_MS * 1000000l};
    if (references == 0)
        return NVML_ERROR_UNINITIALIZED;
    for (unsigned int waited = 0;; waited += POLL_MS) {
        struct gpu_state state;
        gpu_read_state(&state);
        if (state.lost)
            return NVML_ERROR_GPU_IS_LOST;
        if (state.xids < events->told)
            events->told = state.xids; /* the faults were cleared */
        if (events->registered && state.xids > events->told) {
            events->told++;
            *data = (nvmlEventData_t){
                .device = DEVICE,
                .eventType = nvmlEventTypeXidCriticalError,
                .eventData = state.xid,
                .gpuInstanceId = 0xFFFFFFFFu,
                .computeInstanceId = 0xFFFFFFFFu,
            };
            return NVML_SUCCESS;
        }
        if (waited >= timeout_ms)
            return NVML_ERROR_TIMEOUT;
        nanosleep(&nap, NULL);
    }
}

nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms)
{
    return nvmlEventSetWait_v2(set, data, timeout_ms);
}
