/*
 * The simulated GPU: one NVIDIA L4 that is not there.
 *
 * Whether a process may use it is decided by really opening the device nodes. No driver stands behind their numbers, so
 * open(2) answers ENXIO where the cgroup lets the process in and EPERM where it does not.
 */
#ifndef GPUNODE_SIM_GPU_H
#define GPUNODE_SIM_GPU_H

#include <stdbool.h>
#include <stddef.h>

#ifndef DRIVER_VERSION
#error "compile with -DDRIVER_VERSION"
#endif
#ifndef CUDA_MAJOR
#error "compile with -DCUDA_MAJOR and -DCUDA_MINOR"
#endif

#define SIM_NOTICE "SIMULATED GPU (gpunode rehearsal): no hardware is behind these figures"

#define SIM_NAME "NVIDIA L4"
#define SIM_UUID "GPU-4c4c4c4c-0000-4000-8000-000000000001"
#define SIM_SERIAL "0000000000000"
#define SIM_VBIOS "SIMULATED"
#define SIM_BUS_ID "00000000:00:03.0"
#define SIM_BUS_ID_LEGACY "0000:00:03.0"
#define SIM_PCI_DEVICE 3
#define SIM_PCI_DEVICE_ID 0x27B810DEu
#define SIM_PCI_SUBSYSTEM_ID 0x16CA10DEu

#define MIB (1024ull * 1024ull)
#define SIM_TOTAL_MIB 23034u
#define SIM_RESERVED_MIB 475u
#define SIM_CUDA_TOTAL_MIB (SIM_TOTAL_MIB - SIM_RESERVED_MIB)

/* Kept by the machine while the module is loaded; containers learn it through the socket that the toolkit injects. */
#define STATE_DIR "/run/nvidia-sim"
#define STATE_SOCKET "/run/nvidia-persistenced/socket"
#define PROC_VERSION "/proc/driver/nvidia/version"

enum access { ACCESS_OK, ACCESS_MISSING, ACCESS_DENIED };

struct gpu_process {
    unsigned int pid;
    unsigned int mib;
    char name[128];
};

#define MAX_PROCESSES 64

/*
 * What the driver would know.
 * STATE_DIR/persistence     "1" or "0"
 * STATE_DIR/faults          lines: "lost", "no-permission", "xid <code>" (each appended xid line is one event)
 * STATE_DIR/ledger/<pid>    "<MiB> <process name>", counted only while some process holds a flock on the file
 */
struct gpu_state {
    bool known;            /* false: neither the directory nor the socket could be reached */
    bool remote;           /* learnt through the socket: NVML cannot map the machine's process ids in a container */
    char driver[32];       /* version of the loaded module, empty when unknown */
    bool loaded;           /* is the module loaded (true when unknown: a container cannot see) */
    bool persistence;
    bool lost;
    bool no_permission;
    unsigned int xids;     /* number of xid events so far */
    unsigned int xid;      /* code of the last one */
    size_t processes;
    struct gpu_process process[MAX_PROCESSES];
};

/* Try open(2) on a device node. */
enum access gpu_access(const char *node);

/* Read the state from the machine's directory, or from the socket inside a container. */
void gpu_read_state(struct gpu_state *state);

/* Write the state of this machine as the text that the socket carries; returns the length. */
size_t gpu_write_state(char *text, size_t size);

/* Set the persistence mode; returns 0 or an errno value. */
int gpu_set_persistence(bool on);

unsigned int gpu_used_mib(const struct gpu_state *state);

#endif
