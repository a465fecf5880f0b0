#include "gpu.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum access gpu_access(const char *node)
{
    int fd = open(node, O_RDWR | O_CLOEXEC);
    if (fd >= 0) {
        close(fd);
        return ACCESS_OK;
    }
    if (errno == ENXIO)
        return ACCESS_OK;
    return errno == EPERM || errno == EACCES ? ACCESS_DENIED : ACCESS_MISSING;
}

/* Whole file as a string without the final newline; false when it cannot be read. */
static bool slurp(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t length = read(fd, text, size - 1);
    close(fd);
    if (length < 0)
        return false;
    text[length] = '\0';
    if (length > 0 && text[length - 1] == '\n')
        text[length - 1] = '\0';
    return true;
}

/* The version is the first word that begins with a digit and has a dot in it: "… Module for x86_64  595.91.07  Release Build …". */
static void module_version(char *version, size_t size)
{
    char text[512], *rest = NULL;
    version[0] = '\0';
    if (!slurp(PROC_VERSION, text, sizeof text))
        return;
    for (char *word = strtok_r(text, " \t\n", &rest); word; word = strtok_r(NULL, " \t\n", &rest)) {
        if (word[0] >= '0' && word[0] <= '9' && strchr(word, '.')) {
            snprintf(version, size, "%s", word);
            return;
        }
    }
}

static size_t append(char *text, size_t size, size_t at, const char *line)
{
    size_t length = strlen(line);
    if (at + length + 1 >= size)
        return at;
    memcpy(text + at, line, length);
    text[at + length] = '\n';
    text[at + length + 1] = '\0';
    return at + length + 1;
}

/* One ledger entry, if a process still holds its lock. */
static bool ledger_entry(const char *name, char *line, size_t size)
{
    char path[512], entry[192];
    snprintf(path, sizeof path, "%s/ledger/%s", STATE_DIR, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool held = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    close(fd);
    if (!held || !slurp(path, entry, sizeof entry))
        return false;
    snprintf(line, size, "process %s %s", name, entry);
    return true;
}

static int not_hidden(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int by_process_id(const struct dirent **one, const struct dirent **other)
{
    return atoi((*one)->d_name) - atoi((*other)->d_name);
}

size_t gpu_write_state(char *text, size_t size)
{
    char value[4096], line[512], version[32];
    size_t at = 0;
    text[0] = '\0';
    module_version(version, sizeof version);
    snprintf(line, sizeof line, "driver %s", version[0] ? version : "none");
    at = append(text, size, at, line);
    if (slurp(STATE_DIR "/persistence", value, sizeof value)) {
        snprintf(line, sizeof line, "persistence %.1s", value);
        at = append(text, size, at, line);
    }
    if (slurp(STATE_DIR "/faults", value, sizeof value)) {
        char *rest = NULL;
        for (char *fault = strtok_r(value, "\n", &rest); fault; fault = strtok_r(NULL, "\n", &rest)) {
            snprintf(line, sizeof line, "fault %.64s", fault);
            at = append(text, size, at, line);
        }
    }
    struct dirent **entries = NULL;
    int count = scandir(STATE_DIR "/ledger", &entries, not_hidden, by_process_id);
    for (int i = 0; i < count; i++) {
        if (ledger_entry(entries[i]->d_name, line, sizeof line))
            at = append(text, size, at, line);
        free(entries[i]);
    }
    free(entries);
    return at;
}

static bool ask_socket(char *text, size_t size)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = STATE_SOCKET};
    struct timeval limit = {.tv_sec = 1};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    size_t at = 0;
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0) {
        ssize_t got;
        while (at < size - 1 && (got = read(fd, text + at, size - 1 - at)) > 0)
            at += (size_t)got;
    }
    close(fd);
    text[at] = '\0';
    return at > 0;
}

static void parse_line(struct gpu_state *state, const char *line)
{
    struct gpu_process process = {0};
    unsigned int code = 0;
    if (strncmp(line, "driver ", 7) == 0) {
        state->loaded = strcmp(line + 7, "none") != 0;
        if (state->loaded)
            snprintf(state->driver, sizeof state->driver, "%s", line + 7);
    } else if (strcmp(line, "persistence 1") == 0) {
        state->persistence = true;
    } else if (strcmp(line, "fault lost") == 0) {
        state->lost = true;
    } else if (strcmp(line, "fault no-permission") == 0) {
        state->no_permission = true;
    } else if (sscanf(line, "fault xid %u", &code) == 1) {
        state->xids++;
        state->xid = code;
    } else if (sscanf(line, "process %u %u %127[^\n]", &process.pid, &process.mib, process.name) == 3) {
        if (state->processes < MAX_PROCESSES)
            state->process[state->processes++] = process;
    }
}

void gpu_read_state(struct gpu_state *state)
{
    char text[16384], *rest = NULL;
    struct stat info;
    memset(state, 0, sizeof *state);
    state->loaded = true;
    state->remote = stat(STATE_DIR, &info) != 0;
    if (!state->remote)
        gpu_write_state(text, sizeof text);
    else if (!ask_socket(text, sizeof text))
        return;
    state->known = true;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        parse_line(state, line);
}

int gpu_set_persistence(bool on)
{
    int fd = open(STATE_DIR "/persistence", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return errno;
    bool written = write(fd, on ? "1\n" : "0\n", 2) == 2;
    int error = written ? 0 : errno;
    close(fd);
    return error;
}

unsigned int gpu_used_mib(const struct gpu_state *state)
{
    unsigned int sum = 0;
    for (size_t i = 0; i < state->processes; i++)
        sum += state->process[i].mib;
    return sum;
}
