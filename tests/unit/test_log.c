/* Claims about the log and the thread that writes it (log.h, log_writer.h).  stderr is a pipe here,
 * which the test reads or leaves full.  Black box: tests/attack/log.test.mjs. */
#include "support/fixtures.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/wait.h"

#define GAP "lines of the log are missing here"

struct piped {
    int saved, reader; /* stderr as it was; the reading end of the pipe that replaces it */
};

static void pipe_begin(struct piped *p)
{
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    p->saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    p->reader = ends[0];
    assert_int_equal(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    (void)close(ends[1]);
}

static void pipe_end(struct piped *p)
{
    assert_int_equal(dup2(p->saved, STDERR_FILENO), STDERR_FILENO);
    (void)close(p->saved);
    (void)close(p->reader);
}

/* Reads what is there until `ending` is the end of it; the caller frees the text. */
static char *read_until(int fd, const char *ending)
{
    size_t size = 4 << 20, len = 0;
    char *text = hf_alloc(size);
    while (len < strlen(ending) || strcmp(text + len - strlen(ending), ending) != 0) {
        ssize_t n = read(fd, text + len, size - 1 - len);
        assert_true(n > 0);
        len += (size_t)n;
        text[len] = '\0';
    }
    return text;
}

static long number_after(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    assert_non_null(at);
    return strtol(at + strlen(key), NULL, 10);
}

static void without_the_thread_a_line_is_written_before_the_call_returns(void **state)
{
    struct piped p;
    char text[256] = "";
    (void)state;
    pipe_begin(&p);
    log_write(LOG_WARN, "first", "key", "two words", NULL);
    assert_true(read(p.reader, text, sizeof text - 1) > 0);
    pipe_end(&p);
    assert_non_null(strstr(text, " level=warn msg=\"first\" key=\"two words\"\n"));
}

/* Writes three times what the pipe and the buffer can take while nobody reads, and then accounts
 * for each line: it is there, in order, or counted where it is missing. */
static void a_reader_that_stands_still_delays_nobody_and_learns_what_is_missing(void **state)
{
    enum { LINES = 30000 };
    struct piped p;
    struct hf_err err = {0};
    char padding[101] = "";
    (void)state;
    memset(padding, 'x', sizeof padding - 1);
    uint64_t dropped = log_dropped();
    pipe_begin(&p);
    assert_true(log_start(&err));
    for (int i = 0; i < LINES; i++)
        log_write(LOG_WARN, "line", "i", LOG_INT(i), "x", padding, NULL);
    dropped = log_dropped() - dropped;
    assert_true(dropped > LINES / 3 && dropped < LINES);

    char marker[64];
    (void)snprintf(marker, sizeof marker, " lines=%llu\n", (unsigned long long)dropped);
    char *text = read_until(p.reader, marker);
    log_print(STDERR_FILENO, "after\n");
    char *rest = read_until(p.reader, "after\n");
    log_stop();
    pipe_end(&p);

    long next = 0;
    for (char *line = text, *end; *line; line = end + 1, next++) {
        end = strchr(line, '\n');
        assert_non_null(end);
        *end = '\0';
        if (!strstr(line, GAP))
            assert_int_equal(number_after(line, " i="), next);
        else
            assert_true(end[1] == '\0' && number_after(line, " lines=") == LINES - next);
    }
    assert_string_equal(rest, "after\n");
    free(text);
    free(rest);
}

/* Waits for a child that must end by itself, and kills it if it does not. */
static void await_end(pid_t child, int *ret_status)
{
    int64_t until_us = wait_now_us() + 60 * INT64_C(1000000);
    pid_t ended;
    while ((ended = waitpid(child, ret_status, WNOHANG)) == 0 && wait_now_us() < until_us)
        wait_sleep_us(10000);
    if (ended == 0) {
        (void)kill(child, SIGKILL);
        (void)waitpid(child, ret_status, 0);
    }
}

static void stop_does_not_wait_for_a_reader_that_stands_still(void **state)
{
    struct piped p;
    struct hf_err err = {0};
    int status = 0;
    (void)state;
    pipe_begin(&p);
    pid_t child = fork();
    if (child == 0) {
        bool started = log_start(&err);
        for (int i = 0; started && i < 30000; i++)
            log_write(LOG_WARN, "line", "i", LOG_INT(i), NULL);
        log_stop();
        log_write(LOG_WARN, "one more", NULL);
        _exit(started ? 7 : 1);
    }
    await_end(child, &status);
    pipe_end(&p);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 7);
}

/* In a child: hf_check fails, with the pipe full or not. */
static void fail_a_check(bool is_full, char *ret_text, size_t size)
{
    struct piped p;
    struct hf_err err = {0};
    int status = 0;
    pipe_begin(&p);
    pid_t child = fork();
    if (child == 0) {
        bool started = log_start(&err);
        for (int i = 0; started && i < (is_full ? 30000 : 10); i++)
            log_write(LOG_WARN, "line", "i", LOG_INT(i), NULL);
        hf_check(!started);
        _exit(1);
    }
    await_end(child, &status);
    ssize_t n = read(p.reader, ret_text, size - 1);
    ret_text[n > 0 ? n : 0] = '\0';
    pipe_end(&p);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
}

static void a_failed_check_leaves_its_text_behind_the_lines_before_it(void **state)
{
    char text[65536];
    (void)state;
    fail_a_check(false, text, sizeof text);
    const char *last = strstr(text, " i=9\n"), *check = strstr(text, "this must hold");
    assert_non_null(last);
    assert_true(check > last);
}

static void a_failed_check_ends_the_program_though_nobody_reads(void **state)
{
    char text[65536];
    (void)state;
    fail_a_check(true, text, sizeof text);
}

/* Another process may have made the file that we share with it non-blocking. */
static void a_full_pipe_that_does_not_block_loses_no_line(void **state)
{
    enum { LINES = 3000 };
    struct piped p;
    struct hf_err err = {0};
    (void)state;
    pipe_begin(&p);
    assert_int_equal(fcntl(STDERR_FILENO, F_SETFL, O_NONBLOCK), 0);
    assert_true(log_start(&err));
    for (int i = 0; i < LINES; i++)
        log_write(LOG_WARN, "line", "i", LOG_INT(i), NULL);
    log_print(STDERR_FILENO, "end\n");
    char *text = read_until(p.reader, "end\n");
    log_stop();
    pipe_end(&p);
    long next = 0;
    for (const char *at = text; (at = strstr(at, " i=")); at++)
        assert_int_equal(strtol(at + 3, NULL, 10), next++);
    assert_int_equal(next, LINES);
    free(text);
}

static void *write_lines(void *unused)
{
    (void)unused;
    for (int i = 0; i < 500; i++)
        log_write(LOG_WARN, "whole", "a", "b", NULL);
    return NULL;
}

static void lines_of_several_threads_are_whole(void **state)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    struct piped p;
    struct hf_err err = {0};
    (void)state;
    pipe_begin(&p);
    assert_true(log_start(&err));
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_lines, NULL), 0);
    FILE *lines = fdopen(dup(p.reader), "r");
    char line[256];
    for (int i = 0; i < THREADS * 500; i++) {
        assert_non_null(fgets(line, sizeof line, lines));
        assert_memory_equal(line, "ts=", 3);
        assert_string_equal(strstr(line, " level="), " level=warn msg=\"whole\" a=b\n");
    }
    for (int i = 0; i < THREADS; i++)
        (void)pthread_join(threads[i], NULL);
    log_stop();
    (void)fclose(lines);
    pipe_end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_the_thread_a_line_is_written_before_the_call_returns),
        cmocka_unit_test(a_reader_that_stands_still_delays_nobody_and_learns_what_is_missing),
        cmocka_unit_test(a_full_pipe_that_does_not_block_loses_no_line),
        cmocka_unit_test(lines_of_several_threads_are_whole),
        cmocka_unit_test(stop_does_not_wait_for_a_reader_that_stands_still),
        cmocka_unit_test(a_failed_check_leaves_its_text_behind_the_lines_before_it),
        cmocka_unit_test(a_failed_check_ends_the_program_though_nobody_reads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
