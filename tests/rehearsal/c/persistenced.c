/*
 * nvidia-persistenced: keeps the persistence mode while it runs.
 *
 * Its socket is the one thing that the toolkit mounts into every container that is given the GPU, so the simulated state of
 * the machine (loaded version, faults, memory in use) is told there to the libraries inside.
 */
#include "gpu.h"

#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>

#define RUN_DIR "/run/nvidia-persistenced"
#define PID_FILE RUN_DIR "/nvidia-persistenced.pid"

static volatile sig_atomic_t stopped;

static void stop(int signal_number)
{
    (void)signal_number;
    stopped = 1;
}

static _Noreturn void give_up(const char *reason)
{
    syslog(LOG_ERR, "Failed to initialize: %s", reason);
    fprintf(stderr, "nvidia-persistenced failed to initialize. Check syslog for more details.\n");
    exit(EXIT_FAILURE);
}

static void load_driver(void)
{
    pid_t child = fork();
    if (child == 0) {
        execl("/usr/bin/nvidia-modprobe", "nvidia-modprobe", "-c0", "-u", (char *)NULL);
        _exit(127);
    }
    if (child > 0)
        waitpid(child, NULL, 0);
    if (gpu_access("/dev/nvidiactl") != ACCESS_OK)
        give_up("Failed to query NVIDIA devices. Please ensure that the NVIDIA device files (/dev/nvidia*) exist.");
}

static int listen_on_socket(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = STATE_SOCKET};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    unlink(STATE_SOCKET);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 64) != 0)
        give_up(strerror(errno));
    /* A container's process may run as any user. */
    chmod(STATE_SOCKET, 0666);
    return fd;
}

static void become(const char *user)
{
    struct passwd *entry = getpwnam(user);
    if (!entry)
        give_up("the user given with --user does not exist");
    if (chown(RUN_DIR, entry->pw_uid, entry->pw_gid) != 0 || chown(PID_FILE, entry->pw_uid, entry->pw_gid) != 0 ||
        chown(STATE_SOCKET, entry->pw_uid, entry->pw_gid) != 0 || chown(STATE_DIR "/persistence", entry->pw_uid, entry->pw_gid) != 0)
        give_up(strerror(errno));
    if (initgroups(user, entry->pw_gid) != 0 || setgid(entry->pw_gid) != 0 || setuid(entry->pw_uid) != 0)
        give_up(strerror(errno));
}

static void serve(int listener)
{
    while (!stopped) {
        char text[16384];
        int client = accept(listener, NULL, NULL);
        if (client < 0)
            continue;
        size_t length = gpu_write_state(text, sizeof text);
        if (write(client, text, length) < 0)
            syslog(LOG_DEBUG, "a client went away");
        close(client);
    }
}

int main(int argc, char **argv)
{
    static const struct option OPTIONS[] = {
        {"persistence-mode", no_argument, NULL, 'p'}, {"no-persistence-mode", no_argument, NULL, 'n'},
        {"user", required_argument, NULL, 'u'},       {"group", required_argument, NULL, 'g'},
        {"verbose", no_argument, NULL, 'V'},          {"uvm-persistence-mode", no_argument, NULL, 'm'},
        {"version", no_argument, NULL, 'v'},          {NULL, 0, NULL, 0},
    };
    const char *user = NULL;
    bool on = true; /* the daemon's own default; distributions pass --no-persistence-mode */
    for (int option; (option = getopt_long(argc, argv, "u:g:Vv", OPTIONS, NULL)) != -1;) {
        if (option == 'v') {
            printf("nvidia-persistenced: version %s\n%s\n", DRIVER_VERSION, SIM_NOTICE);
            return EXIT_SUCCESS;
        }
        if (option == '?')
            return EXIT_FAILURE;
        if (option == 'p' || option == 'n')
            on = option == 'p';
        if (option == 'u')
            user = optarg;
    }
    openlog("nvidia-persistenced", LOG_PID, LOG_DAEMON);
    signal(SIGPIPE, SIG_IGN);
    load_driver();
    mkdir(RUN_DIR, 0755);
    int listener = listen_on_socket();
    if (gpu_set_persistence(on) != 0)
        give_up("cannot write the simulated driver's state in " STATE_DIR);
    FILE *pid_file = fopen(PID_FILE, "we");
    if (!pid_file)
        give_up(strerror(errno));
    pid_t daemon_pid = fork();
    if (daemon_pid < 0)
        give_up(strerror(errno));
    if (daemon_pid > 0) {
        fprintf(pid_file, "%d\n", (int)daemon_pid);
        fclose(pid_file);
        return EXIT_SUCCESS;
    }
    fclose(pid_file);
    setsid();
    struct sigaction action = {.sa_handler = stop};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    if (user)
        become(user);
    syslog(LOG_NOTICE, "Started (%d), persistence mode %s; %s", (int)getpid(), on ? "enabled" : "disabled", SIM_NOTICE);
    serve(listener);
    gpu_set_persistence(false);
    unlink(STATE_SOCKET);
    unlink(PID_FILE);
    syslog(LOG_NOTICE, "Shutdown (%d)", (int)getpid());
    return EXIT_SUCCESS;
}
