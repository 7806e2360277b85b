/* The rights that locks on Redis need, as docs/locks.md has them, and what examining says about
 * rights and settings.  Runs in the project's directory. */
#include "support/fixtures.h"

#include "support/redis.h"

#include <stdio.h>
#include <string.h>

#define PASSWORD "s3cret"
#define RIGHTS_MAX 64

static char acl[2048], url[128];

/* ---- the documented user ---- */

/* The line of the document, with the password that the tests use. */
static void read_documented_user(void)
{
    static const char begin[] = "ACL SETUSER locks on >PASSWORD ";
    char line[2048];
    FILE *file = fopen("docs/locks.md", "r");
    assert_non_null(file);
    acl[0] = '\0';
    while (fgets(line, sizeof line, file)) {
        const char *at = strstr(line, begin);
        if (at && !acl[0]) /* the first; another is for Redlock */
            snprintf(acl, sizeof acl, "ACL SETUSER locks reset on >" PASSWORD " %.*s",
                     (int)strcspn(at + strlen(begin), "\n"), at + strlen(begin));
    }
    fclose(file);
    assert_true(acl[0] != '\0');
    snprintf(url, sizeof url, "redis://locks:" PASSWORD "@127.0.0.1:%d", server.port);
}

/* Gives the documented rights, and then these. */
static void set_user(const char *more)
{
    char command[2300];
    must_ask(acl);
    snprintf(command, sizeof command, "ACL SETUSER locks %s", more);
    if (*more)
        must_ask(command);
}

/* Everything that a holder and its waiters do.  Returns what failed; NULL: nothing. */
static const char *use_locks(void)
{
    struct lease *l = NULL, *away = NULL;
    struct lease_options options = {.timeout_ms = 10000, .clock = &clock_system};
    struct lease_verdict v;
    struct lease_state s = {0};
    const char *failed = NULL;
    struct lease_request a = asks("rights"), b = waits("rights"), c = waits("rights"),
                         many[3] = {asks("many"), asks("many"), asks("many")};
#define TRY(call) failed = failed || (call) == HF_DONE ? failed : #call
    must_ask("FLUSHALL");
    must_ask("SCRIPT FLUSH");
    TRY(lease_open(&lease_redis, url, &options, &l, NULL));
    TRY(lease_open(&lease_redis, url, &options, &away, NULL));
    if (failed)
        goto out;
    TRY(lease_acquire(l, &a, &v, NULL)); /* the single form */
    TRY(lease_renew(l, &a, 1, &v, NULL));
    TRY(lease_inspect(l, "rights", 6, &s, NULL));
    lease_state_close(&s);
    TRY(lease_acquire(away, &b, &v, NULL)); /* the group form */
    TRY(lease_acquire(away, &c, &v, NULL));
    TRY(lease_wait(away, &c, 1, NULL));
    TRY(lease_wait(away, &b, 1, NULL)); /* another channel */
    TRY(lease_renew(l, &a, 1, &v, NULL));
    TRY(lease_inspect(l, "rights", 6, &s, NULL));
    lease_state_close(&s);
    TRY(lease_release(l, &a, 1, &v, NULL));
    TRY(lease_wait(away, &b, 5000, NULL));
    TRY(lease_acquire(away, &b, &v, NULL));
    TRY(lease_break(l, "rights", 6, NULL));
    TRY(lease_release(l, &c, 1, &v, NULL));
    for (int i = 0; i < 3; i++) {
        many[i].slots = 3;
        TRY(lease_acquire(l, &many[i], &v, NULL));
    }
    TRY(lease_release(l, many, 1, &v, NULL));
    TRY(lease_inspect(l, "many", 4, &s, NULL));
    lease_state_close(&s);
out:
    if (l)
        lease_close(l);
    if (away)
        lease_close(away);
    return failed;
}

static void the_documented_rights_are_enough(void **state)
{
    (void)state;
    char answer[256];
    read_documented_user();
    set_user("");
    const char *failed = use_locks();
    if (failed)
        fail_msg("%s", failed);
    redis_server_ask(&server, "ACL LOG", answer, sizeof answer);
    assert_string_equal(answer, "*0\r\n"); /* nothing was refused, not even in silence */
}

static void and_each_of_them_is_needed(void **state)
{
    (void)state;
    char rights[RIGHTS_MAX][32], copy[sizeof acl], less[48];
    size_t n = 0;
    memcpy(copy, acl, sizeof acl);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
        if (word[0] == '+' && n < RIGHTS_MAX)
            snprintf(rights[n++], sizeof rights[0], "%s", word + 1);
    assert_in_range(n, 20, RIGHTS_MAX - 1);
    for (size_t i = 0; i < n; i++) {
        /* cuts the set of last fences now and then; nobody waits for that */
        if (strcmp(rights[i], "zremrangebyrank") == 0)
            continue;
        snprintf(less, sizeof less, "-%.31s", rights[i]);
        set_user(less);
        if (!use_locks())
            fail_msg("%s is not needed", rights[i]);
    }
    set_user("");
    must_ask("FLUSHALL");
    must_ask("ACL LOG RESET");
}

static bool ignore(void *ctx, const char *name)
{
    (void)ctx, (void)name;
    return true;
}

static void further_rights_are_for_what_the_document_says(void **state)
{
    (void)state;
    char db_url[160], strict_url[200];
    struct lease *l;
    struct hf_fault fault;
    struct lease_options options = {.timeout_ms = 10000, .clock = &clock_system};
    snprintf(db_url, sizeof db_url, "%s/2", url);
    snprintf(strict_url, sizeof strict_url, "%s?min_replicas=1&replicas_timeout=1", url);
    set_user("");
    assert_int_equal(lease_open(&lease_redis, db_url, &options, &l, &fault), HF_UNREACHABLE);
    l = must_open(url, 10000);
    assert_int_equal(lease_list(l, "", 0, ignore, NULL, &fault), HF_UNREACHABLE);
    assert_non_null(strstr(fault.msg, "NOPERM"));
    lease_close(l);
    set_user("+select +scan +wait");
    l = must_open(db_url, 10000);
    assert_int_equal(lease_list(l, "", 0, ignore, NULL, &fault), HF_DONE);
    lease_close(l);
    l = must_open(strict_url, 10000);
    struct lease_request q = asks("strict");
    struct lease_verdict v;
    assert_int_equal(lease_acquire(l, &q, &v, &fault), HF_UNREACHABLE);
    assert_non_null(strstr(fault.msg, "0 of 1 replicas"));
    lease_close(l);
    set_user("");
}

/* ---- examining ---- */

struct found {
    char all[8192];
};

static void note(void *ctx, const struct hf_finding *f)
{
    static const char *const grades[] = {"good", "note", "warning", "danger"};
    struct found *found = ctx;
    size_t len = strlen(found->all);
    assert_true(strlen(f->text) > 10);
    snprintf(found->all + len, sizeof found->all - len, "%s %s: %s\n", grades[f->grade], f->topic,
             f->text);
}

/* What examining says about a topic has this grade, and these words. */
static void assert_found_by(struct lease *l, const char *beginning, const char *words)
{
    struct found found = {0};
    struct hf_fault fault;
    if (lease_examine(l, note, &found, &fault) != HF_DONE)
        fail_msg("%s", fault.msg);
    const char *at = strstr(found.all, beginning);
    if (!at || !memmem(at, strcspn(at, "\n"), words, strlen(words)))
        fail_msg("no \"%s ... %s\" in\n%s", beginning, words, found.all);
    assert_null(strstr(found.all, PASSWORD));
}

static void assert_found(const char *beginning, const char *words)
{
    struct lease *l = must_open(server.url, 10000);
    assert_found_by(l, beginning, words);
    lease_close(l);
}

static void examining_reads_persistence(void **state)
{
    (void)state;
    assert_found("good version: Redis ", ".");
    assert_found("warning persistence: A restart", "loses all leases,");
    must_ask("CONFIG SET save \"3600 1\"");
    assert_found("warning persistence: A restart", "since the last snapshot");
    must_ask("CONFIG SET appendfsync everysec");
    must_ask("CONFIG SET appendonly yes");
    assert_found("warning persistence: A power failure", "last second");
    must_ask("CONFIG SET appendfsync no");
    assert_found("warning persistence: A power failure", "half minute");
    must_ask("CONFIG SET appendfsync always");
    assert_found("good persistence:", "on disk before it is granted");
    must_ask("CONFIG SET appendonly no");
    must_ask("CONFIG SET save \"\"");
}

static void examining_reads_eviction(void **state)
{
    (void)state;
    assert_found("good eviction:", "noeviction");
    must_ask("CONFIG SET maxmemory-policy volatile-lru");
    assert_found("note eviction:", "volatile-lru");
    must_ask("CONFIG SET maxmemory 100mb");
    assert_found("danger eviction:", "leases are keys with an expiry");
    must_ask("CONFIG SET maxmemory-policy allkeys-lfu");
    assert_found("danger eviction:", "allkeys-lfu");
    must_ask("CONFIG SET maxmemory-policy noeviction");
    assert_found("good eviction:", "");
    must_ask("CONFIG SET maxmemory 1mb");
    assert_found("warning eviction:", "can still renew and release");
    must_ask("CONFIG SET maxmemory 0");
}

static bool has_replica(void *ctx)
{
    static char all[16384];
    redis_server_ask(ctx, "INFO replication", all, sizeof all);
    return strstr(all, "state=online") != NULL;
}

static void examining_reads_replication(void **state)
{
    (void)state;
    static const char *const at_once[] = {"--repl-diskless-sync-delay", "0", NULL};
    struct redis_server replica = {.options = at_once};
    char command[64], answer[64], strict_url[128];
    assert_found("note replication: There is no replica", "");
    must_ask("CONFIG SET min-replicas-to-write 1");
    assert_found("danger replication: No lock", "min-replicas-to-write asks for 1");
    must_ask("CONFIG SET min-replicas-to-write 0");
    assert_true(redis_server_start(&replica));
    snprintf(command, sizeof command, "REPLICAOF 127.0.0.1 %d", server.port);
    redis_server_ask(&replica, command, answer, sizeof answer);
    assert_true(becomes(has_replica, &server));
    assert_found("warning replication: 1 replicas", "min_replicas=1");
    snprintf(strict_url, sizeof strict_url, "%s?min_replicas=1", server.url);
    struct lease *l = must_open(strict_url, 10000);
    assert_found_by(l, "good replication: Each grant", "1 of 1");
    lease_close(l);
    snprintf(strict_url, sizeof strict_url, "%s?min_replicas=2", server.url);
    l = must_open(strict_url, 10000);
    assert_found_by(l, "danger replication: No lock", "min_replicas of the URL asks for 2");
    lease_close(l);
    l = must_open(replica.url, 10000);
    assert_found_by(l, "danger replication: This is a replica", "");
    lease_close(l);
    redis_server_stop(&replica);
    struct redis_server node = {.cluster = true};
    assert_true(redis_server_start(&node));
    l = must_open(node.url, 10000);
    assert_found_by(l, "danger cluster:", "Redis Cluster");
    lease_close(l);
    redis_server_stop(&node);
}

static int64_t off_by_us;
static int64_t monotonic_us(const struct clock *c)
{
    (void)c;
    return clock_monotonic_us(&clock_system);
}
static int64_t boot_us(const struct clock *c)
{
    (void)c;
    return clock_boot_us(&clock_system);
}
static int64_t wall_us(const struct clock *c)
{
    (void)c;
    return clock_wall_us(&clock_system) + off_by_us;
}

static void examining_compares_the_clocks(void **state)
{
    (void)state;
    static const struct clock off = {
        .monotonic_us = monotonic_us, .boot_us = boot_us, .wall_us = wall_us};
    struct lease_options options = {.timeout_ms = 10000, .clock = &off};
    struct lease *l;
    assert_int_equal(lease_open(&lease_redis, server.url, &options, &l, NULL), HF_DONE);
    off_by_us = 0;
    assert_found_by(l, "good clock:", "agrees");
    off_by_us = 20000000;
    assert_found_by(l, "warning clock:", "behind this machine's");
    off_by_us = -20000000;
    assert_found_by(l, "note clock:", "ahead of this machine's");
    lease_close(l);
}

static void examining_names_the_rights_that_are_lacking(void **state)
{
    (void)state;
    set_user("");
    must_ask("FLUSHALL");
    struct lease *l = must_open(url, 10000);
    assert_found_by(l, "note version:", "INFO");
    assert_found_by(l, "good rights:", "all that locks need");
    must_ask("ACL SETUSER locks +info");
    assert_found_by(l, "good version:", "Redis");
    must_ask("ACL SETUSER locks -publish -zadd -getset -subscribe");
    must_ask("ZADD holdfast:last 1 x"); /* with it, more can be tried out */
    assert_found_by(l, "danger rights: This user lacks", "ZADD PUBLISH GETSET SUBSCRIBE");
    must_ask("ACL SETUSER locks -eval");
    assert_found_by(l, "danger rights: No lock can be taken", "NOPERM");
    lease_close(l);
    char answer[64];
    redis_server_ask(&server, "ZCARD holdfast:last", answer, sizeof answer);
    assert_string_equal(answer, ":1\r\n"); /* nothing was changed */
    redis_server_ask(&server, "DBSIZE", answer, sizeof answer);
    assert_string_equal(answer, ":1\r\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_documented_rights_are_enough),
        cmocka_unit_test(and_each_of_them_is_needed),
        cmocka_unit_test(further_rights_are_for_what_the_document_says),
        cmocka_unit_test(examining_reads_persistence),
        cmocka_unit_test(examining_reads_eviction),
        cmocka_unit_test(examining_reads_replication),
        cmocka_unit_test(examining_compares_the_clocks),
        cmocka_unit_test(examining_names_the_rights_that_are_lacking),
    };
    return run_with_redis(tests);
}
