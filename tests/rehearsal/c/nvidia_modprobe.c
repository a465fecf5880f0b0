/* nvidia-modprobe: load the modules and make the device nodes. Simulated: the nodes have real numbers and no driver. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#define NVIDIA_MAJOR 195
#define UVM_MAJOR 510

static bool loaded(const char *module)
{
    char path[128];
    snprintf(path, sizeof path, "/sys/module/%s", module);
    return access(path, F_OK) == 0;
}

static bool load(const char *module)
{
    if (loaded(module))
        return true;
    pid_t child = fork();
    if (child == 0) {
        execl("/sbin/modprobe", "modprobe", module, (char *)NULL);
        _exit(127);
    }
    int status = 0;
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0 && loaded(module);
}

static bool node(const char *path, unsigned int major_number, unsigned int minor_number)
{
    struct stat info;
    dev_t wanted = makedev(major_number, minor_number);
    if (stat(path, &info) == 0 && S_ISCHR(info.st_mode) && info.st_rdev == wanted)
        return true;
    unlink(path);
    if (mknod(path, S_IFCHR | 0666, wanted) != 0) {
        perror(path);
        return false;
    }
    return chmod(path, 0666) == 0;
}

int main(int argc, char **argv)
{
    bool unified = false, made = true;
    int minor_number = -1, option;
    while ((option = getopt(argc, argv, "c:ulsvh")) != -1) {
        if (option == 'c')
            minor_number = atoi(optarg);
        else if (option == 'u')
            unified = true;
        else if (option == 'h' || option == '?') {
            printf("nvidia-modprobe (SIMULATED, gpunode rehearsal): -c MINOR  -u (unified memory)\n");
            return option == 'h' ? 0 : 1;
        }
    }
    if (!load("nvidia")) {
        fprintf(stderr, "nvidia-modprobe: the module nvidia cannot be loaded\n");
        return 1;
    }
    made = node("/dev/nvidiactl", NVIDIA_MAJOR, 255);
    if (minor_number == 0)
        made = node("/dev/nvidia0", NVIDIA_MAJOR, 0) && made;
    if (unified && load("nvidia_uvm")) {
        made = node("/dev/nvidia-uvm", UVM_MAJOR, 0) && made;
        made = node("/dev/nvidia-uvm-tools", UVM_MAJOR, 1) && made;
    }
    return made ? 0 : 1;
}
