/* Looks at every other process of its pid namespace and reports what it sees of the host.
 *
 *     spy DIR
 *
 * DIR/secrets has the path of a file of the host in its first line, and in the others texts that only the host knows.
 * They are not arguments: the container's own command line may be known to every process that joins it.
 *
 * The spy looks when it is asked to: the test writes `l` to the FIFO DIR/ask and reads one line from DIR/answer, with the pids
 * that were looked at, a `+` after those whose root and memory could be read. `r` makes it look without pause, until `l`.
 * A line in DIR/leaks is something that no process in a container may show: another root, namespace or identity than its
 * own, an open file or directory, the file of the host, or one of the secrets, in memory or in /proc. */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_LEAKS 200
#define MAX_SECRETS 16

static const char *canary;
static char *secrets[MAX_SECRETS + 1];
static int leaks_fd;
static char buffer[1 << 20];

static void leak(int pid, const char *format, ...) {
    static int count;
    if (count++ >= MAX_LEAKS) return;
    dprintf(leaks_fd, "process %d: ", pid);
    va_list values;
    va_start(values, format);
    vdprintf(leaks_fd, format, values);
    va_end(values);
    dprintf(leaks_fd, "\n");
}

static const char *in_proc(int pid, const char *name) {
    static char path[4200];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    return path;
}

/* Reads a whole file into the buffer, and ends it with a zero. */
static ssize_t read_file(const char *path) {
    int file = open(path, O_RDONLY | O_NONBLOCK);
    if (file < 0) return -1;
    ssize_t size = 0, count;
    while (size < (ssize_t)sizeof buffer - 1 && (count = read(file, buffer + size, sizeof buffer - 1 - size)) > 0)
        size += count;
    close(file);
    buffer[size] = 0;
    return size;
}

static ssize_t read_link(const char *path) {
    ssize_t size = readlink(path, buffer, 4095);
    if (size >= 0) buffer[size] = 0;
    return size;
}

static void search(int pid, const char *where, ssize_t size) {
    for (char **secret = secrets; size > 0 && *secret; secret++)
        if (memmem(buffer, size, *secret, strlen(*secret))) leak(pid, "%s contains %s", where, *secret);
}

/* The root and the working directory, and the host's file through them. Returns whether they could be followed. */
static int look_at_directories(int pid) {
    static const char *const links[] = {"root", "cwd"};
    char name[4096];
    struct stat own, other;
    int followed = 0;
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "%s/", links[i]);
        if (stat(in_proc(pid, name), &other) == 0) {
            followed = 1;
            stat("/", &own);
            if (i == 0 && (own.st_dev != other.st_dev || own.st_ino != other.st_ino)) leak(pid, "its root is not ours");
        }
        snprintf(name, sizeof name, "%s/%s", links[i], canary);
        if (read_file(in_proc(pid, name)) > 0) leak(pid, "%s leads to %s: %s", links[i], canary, buffer);
        snprintf(name, sizeof name, "%s/../../../../../../..%s", links[i], canary);
        if (read_file(in_proc(pid, name)) > 0) leak(pid, "%s leads up to %s: %s", links[i], canary, buffer);
    }
    return followed;
}

static void look_at_namespaces(int pid) {
    static const char *const kinds[] = {"cgroup", "ipc", "mnt", "net", "pid", "pid_for_children", "user", "uts"};
    char name[64], own[128];
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        snprintf(name, sizeof name, "ns/%s", kinds[i]);
        if (read_link(in_proc(getpid(), name)) < 0) continue;
        snprintf(own, sizeof own, "%.120s", buffer);
        if (read_link(in_proc(pid, name)) > 0 && strcmp(own, buffer)) leak(pid, "its namespace is %s, ours %s", buffer, own);
    }
}

/* A line of the status that was just read, as a number of the given base. */
static unsigned long long status_value(const char *name, int base) {
    char *line = strstr(buffer, name);
    return line ? strtoull(line + strlen(name), 0, base) : 0;
}

/* Users, groups, capabilities and the system-call filter must not exceed our own. */
static void look_at_rights(int pid) {
    static const char *const sets[] = {"CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"};
    static const char *const ids[] = {"Uid:", "Gid:", "Groups:"};
    unsigned long long capabilities, seccomp, no_new_privileges;
    char own_ids[3][256];
    read_file("/proc/self/status");
    capabilities = status_value("CapBnd:", 16);
    seccomp = status_value("\nSeccomp:", 10);
    no_new_privileges = status_value("NoNewPrivs:", 10);
    for (int i = 0; i < 3; i++) sscanf(strstr(buffer, ids[i]), "%255[^\n]", own_ids[i]);
    if (read_file(in_proc(pid, "status")) <= 0) return;
    for (int i = 0; i < 5; i++)
        if (status_value(sets[i], 16) & ~capabilities) leak(pid, "%s exceeds %llx", sets[i], capabilities);
    if (status_value("\nSeccomp:", 10) != seccomp) leak(pid, "it has another system-call filter");
    if (status_value("NoNewPrivs:", 10) != no_new_privileges) leak(pid, "it may gain privileges");
    for (int i = 0; i < 3; i++) {
        char id[256] = "", *line = strstr(buffer, ids[i]);
        if (line) sscanf(line, "%255[^\n]", id);
        if (line && strcmp(id, own_ids[i])) leak(pid, "it has %s, we have %s", id, own_ids[i]);
    }
}

static void look_at_descriptors(int pid) {
    char name[300];
    struct stat about;
    DIR *descriptors = opendir(in_proc(pid, "fd"));
    if (!descriptors) return;
    for (struct dirent *entry; (entry = readdir(descriptors));) {
        if (!isdigit((unsigned char)entry->d_name[0])) continue;
        snprintf(name, sizeof name, "fd/%s", entry->d_name);
        search(pid, name, read_link(in_proc(pid, name)));
        if (stat(in_proc(pid, name), &about)) continue;
        /* Streams, and the pipe that errors are reported by. */
        if (!S_ISFIFO(about.st_mode) && !S_ISCHR(about.st_mode)) leak(pid, "%s is open: %s", name, buffer);
    }
    closedir(descriptors);
}

/* The files of the host that it runs from: none may be written to, nor lead to others of its file system. */
static void look_at_mapped_files(int pid) {
    char name[300];
    union { struct file_handle handle; char space[sizeof(struct file_handle) + MAX_HANDLE_SZ]; } its;
    DIR *mapped = opendir(in_proc(pid, "map_files"));
    if (!mapped) return;
    for (struct dirent *entry; (entry = readdir(mapped));) {
        if (entry->d_name[0] == '.') continue;
        snprintf(name, sizeof name, "map_files/%s", entry->d_name);
        int mount, file = open(in_proc(pid, name), O_WRONLY);
        if (file >= 0 && read_link(in_proc(pid, name)) >= 0) leak(pid, "%s can be written to", buffer);
        if (file >= 0) close(file);
        if ((file = open(in_proc(pid, name), O_RDONLY)) < 0) continue;
        its.handle.handle_bytes = MAX_HANDLE_SZ;
        if (name_to_handle_at(file, "", &its.handle, &mount, AT_EMPTY_PATH) == 0) {
            int other = open_by_handle_at(file, &its.handle, O_RDONLY);
            if (other >= 0 && read_link(in_proc(pid, name)) >= 0) leak(pid, "%s leads to its file system", buffer);
            if (other >= 0) close(other);
        }
        close(file);
    }
    closedir(mapped);
}

/* Everything that is not the contents of a file. Returns whether it could be read. */
static int look_at_memory(int pid) {
    static char maps[sizeof buffer];
    ssize_t size = read_file(in_proc(pid, "maps"));
    if (size <= 0) return 0;
    search(pid, "maps", size);
    memcpy(maps, buffer, size + 1);
    int memory = open(in_proc(pid, "mem"), O_RDONLY), count = 0;
    if (memory < 0) return 0;
    for (char *rest = maps, *line; (line = strsep(&rest, "\n"));) {
        unsigned long start, end, inode;
        char rights[8];
        if (sscanf(line, "%lx-%lx %7s %*s %*s %lu", &start, &end, rights, &inode) != 4) continue;
        if (rights[0] != 'r' || (inode && rights[1] != 'w')) continue;
        for (unsigned long at = start; at < end;) {
            unsigned long length = end - at < sizeof buffer ? end - at : sizeof buffer;
            ssize_t got = pread(memory, buffer, length, at);
            if (got <= 0) break;
            count++;
            search(pid, "its memory", got);
            /* A secret may lie across two pieces. */
            at += got == (ssize_t)sizeof buffer ? got - 4096 : got;
        }
    }
    close(memory);
    return count > 0;
}

static int look_at(int pid) {
    static const char *const files[] = {"environ", "cmdline", "stack"};
    int followed = look_at_directories(pid);
    look_at_namespaces(pid);
    look_at_rights(pid);
    for (unsigned i = 0; i < 3; i++) search(pid, files[i], read_file(in_proc(pid, files[i])));
    search(pid, "exe", read_link(in_proc(pid, "exe")));
    look_at_descriptors(pid);
    look_at_mapped_files(pid);
    return look_at_memory(pid) && followed;
}

/* Looks at all other processes, and writes which they were. */
static void look(char *answer, size_t size) {
    size_t used = 0;
    DIR *processes = opendir("/proc");
    for (struct dirent *entry; processes && (entry = readdir(processes));) {
        int pid = atoi(entry->d_name);
        if (pid <= 0 || pid == getpid()) continue;
        const char *mark = look_at(pid) ? "+" : "";
        if (used + 32 < size) used += snprintf(answer + used, size - used, "%d%s ", pid, mark);
    }
    if (processes) closedir(processes);
    snprintf(answer + used, size - used, "\n");
}

/* Waits for the file of secrets, which is complete once it is there. */
static void read_secrets(void) {
    while (read_file("secrets") <= 0) usleep(10000);
    char *rest = strdup(buffer), *line;
    canary = strsep(&rest, "\n");
    for (int i = 0; i < MAX_SECRETS && (line = strsep(&rest, "\n")); i++)
        if (*line) secrets[i] = line;
}

int main(int count, char **words) {
    static char answer[1 << 14];
    if (count != 2 || chdir(words[1])) return 2;
    umask(0);
    read_secrets();
    leaks_fd = open("leaks", O_WRONLY | O_CREAT | O_APPEND, 0666);
    mkfifo("ask", 0666);
    mkfifo("answer", 0666);
    int ask = open("ask", O_RDWR), reply = open("answer", O_RDWR);
    int ready = open("namespace.new", O_WRONLY | O_CREAT, 0666);
    if (leaks_fd < 0 || ask < 0 || reply < 0 || read_link("/proc/self/ns/pid") < 0) return 3;
    dprintf(ready, "%s", buffer);
    close(ready);
    rename("namespace.new", "namespace");
    for (int racing = 0;;) {
        struct pollfd asked = {.fd = ask, .events = POLLIN};
        char command;
        if (poll(&asked, 1, racing ? 0 : -1) > 0 && read(ask, &command, 1) == 1) {
            racing = command == 'r';
            look(answer, sizeof answer);
            dprintf(reply, "%s", answer);
        } else if (racing) {
            look(answer, sizeof answer);
        }
    }
}
