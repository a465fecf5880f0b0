/*
 * modprobe, rmmod and lsmod of the simulated machine.
 *
 * Everything is left to the real tools, which also find the module file, its dependencies, aliases and blacklists. Only the
 * last step is taken here, for modules named nvidia*: instead of handing the file to the kernel, what the kernel would show
 * of it is written below /sys/module and /proc/driver (tmpfs, made by the machine's hardware unit).
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define KMOD "/bin/kmod"
#define MODULES "/sys/module"
#define REAL_MODULES "/run/rehearsal-hardware/sys-module"
#define PROC_DRIVER "/proc/driver/nvidia"
#define PROC_DEVICES "/run/rehearsal-hardware/proc-devices"
#define STATE_DIR "/run/nvidia-sim"
#define PCI_DEVICE "/sys/bus/pci/devices/0000:00:03.0"
#define NODE_MAKER "/usr/bin/nvidia-modprobe"
#define MAX_ARGUMENTS 64

/* Run a tool of kmod under its own name and wait; its standard output goes to `output` when that is given. */
static int run_kmod(char *const arguments[], char *output, size_t size)
{
    int ends[2] = {-1, -1};
    if (output && pipe2(ends, O_CLOEXEC) != 0)
        return 1;
    pid_t child = fork();
    if (child == 0) {
        if (output) {
            dup2(ends[1], STDOUT_FILENO);
            int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
            dup2(null, STDERR_FILENO);
        }
        execv(KMOD, arguments);
        _exit(127);
    }
    if (output) {
        size_t at = 0;
        ssize_t got;
        close(ends[1]);
        while ((got = read(ends[0], output + at, size - 1 - at)) > 0)
            at += (size_t)got;
        output[at] = '\0';
        close(ends[0]);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) < 0)
        return 1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static void write_file(const char *path, const char *format, ...)
{
    va_list arguments;
    FILE *file = fopen(path, "we");
    if (!file) {
        fprintf(stderr, "simulated kernel: cannot write %s: %s\n", path, strerror(errno));
        exit(1);
    }
    va_start(arguments, format);
    vfprintf(file, format, arguments);
    va_end(arguments);
    fclose(file);
}

static void remove_tree(const char *path)
{
    DIR *folder = opendir(path);
    if (folder) {
        for (struct dirent *entry; (entry = readdir(folder));) {
            char child[1024];
            if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
                continue;
            snprintf(child, sizeof child, "%s/%s", path, entry->d_name);
            if (entry->d_type == DT_DIR)
                remove_tree(child);
            else
                unlink(child);
        }
        closedir(folder);
    }
    rmdir(path);
}

static bool is_nvidia(const char *name)
{
    return strncmp(name, "nvidia", 6) == 0;
}

/* "/lib/modules/…/nvidia-uvm.ko" -> "nvidia_uvm", as the kernel spells it. */
static void module_name(const char *path, char *name, size_t size)
{
    const char *base = strrchr(path, '/');
    snprintf(name, size, "%s", base ? base + 1 : path);
    name[strcspn(name, ". \n")] = '\0';
    for (char *at = name; *at; at++)
        if (*at == '-')
            *at = '_';
}

static bool loaded(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, MODULES "/%s", name);
    return access(path, F_OK) == 0;
}

static void modinfo(const char *module, const char *field, char *value, size_t size)
{
    char *arguments[] = {"modinfo", "-F", (char *)field, (char *)module, NULL};
    run_kmod(arguments, value, size);
    value[strcspn(value, "\n")] = '\0';
}

/* Character device numbers of a driver, as /proc/devices lists them once it is loaded. */
static void list_device(const char *line, bool present)
{
    char text[8192] = "", wanted[64];
    FILE *file = fopen(PROC_DEVICES, "re");
    if (!file)
        return;
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = '\0';
    snprintf(wanted, sizeof wanted, "%s\n", line);
    char *at = strstr(text, wanted);
    if (present == (at != NULL))
        return;
    /* Written in place: the file is bind-mounted over /proc/devices. */
    if (at) {
        memmove(at, at + strlen(wanted), strlen(at + strlen(wanted)) + 1);
        write_file(PROC_DEVICES, "%s", text);
    } else {
        char *blocks = strstr(text, "\nBlock devices:");
        int head = blocks ? (int)(blocks - text) : (int)length;
        write_file(PROC_DEVICES, "%.*s%s%s", head, text, wanted, text + head);
    }
}

static void show_nvidia(const char *version, const char *license)
{
    bool open_module = strcmp(license, "NVIDIA") != 0;
    mkdir("/proc/driver", 0555);
    mkdir(PROC_DRIVER, 0555);
    write_file(PROC_DRIVER "/version",
               "NVRM version: NVIDIA UNIX %s  %s  Release Build  (rehearsal@simulated)  \n"
               "GCC version:  gcc version 12.2.0 (Debian 12.2.0-14+deb12u1) \n",
               open_module ? "Open Kernel Module for x86_64" : "x86_64 Kernel Module", version);
    /* No params file: the toolkit's hook would look for it in each container's own /proc, where only a real driver puts it. */
    mkdir(PROC_DRIVER "/gpus", 0555);
    mkdir(PROC_DRIVER "/gpus/0000:00:03.0", 0555);
    write_file(PROC_DRIVER "/gpus/0000:00:03.0/information",
               "Model: \t\t NVIDIA L4\nIRQ:   \t\t 0\nGPU UUID: \t GPU-4c4c4c4c-0000-4000-8000-000000000001\n"
               "Video BIOS: \t SIMULATED\nBus Type: \t PCIe\nDMA Size: \t 47 bits\nDMA Mask: \t 0x7fffffffffff\n"
               "Bus Location: \t 0000:00:03.0\nDevice Minor: \t 0\nGPU Firmware: \t %s\nGPU Excluded:\t No\n",
               version);
    mkdir(STATE_DIR, 0755);
    write_file(STATE_DIR "/persistence", "0\n");
    mkdir(MODULES "/nvidia/drivers", 0755);
    mkdir(MODULES "/nvidia/drivers/nvidia", 0755);
    symlink(MODULES "/nvidia/drivers/nvidia", PCI_DEVICE "/driver");
    list_device("195 nvidia", true);
    list_device("195 nvidiactl", true);
}

static void hide_nvidia(void)
{
    const char *nodes[] = {"/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-modeset", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"};
    remove_tree(PROC_DRIVER);
    remove_tree(STATE_DIR);
    unlink(PCI_DEVICE "/driver");
    for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; i++)
        unlink(nodes[i]);
    list_device("195 nvidia", false);
    list_device("195 nvidiactl", false);
}

static void run(char *const arguments[])
{
    pid_t child = fork();
    if (child == 0) {
        int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        dup2(null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
        execv(arguments[0], arguments);
        _exit(127);
    }
    if (child > 0)
        waitpid(child, NULL, 0);
}

/* What udev does when the module appears, by the rules that the driver and the container toolkit bring. */
static void run_udev_rules(void)
{
    char *nodes[] = {NODE_MAKER, "-c0", "-u", NULL};
    char *refresh[] = {"/bin/systemctl", "--no-block", "start", "nvidia-cdi-refresh.service", NULL};
    run(nodes);
    if (access("/lib/udev/rules.d/99-nvidia-cdi-refresh.rules", F_OK) == 0)
        run(refresh);
}

static void set_reference_count(void)
{
    if (loaded("nvidia"))
        write_file(MODULES "/nvidia/refcnt", "%d\n", loaded("nvidia_uvm") ? 1 : 0);
}

static void load(const char *path)
{
    char name[128], folder[256], file[512], version[128], license[128];
    module_name(path, name, sizeof name);
    if (loaded(name))
        return;
    modinfo(path, "version", version, sizeof version);
    modinfo(path, "license", license, sizeof license);
    snprintf(folder, sizeof folder, MODULES "/%s", name);
    if (mkdir(folder, 0755) != 0) {
        fprintf(stderr, "modprobe: ERROR: could not insert '%s': %s (simulated kernel, %s)\n", name, strerror(errno), folder);
        exit(1);
    }
    snprintf(file, sizeof file, "%s/version", folder);
    write_file(file, "%s\n", version);
    snprintf(file, sizeof file, "%s/refcnt", folder);
    write_file(file, "0\n");
    snprintf(file, sizeof file, "%s/initstate", folder);
    write_file(file, "live\n");
    snprintf(file, sizeof file, "%s/taint", folder);
    write_file(file, "OE\n");
    snprintf(file, sizeof file, "%s/holders", folder);
    mkdir(file, 0755);
    if (strcmp(name, "nvidia") == 0) {
        show_nvidia(version, license);
        run_udev_rules();
    }
    if (strcmp(name, "nvidia_uvm") == 0) {
        symlink(MODULES "/nvidia_uvm", MODULES "/nvidia/holders/nvidia_uvm");
        list_device("510 nvidia-uvm", true);
        run_udev_rules();
    }
    set_reference_count();
}

static void unload(const char *name)
{
    char folder[256];
    snprintf(folder, sizeof folder, MODULES "/%s", name);
    if (strcmp(name, "nvidia_uvm") == 0) {
        unlink(MODULES "/nvidia/holders/nvidia_uvm");
        list_device("510 nvidia-uvm", false);
    }
    if (strcmp(name, "nvidia") == 0)
        hide_nvidia();
    remove_tree(folder);
    set_reference_count();
}

/* A real module may have appeared: show its folder beside the simulated ones. */
static void link_real_modules(void)
{
    DIR *folder = opendir(REAL_MODULES);
    if (!folder)
        return;
    for (struct dirent *entry; (entry = readdir(folder));) {
        char target[512], link_path[512];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(target, sizeof target, REAL_MODULES "/%s", entry->d_name);
        snprintf(link_path, sizeof link_path, MODULES "/%s", entry->d_name);
        symlink(target, link_path);
    }
    closedir(folder);
}

/* Is this a group of one-letter options? Letters after -C, -d and -S are a value. */
static bool letters(const char *word)
{
    return word[0] == '-' && word[1] != '-' && word[1] != '\0' && !strchr("CdS", word[1]);
}

/* Is an option given, alone ("-r", "--remove") or among other letters ("-rq")? */
static bool given(int count, char **words, char letter, const char *name)
{
    for (int i = 1; i < count; i++) {
        if (strcmp(words[i], name) == 0 || (letters(words[i]) && strchr(words[i], letter)))
            return true;
    }
    return false;
}

static int run_real(char *name, char **words)
{
    words[0] = name;
    int code = run_kmod(words, NULL, 0);
    link_real_modules();
    return code;
}

/* modprobe -r takes what hangs on a module (uvm is a soft dependency) and what is then unused: all of NVIDIA's or nothing. */
static int remove_modules(int count, char **words)
{
    bool simulated = false;
    int kept = 1;
    for (int i = 1; i < count; i++) {
        char name[128];
        module_name(words[i], name, sizeof name);
        if (words[i][0] != '-' && is_nvidia(name))
            simulated = true;
        else
            words[kept++] = words[i];
    }
    bool others = false;
    for (int i = 1; i < kept; i++)
        others = others || words[i][0] != '-';
    words[kept] = NULL;
    if (simulated && loaded("nvidia_uvm"))
        unload("nvidia_uvm");
    if (simulated && loaded("nvidia"))
        unload("nvidia");
    return others || !simulated ? run_real("modprobe", words) : 0;
}

/* What the real tool would hand to the kernel, one "insmod <file>" a line, in order; false when it would refuse. */
static bool dry_run(int count, char **words, char *plan, size_t size)
{
    char *arguments[MAX_ARGUMENTS + 3];
    int at = 0;
    arguments[at++] = "modprobe";
    arguments[at++] = "-nv";
    for (int i = 1; i < count && i < MAX_ARGUMENTS; i++) {
        /* A quiet dry run would print nothing. */
        char *word = strdup(words[i]), *quiet;
        while (letters(word) && (quiet = strchr(word, 'q')))
            memmove(quiet, quiet + 1, strlen(quiet));
        if (strcmp(word, "-") != 0 && strcmp(word, "--quiet") != 0)
            arguments[at++] = word;
    }
    arguments[at] = NULL;
    return run_kmod(arguments, plan, size) == 0;
}

static int insert_modules(int count, char **words)
{
    char plan[65536], *rest = NULL;
    bool simulated = false;
    int code = 0;
    if (dry_run(count, words, plan, sizeof plan)) {
        char *copy = strdup(plan);
        for (char *line = strtok_r(copy, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
            char name[128], *space = strchr(line, ' ');
            if (!space)
                continue;
            module_name(space + 1, name, sizeof name);
            simulated = simulated || is_nvidia(name);
        }
        free(copy);
    }
    if (!simulated)
        return run_real("modprobe", words);
    for (char *line = strtok_r(plan, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char name[128], *space = strchr(line, ' ');
        if (!space)
            continue;
        module_name(space + 1, name, sizeof name);
        char *real[] = {"modprobe", name, NULL};
        if (!is_nvidia(name)) {
            code = run_kmod(real, NULL, 0) ? 1 : code;
        } else {
            space[1 + strcspn(space + 1, " ")] = '\0';
            load(space + 1);
        }
    }
    return code;
}

static int modprobe(int count, char **words)
{
    bool only_shown = given(count, words, 'n', "--dry-run") || given(count, words, 'n', "--show") ||
                      given(count, words, 'D', "--show-depends") || given(count, words, 'R', "--resolve-alias") ||
                      given(count, words, 'c', "--showconfig");
    if (only_shown)
        return run_real("modprobe", words);
    return given(count, words, 'r', "--remove") ? remove_modules(count, words) : insert_modules(count, words);
}

static int rmmod(int count, char **words)
{
    int code = 0;
    for (int i = 1; i < count; i++) {
        char name[128];
        if (words[i][0] == '-')
            continue;
        module_name(words[i], name, sizeof name);
        if (!is_nvidia(name)) {
            char *real[] = {"rmmod", words[i], NULL};
            code = run_kmod(real, NULL, 0) ? 1 : code;
        } else if (!loaded(name)) {
            fprintf(stderr, "rmmod: ERROR: Module %s is not currently loaded\n", name);
            code = 1;
        } else if (strcmp(name, "nvidia") == 0 && loaded("nvidia_uvm")) {
            fprintf(stderr, "rmmod: ERROR: Module nvidia is in use by: nvidia_uvm\n");
            code = 1;
        } else {
            unload(name);
        }
    }
    return code;
}

static int lsmod(void)
{
    char real[65536] = "", *arguments[] = {"lsmod", NULL};
    /* A kernel without loadable modules has no /proc/modules, and the real tool fails. */
    if (access("/proc/modules", R_OK) == 0)
        run_kmod(arguments, real, sizeof real);
    printf("%s", real[0] ? real : "Module                  Size  Used by\n");
    if (loaded("nvidia_uvm"))
        printf("nvidia_uvm           2158592  0\n");
    if (loaded("nvidia"))
        printf("nvidia              14372864  %s\n", loaded("nvidia_uvm") ? "1 nvidia_uvm" : "0");
    return 0;
}

int main(int argc, char **argv)
{
    const char *name = strrchr(argv[0], '/');
    name = name ? name + 1 : argv[0];
    if (strcmp(name, "modprobe") == 0)
        return modprobe(argc, argv);
    if (strcmp(name, "rmmod") == 0)
        return rmmod(argc, argv);
    if (strcmp(name, "lsmod") == 0)
        return lsmod();
    fprintf(stderr, "%s: call this as modprobe, rmmod or lsmod\n", argv[0]);
    return 1;
}
