/* Opens many streams of one event and reads them, in one thread:
 *
 *   build/bench/streams [OPTION...] HOST PORT EVENT N SECONDS
 *
 *   --after SEQ      begin each stream after this change
 *   --sources N      connect from N addresses in turn; one address has 28,000 ports
 *   --changes N      do not ask for gzip; read every stream, and say when all have seen N changes
 *
 * HOST is an IPv4 address, PORT the port of the streams.  The streams ask for gzip, as browsers do.
 * The program counts the bytes of all streams and reads the first one to count messages and
 * changes. It prints one line per second, and the totals at the end or at SIGTERM.  It exits with 1
 * if a stream could not be opened or was cut.
 *
 * With --changes it reads all streams.  It prints `complete MS` (milliseconds since 1970) as soon
 * as the last one has its Nth change, and at the end the smallest and largest seq, number of
 * changes and digest of all streams.  A digest is the sum of the FNV-1a hashes of the changes, each
 * as it is between its brackets ("S1-A-1","h"), so it does not depend on their order. */
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>
#include <zlib.h>

#include "connections.h"

#define READY_MAX 512
#define CONNECT_AT_ONCE 200
#define CONNECT_WITHIN_MS 60000
#define FNV_OFFSET UINT64_C(0xcbf29ce484222325)
#define FNV_PRIME UINT64_C(0x100000001b3)

/* Where a reader is in an answer: the head, then chunks (size in hex, CRLF, data, CRLF), or plain
 * data up to the end of the connection. */
enum place { HEAD, SIZE, SIZE_LF, DATA, DATA_CR, DATA_LF, UNCHUNKED };

/* Finds a text in data that arrives in parts. */
struct mark {
    size_t at; /* length of the prefix that the last bytes match */
};

struct stream {
    bool begun; /* whether the answer has */
    enum place place;
    size_t left; /* of the chunk */
    struct mark head_end, message, change, seq;
    bool in_change, in_seq;
    uint64_t hash; /* of the change that is being read */
    uint64_t last_seq, messages, changes, digest;
};

static struct {
    const char *after;
    uint32_t sources;
    uint64_t changes;
} option = {.sources = 1};

static struct {
    int open, ended, complete;
    uint64_t bytes;
} total;

static int epoll_fd, first_fd = -1;
static struct stream *streams; /* by file descriptor */
static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
    (void)number;
    stopped = 1;
}

/* ---- one stream ---- */

/* Returns whether the text ends with this byte.  After a mismatch the search begins anew with this
 * byte, which suffices for the texts and the data here. */
static bool mark_ends(struct mark *m, const char *text, char byte)
{
    m->at = byte == text[m->at] ? m->at + 1 : byte == text[0];
    if (text[m->at])
        return false;
    m->at = 0;
    return true;
}

static void change_ends(struct stream *s)
{
    s->in_change = false;
    s->digest += s->hash;
    s->changes++;
    if (s->changes != option.changes || ++total.complete < total.open)
        return;
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    printf("complete %lld\n", (long long)t.tv_sec * 1000 + t.tv_nsec / 1000000);
    (void)fflush(stdout);
}

static void read_text(struct stream *s, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        const char byte = text[i];
        if (s->in_change && byte == ']')
            change_ends(s);
        else if (s->in_change)
            s->hash = (s->hash ^ (uint8_t)byte) * FNV_PRIME;
        else if (s->in_seq && byte >= '0' && byte <= '9')
            s->last_seq = s->last_seq * 10 + (uint64_t)(byte - '0');
        else
            s->in_seq = false;
        s->messages += mark_ends(&s->message, "\nevent: ", byte);
        if (mark_ends(&s->seq, "\"seq\":", byte)) {
            s->in_seq = true;
            s->last_seq = 0;
        }
        if (mark_ends(&s->change, "[\"", byte)) {
            s->in_change = true;
            s->hash = (FNV_OFFSET ^ '"') * FNV_PRIME;
        }
    }
}

/* There is one decompressor: without --changes only the first stream is read. */
static void read_gzip(struct stream *s, const char *data, size_t len)
{
    static z_stream z;
    static bool begun;
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
        read_text(s, out, sizeof out - z.avail_out);
    } while (z.avail_out == 0);
}

static void read_body(struct stream *s, const char *data, size_t len)
{
    if (option.changes)
        read_text(s, data, len);
    else
        read_gzip(s, data, len);
}

static int digit_of(char byte) { return byte <= '9' ? byte - '0' : (byte | 0x20) - 'a' + 10; }

static void read_answer(struct stream *s, const char *data, size_t len)
{
    bool chunked = memmem(data, len, "chunked", 7) != NULL; /* of use only where the head is */
    for (size_t i = 0; i < len;) {
        if (s->place == UNCHUNKED) {
            read_body(s, data + i, len - i);
            return;
        }
        if (s->place == DATA) {
            size_t n = len - i < s->left ? len - i : s->left;
            read_body(s, data + i, n);
            i += n;
            s->left -= n;
            s->place = s->left ? DATA : DATA_CR;
            continue;
        }
        const char byte = data[i++];
        if (s->place == HEAD) {
            if (mark_ends(&s->head_end, "\r\n\r\n", byte))
                s->place = chunked ? SIZE : UNCHUNKED;
        } else if (s->place == SIZE && byte != '\r') {
            s->left = s->left * 16 + (size_t)digit_of(byte);
        } else {
            s->place = s->place == DATA_LF ? SIZE : s->place + 1;
        }
    }
}

/* ---- all streams ---- */

static void read_one(int fd)
{
    static char data[65536];
    struct stream *s = &streams[fd];
    ssize_t n = recv(fd, data, sizeof data, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        total.ended++;
        total.open -= s->begun;
        close(fd);
        return;
    }
    if (!s->begun) {
        s->begun = true;
        total.open++;
        if (n < 12 || memcmp(data + 8, " 200", 4) != 0) {
            (void)fprintf(stderr, "streams: %.*s\n", n < 200 ? (int)n : 200, data);
            exit(1);
        }
    }
    total.bytes += (uint64_t)n;
    if (fd == first_fd || option.changes)
        read_answer(s, data, (size_t)n);
}

static void read_until(int64_t until_ms, int open_wanted)
{
    struct epoll_event ready[READY_MAX];
    for (int64_t left;
         (left = until_ms - now_ms()) > 0 && total.open + total.ended < open_wanted && !stopped;) {
        int n = epoll_wait(epoll_fd, ready, READY_MAX, (int)left);
        for (int i = 0; i < n; i++)
            read_one(ready[i].data.fd);
    }
}

static void open_all(const struct sockaddr_in *to, const char *request, int n)
{
    int64_t until_ms = now_ms() + CONNECT_WITHIN_MS;
    for (int opened = 0; opened < n && !stopped;) {
        for (int i = 0; i < CONNECT_AT_ONCE && opened < n; i++, opened++) {
            int fd = connect_from((uint32_t)opened % option.sources, to, epoll_fd);
            if (fd >= n + FILES_RESERVED)
                die("too many files were open at the start");
            first_fd = first_fd < 0 ? fd : first_fd;
            send_all(fd, request);
        }
        read_until(until_ms, opened);
    }
    if (total.open < n) {
        (void)fprintf(stderr, "streams: only %d of %d are open\n", total.open, n);
        exit(1);
    }
}

/* ---- output ---- */

static void print_second(uint64_t messages, uint64_t bytes)
{
    printf("open %d messages/s %llu bytes/s %llu", total.open, (unsigned long long)messages,
           (unsigned long long)bytes);
    if (option.changes)
        printf(" complete %d", total.complete);
    printf("\n");
    (void)fflush(stdout);
}

static void print_range(const char *name, size_t offset, int n)
{
    uint64_t least = UINT64_MAX, most = 0;
    for (int i = 0, seen = 0; seen < n; i++) {
        if (!streams[i].begun)
            continue;
        uint64_t value;
        memcpy(&value, (const char *)&streams[i] + offset, sizeof value);
        least = value < least ? value : least;
        most = value > most ? value : most;
        seen++;
    }
    printf(" %s %llu %llu", name, (unsigned long long)least, (unsigned long long)most);
}

/* ---- main ---- */

_Noreturn static void usage(void)
{
    (void)fprintf(stderr, "usage: streams [--after SEQ] [--sources N] [--changes N] "
                          "HOST PORT EVENT N SECONDS\n");
    exit(64);
}

static char **read_options(int argc, char **argv)
{
    static const struct option names[] = {
        {"after", 1, NULL, 'a'}, {"sources", 1, NULL, 's'}, {"changes", 1, NULL, 'c'}, {0}};
    for (int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        if (c == 'a')
            option.after = optarg;
        else if (c == 's')
            option.sources = (uint32_t)strtoul(optarg, NULL, 10);
        else if (c == 'c')
            option.changes = strtoull(optarg, NULL, 10);
        else
            usage();
    }
    if (argc - optind != 5 || option.sources < 1 || option.sources > 254)
        usage();
    return argv + optind;
}

int main(int argc, char **argv)
{
    char **args = read_options(argc, argv);
    const int n = (int)strtol(args[3], NULL, 10), seconds = (int)strtol(args[4], NULL, 10);
    const struct sockaddr_in to = address_of(args[0], args[1]);
    char request[512];
    (void)snprintf(request, sizeof request,
                   "GET /v1/events/%.64s/stream%s%.20s HTTP/1.1\r\nHost: %s\r\n"
                   "Accept: text/event-stream\r\n%s\r\n",
                   args[2], option.after ? "?after=" : "", option.after ? option.after : "",
                   args[0], option.changes ? "" : "Accept-Encoding: gzip\r\n");
    allow_connections(n);
    streams = calloc((size_t)n + FILES_RESERVED, sizeof *streams);
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (!streams || epoll_fd < 0)
        die("streams");

    (void)signal(SIGTERM, on_signal);
    int64_t begun_ms = now_ms();
    open_all(&to, request, n);
    printf("open %d in %lld ms\n", total.open, (long long)(now_ms() - begun_ms));
    (void)fflush(stdout);
    const struct stream *first = &streams[first_fd];
    const struct stream start = *first;
    const uint64_t start_bytes = total.bytes;
    for (int i = 0; i < seconds && !stopped; i++) {
        const uint64_t messages = first->messages, bytes = total.bytes;
        read_until(now_ms() + 1000, INT32_MAX);
        print_second(first->messages - messages, total.bytes - bytes);
    }
    printf("total open %d cut %d messages %llu bytes %llu changes %llu\n", total.open, total.ended,
           (unsigned long long)(first->messages - start.messages),
           (unsigned long long)(total.bytes - start_bytes),
           (unsigned long long)(first->changes - start.changes));
    if (option.changes) {
        printf("each");
        print_range("seq", offsetof(struct stream, last_seq), n);
        print_range("changes", offsetof(struct stream, changes), n);
        print_range("digest", offsetof(struct stream, digest), n);
        printf("\n");
    }
    free(streams);
    return total.ended > 0;
}
