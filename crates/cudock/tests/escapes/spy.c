/* Watches every process that joins its pid namespace, and says what it sees of the machine outside: another root or
 * directory, a file there (the first argument), more capabilities than its own, and any of the texts that no process
 * inside may show (the other arguments). Ends with SIGTERM. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static volatile sig_atomic_t over;
static void end(int number) { (void)number; over = 1; }

static char text[1 << 20];

static ssize_t read_file(const char *path) {
    int file = open(path, O_RDONLY);
    if (file < 0) return -1;
    ssize_t size = 0, got;
    while (size < (ssize_t)sizeof text - 1 && (got = read(file, text + size, sizeof text - 1 - size)) > 0) size += got;
    close(file);
    text[size] = 0;
    return size;
}

static unsigned long long capabilities(const char *path) {
    if (read_file(path) <= 0) return 0;
    char *line = strstr(text, "CapPrm:");
    return line ? strtoull(line + 7, 0, 16) : 0;
}

static void search(int pid, const char *what, ssize_t size, int count, char **words) {
    for (int word = 2; word < count; word++)
        if (size > 0 && memmem(text, size, words[word], strlen(words[word])))
            printf("LEAK of %d: %s holds %s\n", pid, what, words[word]);
}

int main(int count, char **words) {
    char path[4200];
    struct stat own, seen;
    long joined = 0, caught = 0;
    signal(SIGTERM, end);
    setvbuf(stdout, 0, _IOLBF, 0);
    stat("/", &own);
    unsigned long long mine = capabilities("/proc/self/status");
    int last = getpid();
    puts("watching");
    while (!over) for (int pid = last + 1; pid < last + 12 && !over; pid++) {
        snprintf(path, sizeof path, "/proc/%d", pid);
        if (access(path, F_OK)) continue;
        joined++;
        int early = 0;
        for (int round = 0; !over; round++) {
            static const char *const links[] = {"root", "cwd"};
            for (int link = 0; link < 2; link++) {
                snprintf(path, sizeof path, "/proc/%d/%s/", pid, links[link]);
                if (stat(path, &seen) == 0 && link == 0 && (seen.st_dev != own.st_dev || seen.st_ino != own.st_ino))
                    printf("OUTSIDE by root of %d\n", pid);
                snprintf(path, sizeof path, "/proc/%d/%s/%s", pid, links[link], words[1]);
                if (read_file(path) > 0) printf("READ by %s of %d: %s\n", links[link], pid, text);
            }
            snprintf(path, sizeof path, "/proc/%d/status", pid);
            if (capabilities(path) & ~mine) printf("RIGHTS of %d\n", pid);
            static const char *const files[] = {"environ", "cmdline", "maps", "mountinfo"};
            for (int file = 0; file < 3; file++) {
                snprintf(path, sizeof path, "/proc/%d/%s", pid, files[file]);
                search(pid, files[file], read_file(path), count, words);
            }
            for (int number = -1; number < 24; number++) {
                if (number < 0) snprintf(path, sizeof path, "/proc/%d/exe", pid);
                else snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, number);
                ssize_t size = readlink(path, text, 4095);
                if (number < 0 && size > 0) { text[size] = 0; if (!strstr(text, "busybox")) early = 1; }
                search(pid, path, size, count, words);
            }
            snprintf(path, sizeof path, "/proc/%d/exe", pid);
            ssize_t size = readlink(path, text, 4095);
            if (size < 0 && errno != EACCES) break;
            if (size > 0) { text[size] = 0; if (strstr(text, "busybox")) break; }
        }
        caught += early;
        if (joined % 10 == 0) printf("so far %ld\n", joined);
        last = pid;
    }
    printf("joined %ld, early %ld\n", joined, caught);
    return 0;
}
