/* Claims about postgres: leases that the conformance suite cannot make, since they are about the
 * server: what waits for what, what an uncontended lease costs, and what fences survive. */
#include "support/fixtures.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "lease/sql/link.h"
#include "support/lease_calls.h"
#include "support/postgres_server.h"

#define TIMEOUT_MS 6000 /* of every handle; a quarter of it is not for locks */
#define QUICK_MS 3000   /* what waited for a lock would take longer */

static struct lab {
    char url[POSTGRES_URL_SIZE];
    int64_t timeout_ms;
} lab = {.timeout_ms = TIMEOUT_MS};

static int set_up(void **state)
{
    (void)state;
    postgres_server_fresh(lab.url);
    return 0;
}

static struct lease *open_lease(void) { return must_open(lab.url, lab.timeout_ms); }

static int64_t granted(struct lease *l, const struct lease_request *r)
{
    struct lease_verdict v = must_acquire(l, r);
    assert_int_equal(v.result, HF_DONE);
    return v.fence;
}

/* Runs SQL as an administrator. */
static const char *sql(const char *text)
{
    return postgres_server_ask(postgres_server_own(), strrchr(lab.url, '/') + 1, text);
}

/* ---- a transaction that has begun and does not go on ---- */

static struct db *stopped_on(const char *name)
{
    const struct db_options options = {
        .clock = &clock_system, .shared = true, .timeout_ms = TIMEOUT_MS};
    const struct db_value key = db_bytes(name, strlen(name));
    struct db *db = NULL;
    struct hf_err err = {0};
    int64_t now;
    assert_int_equal(db_open(lab.url, &options, &db, &err), HF_OK);
    assert_int_equal(db->driver->script(db, "SET idle_in_transaction_session_timeout = 0", &err),
                     HF_OK); /* or the server would end it */
    assert_int_equal(db->driver->sharing.begin_locked(db, &key, 1, &err), HF_OK);
    assert_int_equal(db->driver->now_ms(db, &now, &err), HF_OK); /* so that it is sent */
    return db;
}

static void everything_with(struct lease *l, const char *name)
{
    struct lease_request r = asks(name), other = asks(name);
    other.queue = true;
    granted(l, &r);
    assert_int_equal(must_acquire(l, &other).result, HF_TAKEN);
    assert_int_equal(must_renew(l, &r).result, HF_DONE);
    struct lease_state st = must_inspect(l, name);
    assert_int_equal(st.n_holders + st.n_waiters, 2);
    lease_state_close(&st);
    assert_int_equal(must_release(l, &r), HF_DONE);
    granted(l, &other);
    assert_int_equal(lease_break(l, name, strlen(name), NULL), HF_DONE);
}

/* The best of several tries is quick, since a busy machine only makes it slower. */
static void everything_quickly_with(struct lease *l, const char *name)
{
    int64_t best_ms = INT64_MAX;
    for (int i = 0; i < 10 && best_ms >= QUICK_MS; i++) {
        int64_t began = boot_ms();
        everything_with(l, name);
        best_ms = boot_ms() - began < best_ms ? boot_ms() - began : best_ms;
    }
    assert_true(best_ms < QUICK_MS);
}

static void unrelated_names_do_not_wait_for_each_other(void **state)
{
    (void)state;
    struct lease *l = open_lease(), *m = open_lease();
    struct db *stopped = stopped_on("a");
    struct lease_request r = asks("a");
    struct lease_verdict v;
    struct hf_fault fault = {0};
    everything_quickly_with(l, "b");
    everything_quickly_with(m, "c");
    /* the same name waits, but not longer than its timeout */
    int64_t began = boot_ms();
    assert_int_equal(lease_acquire(l, &r, &v, &fault), HF_UNREACHABLE);
    assert_true(boot_ms() - began >= TIMEOUT_MS / 2);
    stopped->driver->rollback(stopped);
    granted(l, &r);
    db_close(stopped);
    lease_close(l);
    lease_close(m);
}

struct late {
    struct lease *l;
    struct lease_request r;
    struct lease_verdict v;
    enum hf_result result;
};

static void *acquire_late(void *ctx)
{
    struct late *late = ctx;
    late->result = lease_acquire(late->l, &late->r, &late->v, NULL);
    return NULL;
}

/* Of a statement that locks and reads, PostgreSQL decides before the wait what it may see. */
static void a_transaction_that_waited_for_a_name_sees_its_new_state(void **state)
{
    (void)state;
    struct late late = {.l = open_lease(), .r = asks("a")};
    struct db *first = stopped_on("a");
    struct hf_err err = {0};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, acquire_late, &late), 0);
    while (strcmp(sql("SELECT count(*) FROM pg_locks WHERE NOT granted"), "1") != 0)
        nap_ms(2);
    assert_int_equal(
        first->driver->script(first,
                              "INSERT INTO leases VALUES ('a', '0123456789abcdef', 1, 0, 1, 0,"
                              " 9000000000000, NULL)",
                              &err),
        HF_OK);
    assert_int_equal(first->driver->commit(first, &err), HF_OK);
    pthread_join(thread, NULL);
    assert_int_equal(late.result, HF_DONE);
    assert_int_equal(late.v.result, HF_TAKEN);
    db_close(first);
    lease_close(late.l);
}

/* ---- cost ---- */

static int64_t exchanges(const struct lease *l)
{
    const struct sql_family *family = ((const struct sql_lease *)(const void *)l)->family;
    const struct db *db = family->idle[0]->db;
    assert_int_equal(family->n_idle, 1);
    return db->driver->upkeep.exchanges(db);
}

static void an_uncontended_lease_is_one_exchange_each_way(void **state)
{
    (void)state;
    struct lease *l = open_lease();
    struct lease_request warm = asks("a"); /* the first one sweeps */
    granted(l, &warm);
    assert_int_equal(must_release(l, &warm), HF_DONE);
    for (int i = 0; i < 3; i++) {
        struct lease_request r = asks(i ? "a" : "b");
        int64_t before = exchanges(l);
        granted(l, &r);
        assert_int_equal(exchanges(l), before + 1);
        assert_int_equal(must_renew(l, &r).result, HF_DONE);
        assert_int_equal(exchanges(l), before + 2);
        assert_int_equal(must_release(l, &r), HF_DONE);
        assert_int_equal(exchanges(l), before + 3);
    }
    lease_close(l);
}

static void a_contended_lease_is_two_exchanges_after_the_first_time(void **state)
{
    (void)state;
    struct lease *l = open_lease(), *m = open_lease();
    struct lease_request holder = asks("a"), r = asks("a");
    granted(l, &holder);
    for (int i = 0; i < 3; i++) {
        int64_t before = exchanges(m);
        assert_int_equal(must_acquire(m, &r).result, HF_TAKEN);
        if (i > 0)
            assert_int_equal(exchanges(m), before + 2);
    }
    assert_int_equal(must_release(l, &holder), HF_DONE);
    granted(m, &r);
    assert_int_equal(must_release(m, &r), HF_DONE);
    int64_t before = exchanges(m); /* it is uncontended again */
    granted(m, &r);
    assert_int_equal(exchanges(m), before + 1);
    lease_close(l);
    lease_close(m);
}

/* ---- fences ---- */

static void a_fence_grows_though_the_row_of_the_last_grant_was_swept(void **state)
{
    (void)state;
    struct lease *l = open_lease();
    struct lease_request r = asks("a"), other = asks("b"), next = asks("a");
    int64_t last = granted(l, &r);
    sql("UPDATE holdfast_locks.leases SET expires_at = 1 WHERE name = 'a'");
    struct lease *m = open_lease(); /* its first grant sweeps */
    granted(m, &other);
    assert_string_equal(sql("SELECT count(*) FROM holdfast_locks.leases WHERE name = 'a'"), "0");
    assert_true(granted(m, &next) > last);
    lease_close(m);
    lease_close(l);
}

/* The clock may have been ahead when it was given, so the clock alone does not exceed it. */
static void a_fence_grows_though_the_last_one_was_forgotten(void **state)
{
    (void)state;
    struct lease *l = open_lease();
    struct lease_request r = asks("a"), other = asks("b");
    granted(l, &r);
    assert_int_equal(must_release(l, &r), HF_DONE);
    sql("UPDATE holdfast_locks.lease_fences SET fence = 4000000000000000000, granted_at = 1");
    for (int i = 0; strcmp(sql("SELECT count(*) FROM holdfast_locks.lease_fences"
                               " WHERE name = 'a'"),
                           "0") != 0;
         i++) {
        assert_true(i < 64);
        granted(l, &other);
        assert_int_equal(must_release(l, &other), HF_DONE);
    }
    assert_true(granted(l, &r) > INT64_C(4000000000000000000));
    lease_close(l);
}

static void a_sweep_waits_for_no_lock_and_leaves_rows_that_may_still_be_read(void **state)
{
    (void)state;
    lease_close(open_lease()); /* makes the tables */
    sql("INSERT INTO holdfast_locks.leases SELECT CAST(n AS bytea), '0123456789abcdef', 1, 0, 1, "
        "0, e, "
        "NULL"
        " FROM (VALUES ('locked', 1), ('long', 1), ('lately', CAST(extract(epoch FROM now()) * 1000"
        " AS bigint) - 5000)) AS v(n, e)");
    const struct db_options options = {.clock = &clock_system, .shared = true};
    struct db *db = NULL;
    struct hf_err err = {0};
    assert_int_equal(db_open(lab.url, &options, &db, &err), HF_OK);
    assert_int_equal(db->driver->begin(db, &err), HF_OK);
    assert_int_equal(
        db->driver->script(db, "UPDATE leases SET label = 'x' WHERE name = 'locked'", &err), HF_OK);
    struct lease *l = open_lease();
    struct lease_request r = asks("b");
    granted(l, &r); /* or it would end with its timeout */
    assert_string_equal(sql("SELECT string_agg(convert_from(name, 'UTF8'), ' ' ORDER BY name)"
                            " FROM holdfast_locks.leases"),
                        "b lately locked");
    db_close(db);
    lease_close(l);
}

/* Only the first connection creates anything: later ones do not wait for a migration that is under
 * way and need no right to create tables. */
static void later_connections_need_no_right_to_create_tables_and_do_not_wait(void **state)
{
    (void)state;
    lease_close(open_lease());
    const struct db_options options = {.clock = &clock_system, .writer = true};
    struct db *migrating = NULL;
    struct hf_err err = {0};
    char url[POSTGRES_URL_SIZE - 32];
    sql("CREATE ROLE clerk LOGIN");
    sql("GRANT USAGE ON SCHEMA holdfast_locks TO clerk;" /* as docs/locks.md has it */
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA holdfast_locks TO clerk;"
        "GRANT USAGE ON SEQUENCE holdfast_locks.holdfast_numbers TO clerk;"
        "REVOKE CREATE ON SCHEMA public FROM PUBLIC");
    assert_int_equal(db_open(lab.url, &options, &migrating, &err), HF_OK);
    assert_int_equal(migrating->driver->begin(migrating, &err), HF_OK);
    assert_int_equal(migrating->driver->script(migrating, migrating->driver->migration_lock, &err),
                     HF_OK);
    (void)snprintf(url, sizeof url, "%s", strchr(lab.url, '@'));
    (void)snprintf(lab.url, sizeof lab.url, "postgres://clerk%s", url);
    struct lease *l = open_lease(); /* or it would end with its timeout */
    everything_quickly_with(l, "a");
    lease_close(l);
    migrating->driver->rollback(migrating);
    db_close(migrating);
}

/* ---- many waiters ---- */

#define WAITERS 200
#define WAITERS_MS 120000

static struct queue {
    struct lease *first;
    pthread_mutex_t lock;
    int served, inside;
    long wrong;
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void count_inside(int step)
{
    pthread_mutex_lock(&queue.lock);
    queue.inside += step;
    queue.served += step > 0;
    queue.wrong += queue.inside < 0 || queue.inside > 1;
    pthread_mutex_unlock(&queue.lock);
}

static void *waits_once(void *ctx)
{
    (void)ctx;
    struct lease *l = NULL;
    struct lease_request r = waits("many");
    struct lease_verdict v = {.result = HF_TAKEN};
    int64_t until = boot_ms() + WAITERS_MS;
    pthread_mutex_lock(&queue.lock);
    queue.wrong += lease_clone(queue.first, &l, NULL) != HF_DONE;
    pthread_mutex_unlock(&queue.lock);
    while (v.result == HF_TAKEN && boot_ms() < until)
        if (lease_acquire(l, &r, &v, NULL) == HF_DONE && v.result == HF_TAKEN)
            (void)!lease_wait(l, &r, 2000, NULL);
    if (v.result == HF_DONE) {
        count_inside(1);
        count_inside(-1);
        (void)!lease_release(l, &r, 1, &v, NULL);
    }
    lease_close(l);
    return NULL;
}

static void two_hundred_waiters_share_fewer_than_ten_connections(void **state)
{
    (void)state;
    struct postgres_server *server = postgres_server_own();
    postgres_server_stop(server);
    server->max_connections = 20;
    postgres_server_again(server);
    lab.timeout_ms = 20000;
    queue.first = open_lease();
    pthread_t threads[WAITERS];
    struct lease_request holder = asks("many");
    granted(queue.first, &holder);
    for (int i = 0; i < WAITERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, waits_once, NULL), 0);
    int64_t until = boot_ms() + WAITERS_MS;
    while (atoi(sql("SELECT count(*) FROM holdfast_locks.lease_waiters")) < WAITERS &&
           boot_ms() < until)
        nap_ms(50);
    assert_int_equal(must_renew(queue.first, &holder).result, HF_DONE);
    int n = atoi(sql("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'holdfast'"));
    assert_in_range(n, 2, 9);
    assert_int_equal(must_release(queue.first, &holder), HF_DONE);
    for (int i = 0; i < WAITERS; i++)
        pthread_join(threads[i], NULL);
    lease_close(queue.first);
    assert_int_equal(queue.wrong, 0);
    assert_int_equal(queue.served, WAITERS);
    lab.timeout_ms = TIMEOUT_MS;
    postgres_server_stop(server);
    server->max_connections = 0;
    postgres_server_again(server);
}

/* The same database, for another role. */
static void become(const char *role)
{
    char rest[POSTGRES_URL_SIZE - 32];
    (void)snprintf(rest, sizeof rest, "%s", strchr(lab.url, '@'));
    (void)snprintf(lab.url, sizeof lab.url, "postgres://%s%s", role, rest);
}

/* ---- examining ---- */

static void examining_tells_of_dangerous_settings_standbys_and_missing_rights(void **state)
{
    (void)state;
    struct postgres_server standby = {0};
    struct lease *l = open_lease();
    assert_finding(l, "version", HF_GOOD, "PostgreSQL");
    assert_finding(l, "persistence", HF_DANGER, "fsync"); /* the tests' server runs without */
    assert_finding(l, "clock", HF_GOOD, "agrees");
    assert_finding(l, "connections", HF_GOOD, "free");
    assert_finding(l, "rights", HF_GOOD, "holdfast");
    assert_finding(l, "replication", HF_NOTE, "No standby");
    postgres_server_follow(&standby, postgres_server_own());
    for (int i = 0; i < 1000 && strcmp(sql("SELECT count(*) FROM pg_stat_replication"), "1") != 0;
         i++)
        nap_ms(10);
    assert_finding(l, "replication", HF_WARNING, "synchronous_standby_names");
    postgres_server_remove(&standby);
    lease_close(l);
    sql("SET client_min_messages = error; DROP ROLE IF EXISTS reader; CREATE ROLE reader LOGIN;"
        "GRANT USAGE ON SCHEMA holdfast_locks TO reader;"
        "GRANT SELECT ON ALL TABLES IN SCHEMA holdfast_locks TO reader");
    become("reader");
    l = open_lease();
    assert_finding(l, "rights", HF_DANGER, "reader");
    lease_close(l);
    become("holdfast");
    sql("DROP OWNED BY reader; DROP ROLE reader");
}

/* ---- whose tables ---- */

static void roles_with_schemas_of_their_own_share_one_lock(void **state)
{
    (void)state;
    struct lease_request r = asks("a"), other = asks("a");
    sql("SET client_min_messages = error; DROP ROLE IF EXISTS ann; DROP ROLE IF EXISTS bob");
    sql("CREATE ROLE ann LOGIN; CREATE ROLE bob LOGIN IN ROLE ann;"
        "CREATE SCHEMA ann AUTHORIZATION ann; CREATE SCHEMA bob AUTHORIZATION bob;"
        "DO $$ BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO ann', current_database());"
        " END $$");
    become("ann");
    struct lease *l = open_lease();
    granted(l, &r);
    become("bob");
    struct lease *m = open_lease();
    assert_int_equal(must_acquire(m, &other).result, HF_TAKEN);
    assert_int_equal(must_release(l, &r), HF_DONE);
    granted(m, &other);
    lease_close(l);
    lease_close(m);
    become("holdfast");
    sql("DROP OWNED BY ann, bob; DROP ROLE ann, bob");
}

static void tables_of_an_application_are_left_alone(void **state)
{
    (void)state;
    sql("CREATE TABLE leases (tenant text, until date); INSERT INTO leases VALUES ('x', now());"
        "CREATE TABLE part_version (part bigint, version text);"
        "INSERT INTO part_version VALUES (1, 'b'); CREATE TABLE lease_waiters (id bigint)");
    struct lease *l = open_lease();
    everything_with(l, "a");
    lease_close(l);
    assert_string_equal(sql("SELECT tenant FROM leases"), "x");
    assert_string_equal(sql("SELECT version FROM part_version"), "b");
    assert_string_equal(sql("SELECT count(*) FROM lease_waiters"), "0");
}

/* Version 0.1.0 had them in the default schema of the first role. */
static void tables_of_an_earlier_version_are_moved_with_their_leases(void **state)
{
    (void)state;
    const struct db_options options = {.clock = &clock_system, .writer = true};
    struct db *old = NULL;
    struct hf_err err = {0};
    assert_int_equal(db_open(lab.url, &options, &old, &err), HF_OK);
    assert_int_equal(db_migrate_part(old, LEASE_SQL_PART, lease_sql_migrations, 2, &err), HF_OK);
    sql("CREATE SEQUENCE holdfast_numbers CACHE 1;"
        "INSERT INTO leases VALUES ('a', '0123456789abcdef', 7, 0, 1, 0, 9000000000000, NULL);"
        "INSERT INTO lease_fences VALUES ('a', 7, 1)");
    struct lease *l = open_lease();
    struct lease_request r = asks("a"), owner = asks("a");
    memcpy(owner.owner, "0123456789abcdef", LEASE_OWNER_SIZE);
    assert_int_equal(must_acquire(l, &r).result, HF_TAKEN);
    assert_int_equal(granted(l, &owner), 7);
    assert_int_equal(must_release(l, &owner), HF_DONE);
    assert_true(granted(l, &r) > 7);
    assert_string_equal(sql("SELECT COALESCE(to_regclass('public.leases')::text, 'gone')"), "gone");
    /* A program of the earlier version refuses, instead of granting what is held there. */
    assert_int_not_equal(db_migrate_part(old, LEASE_SQL_PART, lease_sql_migrations, 2, &err),
                         HF_OK);
    assert_non_null(strstr(err.msg, "newer than this program"));
    lease_close(l);
    db_close(old);
    lease_close(open_lease());
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, set_up)
    const struct CMUnitTest tests[] = {
        TEST(unrelated_names_do_not_wait_for_each_other),
        TEST(later_connections_need_no_right_to_create_tables_and_do_not_wait),
        TEST(examining_tells_of_dangerous_settings_standbys_and_missing_rights),
        TEST(roles_with_schemas_of_their_own_share_one_lock),
        TEST(tables_of_an_application_are_left_alone),
        TEST(tables_of_an_earlier_version_are_moved_with_their_leases),
        TEST(a_transaction_that_waited_for_a_name_sees_its_new_state),
        TEST(an_uncontended_lease_is_one_exchange_each_way),
        TEST(a_contended_lease_is_two_exchanges_after_the_first_time),
        TEST(a_fence_grows_though_the_row_of_the_last_grant_was_swept),
        TEST(a_fence_grows_though_the_last_one_was_forgotten),
        TEST(a_sweep_waits_for_no_lock_and_leaves_rows_that_may_still_be_read),
        TEST(two_hundred_waiters_share_fewer_than_ten_connections),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
