/* nvidia-smi for the simulated L4: the calls that people and this project make, on NVML, with the real tool's words and exit codes. */
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <nvml.h>

#include "gpu.h"
#include "smi_xml.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* The real tool's exit codes. */
enum {
    EXIT_OK = 0,
    EXIT_INVALID_ARGUMENT = 2,
    EXIT_NO_PERMISSION = 4,
    EXIT_NOT_FOUND = 6,
    EXIT_DRIVER_NOT_LOADED = 9,
    EXIT_NO_LIBRARY = 12,
    EXIT_GPU_LOST = 15,
    EXIT_OTHER = 255,
};

#define NVML_FUNCTIONS(X) \
    X(nvmlInit_v2) X(nvmlErrorString) X(nvmlSystemGetDriverVersion) X(nvmlSystemGetNVMLVersion) \
    X(nvmlSystemGetCudaDriverVersion_v2) X(nvmlSystemGetProcessName) X(nvmlDeviceGetCount_v2) X(nvmlDeviceGetHandleByIndex_v2) \
    X(nvmlDeviceGetName) X(nvmlDeviceGetUUID) X(nvmlDeviceGetSerial) X(nvmlDeviceGetVbiosVersion) X(nvmlDeviceGetPciInfo_v3) \
    X(nvmlDeviceGetMemoryInfo_v2) X(nvmlDeviceGetPersistenceMode) X(nvmlDeviceSetPersistenceMode) X(nvmlDeviceGetPerformanceState) \
    X(nvmlDeviceGetUtilizationRates) X(nvmlDeviceGetTemperature) X(nvmlDeviceGetPowerUsage) X(nvmlDeviceGetEnforcedPowerLimit) \
    X(nvmlDeviceGetPowerManagementDefaultLimit) X(nvmlDeviceGetPowerManagementLimitConstraints) X(nvmlDeviceGetClockInfo) \
    X(nvmlDeviceGetMaxClockInfo) X(nvmlDeviceGetMaxPcieLinkGeneration) X(nvmlDeviceGetCurrPcieLinkGeneration) \
    X(nvmlDeviceGetCurrPcieLinkWidth) X(nvmlDeviceGetMaxPcieLinkWidth) X(nvmlDeviceGetCudaComputeCapability) \
    X(nvmlDeviceGetCurrentClocksEventReasons) X(nvmlDeviceGetComputeRunningProcesses_v3)

static struct {
#define MEMBER(name) __typeof__(&name) name;
    NVML_FUNCTIONS(MEMBER)
#undef MEMBER
} nvml;

static nvmlDevice_t gpu;

static _Noreturn void fail(int code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    fflush(stdout);
    exit(code);
}

static int exit_code(nvmlReturn_t code)
{
    switch (code) {
    case NVML_ERROR_NO_PERMISSION: return EXIT_NO_PERMISSION;
    case NVML_ERROR_NOT_FOUND: return EXIT_NOT_FOUND;
    case NVML_ERROR_DRIVER_NOT_LOADED: return EXIT_DRIVER_NOT_LOADED;
    case NVML_ERROR_GPU_IS_LOST: return EXIT_GPU_LOST;
    case NVML_ERROR_LIB_RM_VERSION_MISMATCH: return (int)NVML_ERROR_LIB_RM_VERSION_MISMATCH;
    default: return EXIT_OTHER;
    }
}

/* "13.595.91.07" -> "595.91": CUDA's major number and the last part are not shown. */
static const char *nvml_version(void)
{
    static char version[NVML_SYSTEM_NVML_VERSION_BUFFER_SIZE];
    nvml.nvmlSystemGetNVMLVersion(version, sizeof version);
    char *begin = strchr(version, '.');
    begin = begin ? begin + 1 : version;
    char *second = strchr(begin, '.');
    char *third = second ? strchr(second + 1, '.') : NULL;
    if (third)
        *third = '\0';
    return begin;
}

static void load_library(void)
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (!library)
        fail(EXIT_NO_LIBRARY,
             "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. Please make sure that the NVIDIA Display Driver is "
             "properly installed and present in your system.\n"
             "Please also try adding directory that contains libnvidia-ml.so to your system PATH.\n");
#define LOOK_UP(name) \
    *(void **)&nvml.name = dlsym(library, #name); \
    if (!nvml.name) \
        fail(EXIT_OTHER, "libnvidia-ml.so.1 has no " #name ": it is of another version than nvidia-smi (" DRIVER_VERSION ").\n");
    NVML_FUNCTIONS(LOOK_UP)
#undef LOOK_UP
}

static void initialise(void)
{
    nvmlReturn_t code = nvml.nvmlInit_v2();
    if (code == NVML_SUCCESS)
        return;
    if (code == NVML_ERROR_DRIVER_NOT_LOADED)
        fail(EXIT_DRIVER_NOT_LOADED,
             "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is "
             "installed and running.\n\n");
    if (code == NVML_ERROR_LIB_RM_VERSION_MISMATCH)
        fail(exit_code(code), "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: %s\n", nvml_version());
    fail(exit_code(code), "Failed to initialize NVML: %s\n", nvml.nvmlErrorString(code));
}

/* Find the device that -i names (or the only one); `none` is what is printed when there is none. */
static void select_gpu(const char *wanted, const char *none)
{
    unsigned int count = 0;
    nvmlReturn_t code = nvml.nvmlDeviceGetCount_v2(&count);
    if (code != NVML_SUCCESS)
        fail(exit_code(code), "Unable to count the devices: %s\n", nvml.nvmlErrorString(code));
    bool match = !wanted || strcmp(wanted, "0") == 0 || strcmp(wanted, SIM_UUID) == 0 || strcmp(wanted, SIM_BUS_ID) == 0 ||
                 strcmp(wanted, SIM_BUS_ID_LEGACY) == 0 || strcmp(wanted, SIM_SERIAL) == 0;
    if (count == 0 || !match)
        fail(EXIT_NOT_FOUND, "%s\n", none);
    code = nvml.nvmlDeviceGetHandleByIndex_v2(0, &gpu);
    if (code == NVML_ERROR_GPU_IS_LOST)
        fail(exit_code(code), "Unable to determine the device handle for GPU %s: GPU is lost.  Reboot the system to recover this GPU\n",
             SIM_BUS_ID_LEGACY);
    if (code != NVML_SUCCESS)
        fail(exit_code(code), "Unable to determine the device handle for GPU %s: %s\n", SIM_BUS_ID_LEGACY, nvml.nvmlErrorString(code));
}

/* ---- values ---------------------------------------------------------------------------------------------------------------- */

struct value {
    char text[128];
    const char *unit; /* "" for none */
};

static unsigned int uint_of(nvmlReturn_t (*get)(nvmlDevice_t, unsigned int *))
{
    unsigned int result = 0;
    get(gpu, &result);
    return result;
}

static void format(struct value *value, const char *unit, const char *pattern, ...)
{
    va_list arguments;
    va_start(arguments, pattern);
    vsnprintf(value->text, sizeof value->text, pattern, arguments);
    va_end(arguments);
    value->unit = unit;
}

static void watts(struct value *value, unsigned int milliwatt)
{
    format(value, "W", "%u.%02u", milliwatt / 1000, milliwatt % 1000 / 10);
}

static void clock_of(struct value *value, bool most, nvmlClockType_t type)
{
    unsigned int mhz = 0;
    (most ? nvml.nvmlDeviceGetMaxClockInfo : nvml.nvmlDeviceGetClockInfo)(gpu, type, &mhz);
    format(value, "MHz", "%u", mhz);
}

static void field_identity(const char *field, struct value *value)
{
    char text[96] = "";
    if (strcmp(field, "name") == 0)
        nvml.nvmlDeviceGetName(gpu, text, sizeof text);
    else if (strcmp(field, "uuid") == 0)
        nvml.nvmlDeviceGetUUID(gpu, text, sizeof text);
    else if (strcmp(field, "serial") == 0)
        nvml.nvmlDeviceGetSerial(gpu, text, sizeof text);
    else if (strcmp(field, "vbios_version") == 0)
        nvml.nvmlDeviceGetVbiosVersion(gpu, text, sizeof text);
    else
        nvml.nvmlSystemGetDriverVersion(text, sizeof text);
    format(value, "", "%s", text);
}

static void field_timestamp(const char *field, struct value *value)
{
    struct timeval now;
    char text[32];
    (void)field;
    gettimeofday(&now, NULL);
    strftime(text, sizeof text, "%Y/%m/%d %H:%M:%S", localtime(&now.tv_sec));
    format(value, "", "%s.%03d", text, (int)(now.tv_usec / 1000));
}

static void field_pci(const char *field, struct value *value)
{
    nvmlPciInfo_t pci = {0};
    nvml.nvmlDeviceGetPciInfo_v3(gpu, &pci);
    if (strcmp(field, "pci.bus_id") == 0)
        format(value, "", "%s", pci.busId);
    else if (strcmp(field, "pci.device_id") == 0)
        format(value, "", "0x%08X", pci.pciDeviceId);
    else if (strcmp(field, "pci.sub_device_id") == 0)
        format(value, "", "0x%08X", pci.pciSubSystemId);
    else
        format(value, "", "0x%02X", strcmp(field, "pci.device") == 0 ? pci.device : strcmp(field, "pci.bus") == 0 ? pci.bus : pci.domain);
}

static void field_memory(const char *field, struct value *value)
{
    nvmlMemory_v2_t memory = {.version = nvmlMemory_v2};
    nvml.nvmlDeviceGetMemoryInfo_v2(gpu, &memory);
    unsigned long long bytes = strcmp(field, "memory.total") == 0  ? memory.total
                               : strcmp(field, "memory.used") == 0 ? memory.used
                               : strcmp(field, "memory.free") == 0 ? memory.free
                                                                   : memory.reserved;
    format(value, "MiB", "%llu", bytes / MIB);
}

static void field_state(const char *field, struct value *value)
{
    if (strcmp(field, "persistence_mode") == 0) {
        nvmlEnableState_t mode = NVML_FEATURE_DISABLED;
        nvml.nvmlDeviceGetPersistenceMode(gpu, &mode);
        format(value, "", "%s", mode == NVML_FEATURE_ENABLED ? "Enabled" : "Disabled");
    } else if (strcmp(field, "pstate") == 0) {
        nvmlPstates_t pstate = NVML_PSTATE_UNKNOWN;
        nvml.nvmlDeviceGetPerformanceState(gpu, &pstate);
        format(value, "", "P%d", (int)pstate);
    } else if (strcmp(field, "clocks_event_reasons.gpu_idle") == 0 || strcmp(field, "clocks_throttle_reasons.gpu_idle") == 0) {
        unsigned long long reasons = 0;
        nvml.nvmlDeviceGetCurrentClocksEventReasons(gpu, &reasons);
        format(value, "", "%s", reasons & nvmlClocksEventReasonGpuIdle ? "Active" : "Not Active");
    } else if (strstr(field, "reasons.active")) {
        unsigned long long reasons = 0;
        nvml.nvmlDeviceGetCurrentClocksEventReasons(gpu, &reasons);
        format(value, "", "0x%016llx", reasons);
    } else if (strncmp(field, "clocks_", 7) == 0) {
        format(value, "", "Not Active");
    } else {
        nvmlUtilization_t utilization = {0};
        nvml.nvmlDeviceGetUtilizationRates(gpu, &utilization);
        format(value, "%", "%u", strcmp(field, "utilization.gpu") == 0 ? utilization.gpu : utilization.memory);
    }
}

static void field_power(const char *field, struct value *value)
{
    unsigned int least = 0, most = 0;
    nvml.nvmlDeviceGetPowerManagementLimitConstraints(gpu, &least, &most);
    if (strncmp(field, "power.draw", 10) == 0)
        watts(value, uint_of(nvml.nvmlDeviceGetPowerUsage));
    else if (strcmp(field, "power.min_limit") == 0)
        watts(value, least);
    else if (strcmp(field, "power.max_limit") == 0)
        watts(value, most);
    else if (strcmp(field, "power.default_limit") == 0)
        watts(value, uint_of(nvml.nvmlDeviceGetPowerManagementDefaultLimit));
    else
        watts(value, uint_of(nvml.nvmlDeviceGetEnforcedPowerLimit));
}

static void field_clock(const char *field, struct value *value)
{
    bool most = strncmp(field, "clocks.max.", 11) == 0;
    const char *which = strrchr(field, '.') + 1;
    nvmlClockType_t type = strncmp(which, "mem", 3) == 0 ? NVML_CLOCK_MEM
                           : strcmp(which, "video") == 0 ? NVML_CLOCK_VIDEO
                           : strcmp(which, "sm") == 0    ? NVML_CLOCK_SM
                                                         : NVML_CLOCK_GRAPHICS;
    clock_of(value, most, type);
}

static void field_other(const char *field, struct value *value)
{
    if (strcmp(field, "temperature.gpu") == 0) {
        unsigned int degrees = 0;
        nvml.nvmlDeviceGetTemperature(gpu, NVML_TEMPERATURE_GPU, &degrees);
        format(value, "", "%u", degrees);
    } else if (strcmp(field, "compute_cap") == 0) {
        int major = 0, minor = 0;
        nvml.nvmlDeviceGetCudaComputeCapability(gpu, &major, &minor);
        format(value, "", "%d.%d", major, minor);
    } else if (strcmp(field, "pcie.link.gen.max") == 0) {
        format(value, "", "%u", uint_of(nvml.nvmlDeviceGetMaxPcieLinkGeneration));
    } else if (strncmp(field, "pcie.link.gen.", 14) == 0) {
        format(value, "", "%u", uint_of(nvml.nvmlDeviceGetCurrPcieLinkGeneration));
    } else if (strcmp(field, "pcie.link.width.max") == 0) {
        format(value, "", "%u", uint_of(nvml.nvmlDeviceGetMaxPcieLinkWidth));
    } else {
        format(value, "", "%u", uint_of(nvml.nvmlDeviceGetCurrPcieLinkWidth));
    }
}

/* Fields whose value does not change on this card; the text stands in `constant`. */
struct field {
    const char *name;
    const char *alias;
    const char *header_unit; /* as the CSV header shows it */
    void (*get)(const char *field, struct value *value);
    const char *constant;
};

static const struct field FIELDS[] = {
    {"timestamp", NULL, NULL, field_timestamp, NULL},
    {"driver_version", NULL, NULL, field_identity, NULL},
    {"count", NULL, NULL, NULL, "1"},
    {"name", "gpu_name", NULL, field_identity, NULL},
    {"index", NULL, NULL, NULL, "0"},
    {"uuid", "gpu_uuid", NULL, field_identity, NULL},
    {"serial", "gpu_serial", NULL, field_identity, NULL},
    {"vbios_version", NULL, NULL, field_identity, NULL},
    {"compute_cap", NULL, NULL, field_other, NULL},
    {"pci.bus_id", "gpu_bus_id", NULL, field_pci, NULL},
    {"pci.domain", NULL, NULL, field_pci, NULL},
    {"pci.bus", NULL, NULL, field_pci, NULL},
    {"pci.device", NULL, NULL, field_pci, NULL},
    {"pci.device_id", NULL, NULL, field_pci, NULL},
    {"pci.sub_device_id", NULL, NULL, field_pci, NULL},
    {"pcie.link.gen.current", "pcie.link.gen.gpucurrent", NULL, field_other, NULL},
    {"pcie.link.gen.max", NULL, NULL, field_other, NULL},
    {"pcie.link.width.current", NULL, NULL, field_other, NULL},
    {"pcie.link.width.max", NULL, NULL, field_other, NULL},
    {"display_active", NULL, NULL, NULL, "Disabled"},
    {"display_mode", NULL, NULL, NULL, "Disabled"},
    {"persistence_mode", NULL, NULL, field_state, NULL},
    {"accounting.mode", NULL, NULL, NULL, "Disabled"},
    {"addressing_mode", NULL, NULL, NULL, "HMM"},
    {"fan.speed", NULL, "%", NULL, "[N/A]"},
    {"pstate", NULL, NULL, field_state, NULL},
    {"clocks_event_reasons.active", "clocks_throttle_reasons.active", NULL, field_state, NULL},
    {"clocks_event_reasons.gpu_idle", "clocks_throttle_reasons.gpu_idle", NULL, field_state, NULL},
    {"clocks_event_reasons.sw_power_cap", "clocks_throttle_reasons.sw_power_cap", NULL, field_state, NULL},
    {"clocks_event_reasons.hw_slowdown", "clocks_throttle_reasons.hw_slowdown", NULL, field_state, NULL},
    {"clocks_event_reasons.hw_thermal_slowdown", "clocks_throttle_reasons.hw_thermal_slowdown", NULL, field_state, NULL},
    {"clocks_event_reasons.sw_thermal_slowdown", "clocks_throttle_reasons.sw_thermal_slowdown", NULL, field_state, NULL},
    {"memory.total", NULL, "MiB", field_memory, NULL},
    {"memory.reserved", NULL, "MiB", field_memory, NULL},
    {"memory.used", NULL, "MiB", field_memory, NULL},
    {"memory.free", NULL, "MiB", field_memory, NULL},
    {"compute_mode", NULL, NULL, NULL, "Default"},
    {"utilization.gpu", NULL, "%", field_state, NULL},
    {"utilization.memory", NULL, "%", field_state, NULL},
    {"ecc.mode.current", NULL, NULL, NULL, "Enabled"},
    {"ecc.mode.pending", NULL, NULL, NULL, "Enabled"},
    {"ecc.errors.uncorrected.volatile.total", NULL, NULL, NULL, "0"},
    {"ecc.errors.corrected.volatile.total", NULL, NULL, NULL, "0"},
    {"temperature.gpu", NULL, NULL, field_other, NULL},
    {"temperature.memory", NULL, NULL, NULL, "N/A"},
    {"power.management", NULL, NULL, NULL, "Enabled"},
    {"power.draw", NULL, "W", field_power, NULL},
    {"power.draw.average", NULL, "W", field_power, NULL},
    {"power.draw.instant", NULL, "W", field_power, NULL},
    {"power.limit", NULL, "W", field_power, NULL},
    {"enforced.power.limit", NULL, "W", field_power, NULL},
    {"power.default_limit", NULL, "W", field_power, NULL},
    {"power.min_limit", NULL, "W", field_power, NULL},
    {"power.max_limit", NULL, "W", field_power, NULL},
    {"clocks.current.graphics", "clocks.gr", "MHz", field_clock, NULL},
    {"clocks.current.sm", "clocks.sm", "MHz", field_clock, NULL},
    {"clocks.current.memory", "clocks.mem", "MHz", field_clock, NULL},
    {"clocks.current.video", "clocks.video", "MHz", field_clock, NULL},
    {"clocks.max.graphics", "clocks.max.gr", "MHz", field_clock, NULL},
    {"clocks.max.sm", NULL, "MHz", field_clock, NULL},
    {"clocks.max.memory", "clocks.max.mem", "MHz", field_clock, NULL},
    {"clocks.max.video", NULL, "MHz", field_clock, NULL},
    {"mig.mode.current", NULL, NULL, NULL, "[N/A]"},
    {"mig.mode.pending", NULL, NULL, NULL, "[N/A]"},
};

#define FIELD_COUNT (sizeof FIELDS / sizeof FIELDS[0])

static const struct field *find_field(const char *name)
{
    for (size_t i = 0; i < FIELD_COUNT; i++)
        if (strcmp(FIELDS[i].name, name) == 0 || (FIELDS[i].alias && strcmp(FIELDS[i].alias, name) == 0))
            return &FIELDS[i];
    return NULL;
}

static void get_value(const struct field *field, struct value *value)
{
    if (field->get)
        field->get(field->name, value);
    else
        format(value, "", "%s", field->constant);
}

/* ---- csv ------------------------------------------------------------------------------------------------------------------- */

struct csv {
    bool header, units;
};

#define MAX_FIELDS 64

struct columns {
    size_t count;
    char *name[MAX_FIELDS];
};

static void split(char *list, struct columns *columns)
{
    char *rest = NULL;
    columns->count = 0;
    for (char *name = strtok_r(list, ", ", &rest); name && columns->count < MAX_FIELDS; name = strtok_r(NULL, ", ", &rest))
        columns->name[columns->count++] = name;
}

static _Noreturn void refuse_field(const char *name)
{
    fail(EXIT_INVALID_ARGUMENT, "Field \"%s\" is not a valid field to query.\n\n", name);
}

/* The unit stands in the header, whether or not the values carry it too. */
static void print_headers(const struct columns *columns, const char *(*unit_of)(const char *name))
{
    for (size_t i = 0; i < columns->count; i++) {
        const char *unit = unit_of(columns->name[i]);
        printf("%s%s", i ? ", " : "", columns->name[i]);
        if (unit)
            printf(" [%s]", unit);
    }
    printf("\n");
}

static const char *gpu_unit(const char *name)
{
    return find_field(name)->header_unit;
}

static void query_gpu(struct columns *columns, const struct csv *csv)
{
    for (size_t i = 0; i < columns->count; i++)
        if (!find_field(columns->name[i]))
            refuse_field(columns->name[i]);
    if (csv->header)
        print_headers(columns, gpu_unit);
    for (size_t i = 0; i < columns->count; i++) {
        struct value value = {.unit = ""};
        get_value(find_field(columns->name[i]), &value);
        printf("%s%s", i ? ", " : "", value.text);
        if (csv->units && value.unit[0])
            printf(" %s", value.unit);
    }
    printf("\n");
}

static const char *apps_unit(const char *name)
{
    return strcmp(name, "used_gpu_memory") == 0 || strcmp(name, "used_memory") == 0 ? "MiB" : NULL;
}

static void print_app_field(const char *name, const nvmlProcessInfo_t *process, const struct csv *csv)
{
    char text[128] = "[Not Found]";
    struct value value = {.unit = ""};
    if (strcmp(name, "pid") == 0) {
        printf("%u", process->pid);
    } else if (strcmp(name, "process_name") == 0 || strcmp(name, "name") == 0) {
        nvml.nvmlSystemGetProcessName(process->pid, text, sizeof text);
        printf("%s", text);
    } else if (apps_unit(name)) {
        printf("%llu%s", process->usedGpuMemory / MIB, csv->units ? " MiB" : "");
    } else {
        get_value(find_field(name), &value);
        printf("%s", value.text);
    }
}

static unsigned int running(nvmlProcessInfo_t infos[MAX_PROCESSES])
{
    unsigned int count = MAX_PROCESSES;
    return nvml.nvmlDeviceGetComputeRunningProcesses_v3(gpu, &count, infos) == NVML_SUCCESS ? count : 0;
}

static void query_apps(struct columns *columns, const struct csv *csv)
{
    static const char *const KNOWN[] = {"pid",      "process_name", "name",     "used_gpu_memory", "used_memory",
                                        "gpu_uuid", "gpu_name",     "gpu_bus_id", "gpu_serial",    "timestamp"};
    nvmlProcessInfo_t infos[MAX_PROCESSES];
    for (size_t i = 0; i < columns->count; i++) {
        bool known = false;
        for (size_t k = 0; k < sizeof KNOWN / sizeof KNOWN[0]; k++)
            known = known || strcmp(columns->name[i], KNOWN[k]) == 0;
        if (!known)
            refuse_field(columns->name[i]);
    }
    if (csv->header)
        print_headers(columns, apps_unit);
    unsigned int count = running(infos);
    for (unsigned int row = 0; row < count; row++) {
        for (size_t i = 0; i < columns->count; i++) {
            if (i)
                printf(", ");
            print_app_field(columns->name[i], &infos[row], csv);
        }
        printf("\n");
    }
}

/* ---- table, list, xml ------------------------------------------------------------------------------------------------------- */

static const char *value_of(const char *name)
{
    static struct value ring[8];
    static unsigned int next;
    struct value *value = &ring[next++ % 8];
    get_value(find_field(name), value);
    return value->text;
}

static void cuda_version(char *text, size_t size)
{
    int version = 0;
    nvml.nvmlSystemGetCudaDriverVersion_v2(&version);
    snprintf(text, size, "%d.%d", version / 1000, version % 1000 / 10);
}

static void now(char *text, size_t size)
{
    time_t seconds = time(NULL);
    strftime(text, size, "%a %b %e %H:%M:%S %Y", localtime(&seconds));
}

#define RULE "-----------------------------------------------------------------------------------------"

static void print_processes(void)
{
    nvmlProcessInfo_t infos[MAX_PROCESSES];
    unsigned int count = running(infos);
    printf("+" RULE "+\n");
    printf("| %-88s|\n", "Processes:");
    printf("| %-88s|\n", " GPU   GI   CI              PID   Type   Process name                        GPU Memory");
    printf("| %-88s|\n", "       ID   ID                                                               Usage");
    printf("|=========================================================================================|\n");
    for (unsigned int i = 0; i < count; i++) {
        char name[36] = "[Not Found]";
        nvml.nvmlSystemGetProcessName(infos[i].pid, name, sizeof name);
        printf("|%5d   N/A  N/A%16u      C   %-35s %7lluMiB |\n", 0, infos[i].pid, name, infos[i].usedGpuMemory / MIB);
    }
    if (count == 0)
        printf("|  %-87s|\n", "No running processes found");
    printf("+" RULE "+\n");
}

static void print_table(void)
{
    char date[64], cuda[16];
    now(date, sizeof date);
    cuda_version(cuda, sizeof cuda);
    bool persistent = strcmp(value_of("persistence_mode"), "Enabled") == 0;
    printf("%-31s\n", date);
    printf("+" RULE "+\n");
    printf("| NVIDIA-SMI %-22s Driver Version: %-14s CUDA Version: %-9s|\n", DRIVER_VERSION, value_of("driver_version"), cuda);
    printf("+-----------------------------------------+------------------------+----------------------+\n");
    printf("| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |\n");
    printf("| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |\n");
    printf("|                                         |                        |               MIG M. |\n");
    printf("|=========================================+========================+======================|\n");
    printf("|%4d  %-29s%4s  | %18s Off |%21d |\n", 0, value_of("name"), persistent ? "On" : "Off", value_of("pci.bus_id"), 0);
    printf("| N/A%5sC %5s%15.0fW / %4.0fW | %7sMiB / %6sMiB |%7s%% %12s |\n", value_of("temperature.gpu"), value_of("pstate"),
           atof(value_of("power.draw")), atof(value_of("power.limit")), value_of("memory.used"), value_of("memory.total"),
           value_of("utilization.gpu"), "Default");
    printf("|%41s|%24s|%21s |\n", "", "", "N/A");
    printf("+-----------------------------------------+------------------------+----------------------+\n\n");
    print_processes();
    printf("%s\n", SIM_NOTICE);
}

static void print_template(const char *text)
{
    for (const char *at = text; *at; at++) {
        const char *end = *at == '{' ? strchr(at, '}') : NULL;
        if (!end) {
            putchar(*at);
            continue;
        }
        char name[64];
        struct value value = {.unit = ""};
        snprintf(name, sizeof name, "%.*s", (int)(end - at - 1), at + 1);
        get_value(find_field(name), &value);
        printf("%s%s%s", value.text, value.unit[0] ? " " : "", value.unit);
        at = end;
    }
}

static void print_supported_clocks(void)
{
    printf("\t\t<supported_clocks>\n\t\t\t<supported_mem_clock>\n\t\t\t\t<value>%s MHz</value>\n", value_of("clocks.max.memory"));
    for (int mhz = atoi(value_of("clocks.max.graphics")); mhz >= 210; mhz -= 15)
        printf("\t\t\t\t<supported_graphics_clock>%d MHz</supported_graphics_clock>\n", mhz);
    printf("\t\t\t</supported_mem_clock>\n\t\t</supported_clocks>\n");
}

static void print_xml(void)
{
    char date[64], cuda[16];
    nvmlProcessInfo_t infos[MAX_PROCESSES];
    now(date, sizeof date);
    cuda_version(cuda, sizeof cuda);
    printf("<?xml version=\"1.0\" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v13.dtd\">\n<!-- %s -->\n<nvidia_smi_log>\n", SIM_NOTICE);
    printf("\t<timestamp>%s</timestamp>\n\t<driver_version>%s</driver_version>\n", date, value_of("driver_version"));
    printf("\t<cuda_version>%s</cuda_version>\n\t<attached_gpus>1</attached_gpus>\n", cuda);
    print_template(XML_BEFORE_CLOCKS);
    print_supported_clocks();
    printf("\t\t<processes>\n");
    unsigned int count = running(infos);
    for (unsigned int i = 0; i < count; i++) {
        char name[128] = "[Not Found]";
        nvml.nvmlSystemGetProcessName(infos[i].pid, name, sizeof name);
        printf("\t\t\t<process_info>\n\t\t\t\t<gpu_instance_id>N/A</gpu_instance_id>\n"
               "\t\t\t\t<compute_instance_id>N/A</compute_instance_id>\n\t\t\t\t<pid>%u</pid>\n\t\t\t\t<type>C</type>\n"
               "\t\t\t\t<process_name>%s</process_name>\n\t\t\t\t<used_memory>%llu MiB</used_memory>\n\t\t\t</process_info>\n",
               infos[i].pid, name, infos[i].usedGpuMemory / MIB);
    }
    printf("\t\t</processes>\n");
    print_template(XML_AFTER_PROCESSES);
    printf("\t</gpu>\n\n</nvidia_smi_log>\n");
}

static void print_version(void)
{
    char cuda[16];
    nvmlReturn_t code = nvml.nvmlInit_v2();
    cuda_version(cuda, sizeof cuda);
    printf("NVIDIA-SMI version  : %s\n", DRIVER_VERSION);
    printf("NVML version        : %s\n", nvml_version());
    printf("DRIVER version      : %s\n", code == NVML_SUCCESS ? value_of("driver_version") : "N/A");
    printf("CUDA Version        : %s\n", code == NVML_SUCCESS ? cuda : "N/A");
    printf("%s\n", SIM_NOTICE);
}

static void set_persistence(const char *mode)
{
    bool on = strcmp(mode, "1") == 0 || strcmp(mode, "ENABLED") == 0;
    if (!on && strcmp(mode, "0") != 0 && strcmp(mode, "DISABLED") != 0)
        fail(EXIT_INVALID_ARGUMENT, "Invalid persistence mode: %s. Use 0/DISABLED or 1/ENABLED.\n", mode);
    const char *word = on ? "Enabled" : "Disabled";
    if (strcmp(value_of("persistence_mode"), word) == 0) {
        printf("Persistence mode is already %s for GPU %s.\nAll done.\n", word, SIM_BUS_ID);
        return;
    }
    nvmlReturn_t code = geteuid() == 0 ? nvml.nvmlDeviceSetPersistenceMode(gpu, on ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED)
                                       : NVML_ERROR_NO_PERMISSION;
    if (code != NVML_SUCCESS)
        fail(exit_code(code), "Unable to set persistence mode for GPU %s: %s\nTerminating early due to previous errors.\n", SIM_BUS_ID,
             nvml.nvmlErrorString(code));
    /* Without the daemon the mode is kept by the kernel module alone, which NVIDIA calls legacy. */
    printf("%s %spersistence mode for GPU %s.\nAll done.\n", word, access(STATE_SOCKET, F_OK) == 0 ? "" : "Legacy ", SIM_BUS_ID);
}

/* ---- command line ------------------------------------------------------------------------------------------------------------ */

enum action { TABLE, LIST, XML, QUERY_GPU, QUERY_APPS, VERSION, PERSISTENCE };

struct options {
    enum action action;
    bool query, xml;
    char *fields, *formats;
    const char *mode, *device;
    long loop_ms;
};

static _Noreturn void refuse(const char *option)
{
    fail(EXIT_INVALID_ARGUMENT,
         "Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n(%s is not an option of this simulated nvidia-smi)\n",
         option);
}

static _Noreturn void print_help(void)
{
    fail(EXIT_OK,
         "NVIDIA System Management Interface -- v" DRIVER_VERSION "\n" SIM_NOTICE "\n\n"
         "    -h, --help                 Print this\n"
         "    --version                  Print the versions of nvidia-smi, NVML, driver and CUDA\n"
         "    -L, --list-gpus            List the GPUs\n"
         "    -i, --id=                  Index, UUID, PCI bus id or serial number of a GPU\n"
         "    -q -x                      Everything, as XML\n"
         "    --query-gpu=FIELDS         With --format=csv[,noheader][,nounits]\n"
         "    --query-compute-apps=FIELDS\n"
         "    -pm, --persistence-mode=   0/DISABLED or 1/ENABLED (root)\n"
         "    -l, --loop=SECONDS         Repeat\n"
         "    -lms, --loop-ms=MS         Repeat\n");
}

/* The value of "--name=value", or NULL. */
static char *assigned(char *argument, const char *name)
{
    size_t length = strlen(name);
    return strncmp(argument, name, length) == 0 && argument[length] == '=' ? argument + length + 1 : NULL;
}

static struct options parse(int argc, char **argv)
{
    struct options options = {.action = TABLE};
    for (int i = 1; i < argc; i++) {
        char *argument = argv[i], *value;
        bool takes_next = i + 1 < argc;
        if (strcmp(argument, "-h") == 0 || strcmp(argument, "--help") == 0) {
            print_help();
        } else if (strcmp(argument, "--version") == 0) {
            options.action = VERSION;
        } else if (strcmp(argument, "-L") == 0 || strcmp(argument, "--list-gpus") == 0) {
            options.action = LIST;
        } else if (strcmp(argument, "-q") == 0 || strcmp(argument, "--query") == 0) {
            options.query = true;
        } else if (strcmp(argument, "-x") == 0 || strcmp(argument, "--xml-format") == 0) {
            options.xml = true;
        } else if ((value = assigned(argument, "--query-gpu"))) {
            options.action = QUERY_GPU;
            options.fields = value;
        } else if ((value = assigned(argument, "--query-compute-apps"))) {
            options.action = QUERY_APPS;
            options.fields = value;
        } else if ((value = assigned(argument, "--format"))) {
            options.formats = value;
        } else if ((value = assigned(argument, "--id"))) {
            options.device = value;
        } else if ((value = assigned(argument, "--persistence-mode"))) {
            options.action = PERSISTENCE;
            options.mode = value;
        } else if ((value = assigned(argument, "--loop-ms"))) {
            options.loop_ms = strtol(value, NULL, 10);
        } else if ((value = assigned(argument, "--loop"))) {
            options.loop_ms = 1000 * strtol(value, NULL, 10);
        } else if (takes_next && strcmp(argument, "-i") == 0) {
            options.device = argv[++i];
        } else if (takes_next && strcmp(argument, "-pm") == 0) {
            options.action = PERSISTENCE;
            options.mode = argv[++i];
        } else if (takes_next && strcmp(argument, "-lms") == 0) {
            options.loop_ms = strtol(argv[++i], NULL, 10);
        } else if (takes_next && strcmp(argument, "-l") == 0) {
            options.loop_ms = 1000 * strtol(argv[++i], NULL, 10);
        } else {
            refuse(argument);
        }
    }
    if (options.query || options.xml) {
        if (!options.xml || !options.query || options.action != TABLE)
            refuse(options.xml ? "-x without -q" : "-q without -x");
        options.action = XML;
    }
    return options;
}

static struct csv parse_format(char *formats)
{
    struct csv csv = {.header = true, .units = true};
    char *rest = NULL;
    bool found = false;
    for (char *word = formats ? strtok_r(formats, ", ", &rest) : NULL; word; word = strtok_r(NULL, ", ", &rest)) {
        if (strcmp(word, "csv") == 0)
            found = true;
        else if (strcmp(word, "noheader") == 0)
            csv.header = false;
        else if (strcmp(word, "nounits") == 0)
            csv.units = false;
        else
            refuse(word);
    }
    if (!found)
        fail(EXIT_INVALID_ARGUMENT, "--query-* needs --format=csv[,noheader][,nounits]. Please run 'nvidia-smi -h' for help.\n");
    return csv;
}

static void act(const struct options *options, struct columns *columns, const struct csv *csv)
{
    switch (options->action) {
    case LIST:
        printf("GPU 0: %s (UUID: %s)\n", value_of("name"), value_of("uuid"));
        break;
    case XML:
        print_xml();
        break;
    case QUERY_GPU:
        query_gpu(columns, csv);
        break;
    case QUERY_APPS:
        query_apps(columns, csv);
        break;
    case PERSISTENCE:
        set_persistence(options->mode);
        break;
    default:
        print_table();
    }
    fflush(stdout);
}

int main(int argc, char **argv)
{
    struct options options = parse(argc, argv);
    struct columns columns = {0};
    struct csv csv = {0};
    if (options.fields) {
        csv = parse_format(options.formats);
        split(options.fields, &columns);
    }
    load_library();
    if (options.action == VERSION) {
        print_version();
        return EXIT_OK;
    }
    initialise();
    select_gpu(options.device, options.action == LIST ? "No devices found." : "No devices were found");
    act(&options, &columns, &csv);
    while (options.loop_ms > 0) {
        struct timespec nap = {.tv_sec = options.loop_ms / 1000, .tv_nsec = options.loop_ms % 1000 * 1000000};
        nanosleep(&nap, NULL);
        csv.header = false;
        act(&options, &columns, &csv);
    }
    return EXIT_OK;
}
