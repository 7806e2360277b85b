/* Opens many streams of one event and reads them, in one thread:
 *
 *   build/bench/streams HOST PORT EVENT N SECONDS [AFTER]
 *
 * HOST is an IPv4 address, PORT the port of the streams.  The streams ask for gzip, as browsers do.
 * The program counts the bytes of all streams and decompresses the first one to count messages and
 * changes. It prints one line per second, and the totals at the end or at SIGTERM.  It exits with 1
 * if a stream could not be opened or was cut.  N is limited by `ulimit -n` and by the ephemeral
 * ports of one address (28,000). */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#define READY_MAX 512
#define CONNECT_AT_ONCE 200
#define CONNECT_WITHIN_MS 60000

struct counts {
    uint64_t messages, changes; /* of the first stream */
    uint64_t bytes;             /* of all */
    int open, ended;
};

static int epoll_fd, first_fd = -1;
static bool *seen; /* per file descriptor: whether the answer has begun */
static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
    (void)number;
    stopped = 1;
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void connect_one(const struct sockaddr_in *to, const char *request, int files_max)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || fd >= files_max)
        die("socket");
    if (first_fd < 0)
        first_fd = fd;
    if (connect(fd, (const struct sockaddr *)to, sizeof *to) != 0)
        die("connect");
    if (send(fd, request, strlen(request), MSG_NOSIGNAL) != (ssize_t)strlen(request))
        die("send");
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0)
        die("epoll_ctl");
}

/* Counts the occurrences of a text in data that arrives in parts. */
struct mark {
    const char *text;
    size_t at; /* length of the prefix that the last bytes match */
};

static uint64_t count_mark(struct mark *m, const char *data, size_t len)
{
    uint64_t n = 0;
    for (size_t i = 0; i < len; i++) {
        m->at = data[i] == m->text[m->at] ? m->at + 1 : data[i] == m->text[0];
        if (!m->text[m->at]) {
            n++;
            m->at = 0;
        }
    }
    return n;
}

/* Decodes chunks as they arrive: size in hex, CRLF, data, CRLF. */
struct chunks {
    enum { SIZE, SIZE_LF, DATA, DATA_CR, DATA_LF } state;
    size_t left;
};

static void unpack(const char *data, size_t len, struct counts *c)
{
    static z_stream z;
    static bool begun;
    static struct mark message = {"\nevent: ", 0}, change = {"[\"", 0};
    static char out[262144];
    if (!begun && inflateInit2(&z, 15 + 16) != Z_OK)
        die("inflateInit2");
    begun = true;
    z.next_in = (Bytef *)(uintptr_t)data;
    z.avail_in = (uInt)len;
    do {
        z.next_out = (Bytef *)out;
        z.avail_out = sizeof out;
        int rc = inflate(&z, Z_SYNC_FLUSH);
        if (rc != Z_OK && rc != Z_BUF_ERROR)
            die("inflate");
        c->messages += count_mark(&message, out, sizeof out - z.avail_out);
        c->changes += count_mark(&change, out, sizeof out - z.avail_out);
    } while (z.avail_out == 0);
}

static void read_first(const char *data, size_t len, struct counts *c)
{
    static struct chunks k;
    for (size_t i = 0; i < len;) {
        char byte = data[i];
        if (k.state == DATA) {
            size_t n = len - i < k.left ? len - i : k.left;
            unpack(data + i, n, c);
            i += n;
            k.left -= n;
            k.state = k.left ? DATA : DATA_CR;
            continue;
        }
        i++;
        if (k.state == SIZE && byte != '\r')
            k.left = k.left * 16 + (size_t)(byte <= '9' ? byte - '0' : (byte | 0x20) - 'a' + 10);
        else
            k.state = k.state == DATA_LF ? SIZE : k.state + 1;
    }
}

static void read_one(int fd, struct counts *c)
{
    static char data[65536];
    static bool head_passed;
    ssize_t n = recv(fd, data, sizeof data, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        c->ended++;
        c->open -= seen[fd];
        close(fd);
        return;
    }
    if (!seen[fd]) {
        seen[fd] = true;
        c->open++;
        if (n < 12 || memcmp(data + 8, " 200", 4) != 0) {
            (void)fprintf(stderr, "streams: %.*s\n", n < 200 ? (int)n : 200, data);
            exit(1);
        }
    }
    c->bytes += (uint64_t)n;
    if (fd != first_fd)
        return;
    const char *body = head_passed ? data : memmem(data, (size_t)n, "\r\n\r\n", 4);
    if (!body)
        die("the head of an answer came in parts");
    body += head_passed ? 0 : 4;
    head_passed = true;
    read_first(body, (size_t)(data + n - body), c);
}

static void read_until(int64_t until_ms, int open_wanted, struct counts *c)
{
    struct epoll_event ready[READY_MAX];
    for (int64_t left;
         (left = until_ms - now_ms()) > 0 && c->open + c->ended < open_wanted && !stopped;) {
        int n = epoll_wait(epoll_fd, ready, READY_MAX, (int)left);
        for (int i = 0; i < n; i++)
            read_one(ready[i].data.fd, c);
    }
}

static void open_all(const struct sockaddr_in *to, const char *request, int n, int files_max,
                     struct counts *c)
{
    int64_t until_ms = now_ms() + CONNECT_WITHIN_MS;
    for (int opened = 0; opened < n;) {
        for (int i = 0; i < CONNECT_AT_ONCE && opened < n; i++, opened++)
            connect_one(to, request, files_max);
        read_until(until_ms, opened, c);
    }
    if (c->open < n) {
        (void)fprintf(stderr, "streams: only %d of %d are open\n", c->open, n);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    if (argc < 6) {
        (void)fprintf(stderr, "usage: streams HOST PORT EVENT N SECONDS [AFTER]\n");
        return 64;
    }
    const int n = atoi(argv[4]), seconds = atoi(argv[5]);
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        die("getrlimit");
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files);
    int files_max = n + 64;
    seen = calloc((size_t)files_max, sizeof *seen);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[2]))};
    char request[512];
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (!seen || epoll_fd < 0 || inet_pton(AF_INET, argv[1], &to.sin_addr) != 1)
        die("streams");
    (void)snprintf(request, sizeof request,
                   "GET /v1/events/%.64s/stream%s%.20s HTTP/1.1\r\nHost: %s\r\n"
                   "Accept: text/event-stream\r\nAccept-Encoding: gzip\r\n\r\n",
                   argv[3], argc > 6 ? "?after=" : "", argc > 6 ? argv[6] : "", argv[1]);

    struct counts c = {0}, last;
    (void)signal(SIGTERM, on_signal);
    int64_t begun_ms = now_ms();
    open_all(&to, request, n, files_max, &c);
    printf("open %d in %lld ms\n", c.open, (long long)(now_ms() - begun_ms));
    (void)fflush(stdout);
    struct counts start = c;
    for (int i = 0; i < seconds && !stopped; i++) {
        last = c;
        read_until(now_ms() + 1000, INT32_MAX, &c);
        printf("open %d messages/s %llu bytes/s %llu\n", c.open,
               (unsigned long long)(c.messages - last.messages),
               (unsigned long long)(c.bytes - last.bytes));
        (void)fflush(stdout);
    }
    printf("total open %d cut %d messages %llu bytes %llu changes %llu\n", c.open, c.ended,
           (unsigned long long)(c.messages - start.messages),
           (unsigned long long)(c.bytes - start.bytes),
           (unsigned long long)(c.changes - start.changes));
    return c.ended > 0;
}
