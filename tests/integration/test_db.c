/* Tests of src/db: statement templates, and SQLite through db.h alone.  Those that hold for every
 * database also run on PostgreSQL; test_db_postgres.c has those of PostgreSQL alone. */
#include "support/fixtures.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "db/db.h"
#include "db/template.h"
#include "support/postgres_server.h"

/* ---- templates ---- */

static const struct template_fragment fragments[] = {{"key", "INTEGER KEY"},
                                                     {"hot", ""},
                                                     {"lock", " FOR UPDATE"},
                                                     {"share", " FOR SHARE"},
                                                     {NULL, NULL}};
static const struct dialect dialect = {.fragments = fragments, .row_at_a_time = true};

static void assert_expands(const char *sql, const char *want, int want_params)
{
    struct buf out = {0};
    struct hf_err err = {0};
    struct template_params params = {.n = -1};
    if (template_expand(sql, &dialect, &out, &params, &err) != HF_OK)
        fail_msg("%s", err.msg);
    buf_char(&out, '\0');
    assert_string_equal(out.data, want);
    assert_int_equal(params.n, want_params);
    buf_close(&out);
}

static void assert_refused(const char *sql)
{
    struct buf out = {0};
    struct hf_err err = {0};
    struct template_params params = {.n = -1};
    if (template_expand(sql, &dialect, &out, &params, &err) != HF_INTERNAL)
        fail_msg("accepted: %s", sql);
    assert_int_equal(err.code, HF_INTERNAL);
    assert_true(strlen(err.msg) > 0);
    assert_int_equal(params.n, -1);
    buf_close(&out);
}

static void text_without_braces_is_left_alone(void **state)
{
    (void)state;
    assert_expands("", "", 0);
    assert_expands("SELECT 1", "SELECT 1", 0);
    assert_expands("SELECT a FROM bar WHERE bar.id = 3", "SELECT a FROM bar WHERE bar.id = 3", 0);
}

static void rows_vanish_and_their_columns_become_parameters(void **state)
{
    (void)state;
    assert_expands("SELECT v FROM t{, rows(id bigint, name text)} WHERE t.id = r.id AND n = r.name",
                   "SELECT v FROM t WHERE t.id = ?1 AND n = ?2", 2);
    assert_expands("UPDATE t SET v = r.v{ FROM rows(k bigint, v bytes)} WHERE t.k = r.k",
                   "UPDATE t SET v = ?2 WHERE t.k = ?1", 2);
    assert_expands("DELETE FROM t{ USING rows(k bigint)} WHERE t.k=r.k",
                   "DELETE FROM t WHERE t.k=?1", 1);
    assert_expands("SELECT 1 FROM t{ JOIN rows(k bigint)} ON t.k=r.k", "SELECT 1 FROM t ON t.k=?1",
                   1);
    assert_expands("INSERT INTO t SELECT r.a, r.b{FROM rows(a bigint, b bigint)}",
                   "INSERT INTO t SELECT ?1, ?2", 2);
    assert_expands("INSERT INTO t {values(a bigint, b text)} ON CONFLICT DO NOTHING",
                   "INSERT INTO t (a, b) VALUES (?1,?2) ON CONFLICT DO NOTHING", 2);
}

static void args_at_the_end_vanish(void **state)
{
    (void)state;
    assert_expands("SELECT 1 WHERE r.a > r.b{args(a bigint, b bigint)}", "SELECT 1 WHERE ?1 > ?2",
                   2);
    assert_expands("INSERT INTO t VALUES (r.x,r.x,r.y){args(x bigint, y text)}",
                   "INSERT INTO t VALUES (?1,?1,?2)", 2);
    assert_expands("SELECT 1{args()}", "SELECT 1", 0);
}

static void a_parameter_may_be_declared_and_not_used(void **state)
{
    (void)state;
    assert_expands("SELECT r.b{args(a bigint, b bigint, c bigint)}", "SELECT ?2", 3);
}

static void names_are_matched_whole(void **state)
{
    (void)state;
    assert_expands("r.now_ms r.now{args(now bigint, now_ms bigint)}", "?2 ?1", 2);
    /* an r that is part of another name */
    assert_expands("bar.id x.r.id tr.id r.id{args(id bigint)}", "bar.id x.r.id tr.id ?1", 1);
    assert_expands("(r.id)+r.id{args(id bigint)}", "(?1)+?1", 1);
}

static void a_list_may_run_over_lines(void **state)
{
    (void)state;
    assert_expands("SELECT r.b{args(a bigint,\n  b bigint)}", "SELECT ?2", 2);
}

static void fragments_are_replaced_by_the_driver_s_words(void **state)
{
    (void)state;
    assert_expands("CREATE TABLE t (k {key}) {hot};", "CREATE TABLE t (k INTEGER KEY) ;", 0);
    assert_expands("SELECT 1 FROM t{, rows(k bigint)} WHERE k = r.k{lock}",
                   "SELECT 1 FROM t WHERE k = ?1 FOR UPDATE", 1);
}

static void rows_that_are_sent_as_arrays_are_unnested(void **state)
{
    (void)state;
    static const struct dialect arrays = {.fragments = fragments, .row_at_a_time = false};
    static const char *const texts[][2] = {
        {"SELECT v FROM t{, rows(id bigint, name text)} WHERE t.id = r.id AND n = r.name",
         "SELECT v FROM t, (SELECT unnest($1::bigint[]) AS id, unnest($2::text[]) AS name) AS r"
         " WHERE t.id = r.id AND n = r.name"},
        {"SELECT v FROM t{, rows(id bigint, name text)} WHERE t.id = r.id{lock}",
         "SELECT v FROM t, unnest($1::bigint[], $2::text[]) AS r(id, name) WHERE t.id = r.id"
         " FOR UPDATE"},
        {"SELECT v FROM t{, rows(id bigint, name text)} WHERE t.id = r.id{share}",
         "SELECT v FROM t, unnest($1::bigint[], $2::text[]) AS r(id, name) WHERE t.id = r.id"
         " FOR SHARE"},
        {"UPDATE t SET v = r.v{ FROM rows(k bigint, v bytes)} WHERE t.k = r.k",
         "UPDATE t SET v = r.v FROM (SELECT unnest($1::bigint[]) AS k, unnest($2::bytea[]) AS v)"
         " AS r WHERE t.k = r.k"},
        {"INSERT INTO t {values(a bigint, b text)} ON CONFLICT DO NOTHING",
         "INSERT INTO t (a, b) SELECT unnest($1::bigint[]), unnest($2::text[])"
         " ON CONFLICT DO NOTHING"},
        {"SELECT r.b, r.a, r.b{slow}{args(a bigint, b text)}",
         "SELECT $2::text, $1::bigint, $2::text"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct buf out = {0};
        struct template_params params = {0};
        assert_int_equal(template_expand(texts[i][0], &arrays, &out, &params, NULL), HF_OK);
        buf_char(&out, '\0');
        assert_string_equal(out.data, texts[i][1]);
        assert_int_equal(params.n, 2);
        assert_int_equal(params.rows, i < 5);
        assert_int_equal(params.slow, i == 5);
        assert_int_equal(params.types[0], DB_INT);
        buf_close(&out);
    }
}

static void the_text_is_appended(void **state)
{
    (void)state;
    struct buf out = {0};
    struct template_params params;
    buf_str(&out, "EXPLAIN ");
    assert_int_equal(template_expand("SELECT 1", &dialect, &out, &params, NULL), HF_OK);
    assert_int_equal(out.len, 16);
    assert_memory_equal(out.data, "EXPLAIN SELECT 1", 16);
    buf_close(&out);
}

static void there_may_be_32_parameters_and_no_more(void **state)
{
    (void)state;
    struct buf sql = {0};
    buf_str(&sql, "SELECT r.p31{args(");
    for (int i = 0; i < TEMPLATE_PARAMS_MAX; i++)
        buf_printf(&sql, "%sp%d bigint", i ? ", " : "", i);
    size_t len = sql.len;
    buf_put(&sql, ")}", 3);
    assert_expands(sql.data, "SELECT ?32", TEMPLATE_PARAMS_MAX);
    sql.len = len;
    buf_put(&sql, ", one_more bigint)}", 20);
    assert_refused(sql.data);
    buf_close(&sql);
}

static void a_wrong_template_is_our_mistake(void **state)
{
    (void)state;
    assert_refused("SELECT {key");
    assert_refused("SELECT {nothing}");
    assert_refused("SELECT {ke}");
    assert_refused("SELECT {}");
    assert_refused("SELECT r.x");
    assert_refused("SELECT r.x{args(y bigint)}");
    assert_refused("SELECT r.yy{args(y bigint)}");
    assert_refused("SELECT r.{args(y bigint)}");
    assert_refused("SELECT r.y{args(y bigint}");
    assert_refused("SELECT r.y{args(y bigint; z bigint)}");
    assert_refused("SELECT r.y{args(y bigint, )}");
    assert_refused("SELECT r.y{args(y bigint)}{args(z bigint)}");
    assert_refused("SELECT r.y{args(y bigint)");
}

/* ---- a database for each test ---- */

static bool on_postgres;

static struct {
    struct temp_dir dir;
    char url[200];
    struct clock_fake clock; /* SQLite only */
    struct db *db;
} lab;

static struct db_options writer(void)
{
    return (struct db_options){.clock = &lab.clock.clock,
                               .writer = true,
                               .settings = on_postgres ? POSTGRES_PATIENT_SETTINGS : NULL};
}

static struct db_options reader(void) { return (struct db_options){.clock = &lab.clock.clock}; }

static struct db *open_db(const struct db_options *options)
{
    struct db *db;
    struct hf_err err = {0};
    if (db_open(lab.url, options, &db, &err) != HF_OK)
        fail_msg("%s", err.msg);
    return db;
}

static void ok(enum hf_status status, const struct hf_err *err)
{
    if (status != HF_OK)
        fail_msg("%s: %s", hf_status_name(status), err->msg);
}

static void script(const char *sql)
{
    struct hf_err err = {0};
    ok(lab.db->driver->script(lab.db, sql, &err), &err);
}

static struct db_stmt *prepare(struct db *db, const char *sql)
{
    struct db_stmt *stmt;
    struct hf_err err = {0};
    ok(db->driver->prepare(db, sql, &stmt, &err), &err);
    return stmt;
}

static int64_t number(struct db *db, const char *sql)
{
    struct hf_err err = {0};
    struct db_stmt *stmt = prepare(db, sql);
    ok(db_query(stmt, NULL, &err), &err);
    assert_int_equal(db_step(stmt, &err), DB_ROW);
    int64_t value = db_column_int(stmt, 0);
    stmt->driver->finish(stmt);
    return value;
}

static int open_lab(void **state)
{
    (void)state;
    temp_dir_make(&lab.dir);
    if (on_postgres)
        postgres_server_fresh_patient(lab.url);
    else
        snprintf(lab.url, sizeof lab.url, "%s", lab.dir.url);
    clock_fake_init(&lab.clock, T0_MS * 1000);
    struct db_options options = writer();
    lab.db = open_db(&options);
    script("CREATE TABLE t (k {key}, v text, b {bytes}) {hot}");
    return 0;
}

static int close_lab(void **state)
{
    (void)state;
    db_close(lab.db);
    lab.db = NULL;
    temp_dir_remove(&lab.dir);
    return 0;
}

#define INSERT                                                                                     \
    "INSERT INTO t (k) SELECT r.k{ FROM rows(k bigint)} WHERE true ON CONFLICT DO NOTHING"
#define COUNT "SELECT COUNT(*) FROM t"

static int64_t insert(const int64_t *keys, size_t n)
{
    struct hf_err err = {0};
    struct db_value args[16];
    int64_t changes = -1;
    for (size_t i = 0; i < n; i++)
        args[i] = db_int(keys[i]);
    struct db_stmt *stmt = prepare(lab.db, INSERT);
    ok(stmt->driver->exec_many(stmt, args, n, &changes, &err), &err);
    return changes;
}

/* ---- statements ---- */

static void exec_many_counts_the_rows_it_changed(void **state)
{
    (void)state;
    assert_int_equal(insert((int64_t[]){1, 2, 3}, 3), 3);
    assert_int_equal(insert((int64_t[]){3, 4, 1, 5}, 4), 2);
    assert_int_equal(insert((int64_t[]){1}, 1), 0);
    assert_int_equal(insert(NULL, 0), 0);
    struct db_stmt *stmt =
        prepare(lab.db, "UPDATE t SET v = r.v{ FROM rows(k bigint, v text)} WHERE t.k >= r.k");
    struct db_value args[] = {db_int(4), db_text("x", 1), db_int(2), db_text("y", 1)};
    int64_t changes;
    struct hf_err err = {0};
    ok(stmt->driver->exec_many(stmt, args, 2, &changes, &err), &err);
    assert_int_equal(changes, 2 + 4);
    ok(stmt->driver->exec_many(stmt, args, 2, NULL, &err), &err);
}

static void statements_are_counted_one_per_row(void **state)
{
    (void)state;
    struct hf_err err = {0};
    struct db_stmt *get = prepare(lab.db, "SELECT t.k FROM t{, rows(k bigint)} WHERE t.k = r.k");
    struct db_value args[] = {db_int(1), db_int(2)};
    int64_t before = db_sqlite.upkeep.exchanges(lab.db);
    insert((int64_t[]){1, 2, 3}, 3);
    assert_int_equal(db_sqlite.upkeep.exchanges(lab.db), before + 3);
    ok(get->driver->query_many(get, args, 2, &err), &err);
    while (db_step(get, &err) == DB_ROW)
        ;
    assert_int_equal(db_sqlite.upkeep.exchanges(lab.db), before + 5);
    ok(db_sqlite.begin(lab.db, &err), &err);
    ok(db_sqlite.commit(lab.db, &err), &err);
    assert_int_equal(db_sqlite.upkeep.exchanges(lab.db), before + 7);
}

static void query_many_answers_for_each_row_in_turn(void **state)
{
    (void)state;
    insert((int64_t[]){1, 2, 3}, 3);
    struct hf_err err = {0};
    struct db_stmt *stmt = prepare(lab.db, "SELECT t.k FROM t{, rows(low bigint, high bigint)}"
                                           " WHERE t.k >= r.low AND t.k <= r.high ORDER BY t.k");
    struct db_value args[] = {db_int(2), db_int(3), db_int(7), db_int(9),
                              db_int(1), db_int(1), db_int(1), db_int(3)};
    const int64_t want[] = {2, 3, 1, 1, 2, 3};
    for (int repeat = 0; repeat < 2; repeat++) {
        ok(stmt->driver->query_many(stmt, args, 4, &err), &err);
        for (size_t i = 0; i < 6; i++) {
            assert_int_equal(db_step(stmt, &err), DB_ROW);
            assert_int_equal(db_column_int(stmt, 0), want[i]);
        }
        assert_int_equal(db_step(stmt, &err), DB_DONE);
        assert_int_equal(db_step(stmt, &err), DB_DONE);
    }
    ok(stmt->driver->query_many(stmt, NULL, 0, &err), &err);
    assert_int_equal(db_step(stmt, &err), DB_DONE);
}

static void a_query_may_be_ended_early(void **state)
{
    (void)state;
    insert((int64_t[]){1, 2, 3}, 3);
    struct hf_err err = {0};
    struct db_stmt *stmt = prepare(lab.db, "SELECT k FROM t ORDER BY k");
    for (int i = 0; i < 3; i++) {
        ok(db_query(stmt, NULL, &err), &err);
        assert_int_equal(db_step(stmt, &err), DB_ROW);
        assert_int_equal(db_column_int(stmt, 0), 1);
        stmt->driver->finish(stmt);
        stmt->driver->finish(stmt);
        assert_int_equal(db_step(stmt, &err), DB_DONE);
    }
    script("DROP TABLE t"); /* the statement has no open query */
}

static void assert_column(struct db_stmt *stmt, int column, const void *want, size_t want_len)
{
    size_t len = 99;
    const void *data = db_column_data(stmt, column, &len);
    if (!want) {
        assert_null(data);
        assert_int_equal(len, 0);
        return;
    }
    assert_non_null(data);
    assert_int_equal(len, want_len);
    assert_memory_equal(data, want, want_len);
}

static void text_bytes_and_null_come_back_as_they_were(void **state)
{
    (void)state;
    static const char awkward[] = "h\xc3\xa9\0llo '\"\\";
    const struct {
        const char *text;
        size_t text_len;
        const char *bytes;
        size_t bytes_len;
    } rows[] = {
        {"plain", 5, "\x00\xff\x00", 3},
        {awkward, sizeof awkward - 1, awkward, sizeof awkward},
        {"", 0, "", 0},
        {NULL, 0, NULL, 0},
        {NULL, 0, "b", 1},
        {"t", 1, NULL, 0},
    };
    struct hf_err err = {0};
    struct db_stmt *put = prepare(lab.db, "INSERT INTO t (k, v, b) SELECT r.k, r.v, r.b"
                                          "{ FROM rows(k bigint, v text, b bytes)}");
    struct db_value args[6 * 3];
    for (int i = 0; i < 6; i++) {
        args[3 * i] = db_int(i);
        args[3 * i + 1] = db_text(rows[i].text, rows[i].text_len);
        args[3 * i + 2] = db_bytes(rows[i].bytes, rows[i].bytes_len);
    }
    ok(put->driver->exec_many(put, args, 6, NULL, &err), &err);
    struct db_stmt *get = prepare(lab.db, "SELECT k, v, b FROM t ORDER BY k");
    ok(db_query(get, NULL, &err), &err);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(db_step(get, &err), DB_ROW);
        assert_int_equal(db_column_int(get, 0), i);
        assert_column(get, 1, rows[i].text, rows[i].text_len);
        assert_column(get, 2, rows[i].bytes, rows[i].bytes_len);
        size_t len;
        const char *text = db_column_data(get, 1, &len);
        assert_true(!text || text[len] == '\0');
    }
    assert_int_equal(db_step(get, &err), DB_DONE);
}

static void integers_keep_all_their_64_bits(void **state)
{
    (void)state;
    const int64_t values[] = {INT64_MIN, INT64_MIN + 1, -1, 0, INT64_MAX};
    struct hf_err err = {0};
    struct db_stmt *stmt = prepare(lab.db, "SELECT r.x{args(x bigint)}");
    for (size_t i = 0; i < 5; i++) {
        struct db_value args[] = {db_int(values[i])};
        ok(db_query(stmt, args, &err), &err);
        assert_int_equal(db_step(stmt, &err), DB_ROW);
        assert_true(db_column_int(stmt, 0) == values[i]);
    }
}

static void an_invalid_statement_is_our_mistake(void **state)
{
    (void)state;
    struct db_stmt *stmt = NULL;
    struct hf_err err = {0};
    assert_int_equal(lab.db->driver->prepare(lab.db, "SELEKT 1", &stmt, &err), HF_INTERNAL);
    assert_non_null(strstr(err.msg, "SELEKT"));
    assert_int_equal(lab.db->driver->prepare(lab.db, "SELECT r.x", &stmt, &err), HF_INTERNAL);
    assert_int_equal(lab.db->driver->prepare(lab.db, "SELECT x FROM nowhere", &stmt, &err),
                     HF_INTERNAL);
    assert_null(stmt);
    assert_int_equal(lab.db->driver->script(lab.db, "CREATE TABLE t (again text)", &err),
                     HF_INTERNAL);
}

static void a_refused_row_is_reported_and_the_statement_lives_on(void **state)
{
    (void)state;
    struct hf_err err = {0};
    struct db_stmt *stmt =
        prepare(lab.db, "INSERT INTO t (k) SELECT r.k{ FROM rows(k bigint)} WHERE true");
    struct db_value args[] = {db_int(1), db_int(2), db_int(1), db_int(3)};
    int64_t changes = 77;
    ok(lab.db->driver->begin(lab.db, &err), &err);
    assert_int_equal(stmt->driver->exec_many(stmt, args, 4, &changes, &err), HF_INTERNAL);
    assert_non_null(strstr(err.msg, "UNIQUE"));
    assert_int_equal(changes, 77); /* untouched on failure */
    lab.db->driver->rollback(lab.db);
    assert_int_equal(number(lab.db, COUNT), 0);
    ok(stmt->driver->exec_many(stmt, args, 2, &changes, &err), &err);
    assert_int_equal(changes, 2);
}

/* ---- transactions ---- */

static void a_transaction_that_is_rolled_back_leaves_no_trace(void **state)
{
    (void)state;
    struct hf_err err = {0};
    ok(lab.db->driver->begin(lab.db, &err), &err);
    insert((int64_t[]){1, 2}, 2);
    assert_int_equal(number(lab.db, COUNT), 2);
    lab.db->driver->rollback(lab.db);
    assert_int_equal(number(lab.db, COUNT), 0);
    lab.db->driver->rollback(lab.db); /* harmless */
    ok(lab.db->driver->begin(lab.db, &err), &err);
    insert((int64_t[]){1}, 1);
    ok(lab.db->driver->commit(lab.db, &err), &err);
    lab.db->driver->rollback(lab.db); /* too late */
    assert_int_equal(number(lab.db, COUNT), 1);
}

static void a_reader_sees_commits_only_and_one_moment_in_a_transaction(void **state)
{
    (void)state;
    struct hf_err err = {0};
    struct db_options options = reader();
    struct db *other = open_db(&options);
    ok(lab.db->driver->begin(lab.db, &err), &err);
    insert((int64_t[]){1}, 1);
    assert_int_equal(number(other, COUNT), 0);
    ok(lab.db->driver->commit(lab.db, &err), &err);
    assert_int_equal(number(other, COUNT), 1);
    ok(other->driver->begin(other, &err), &err);
    assert_int_equal(number(other, COUNT), 1);
    insert((int64_t[]){2}, 1); /* the writer does not wait for readers */
    assert_int_equal(number(other, COUNT), 1);
    other->driver->rollback(other);
    assert_int_equal(number(other, COUNT), 2);
    struct db_log log;
    ok(other->driver->upkeep.maintain(other, &log, &err), &err);
    assert_int_equal(number(other, COUNT), 2);
    db_close(other);
}

static void a_transaction_within_a_transaction_is_our_mistake(void **state)
{
    (void)state;
    struct hf_err err = {0};
    ok(lab.db->driver->begin(lab.db, &err), &err);
    assert_int_equal(lab.db->driver->begin(lab.db, &err), HF_INTERNAL);
    lab.db->driver->rollback(lab.db);
    assert_int_equal(lab.db->driver->commit(lab.db, &err), HF_INTERNAL);
}

static void a_commit_is_on_disk_when_it_returns(void **state)
{
    (void)state;
    assert_int_equal(number(lab.db, "PRAGMA synchronous"), 2); /* FULL */
    insert((int64_t[]){1, 2, 3}, 3);
    struct db_stmt *mode = prepare(lab.db, "PRAGMA journal_mode");
    struct hf_err err = {0};
    size_t len;
    ok(db_query(mode, NULL, &err), &err);
    assert_int_equal(db_step(mode, &err), DB_ROW);
    assert_string_equal(db_column_data(mode, 0, &len), "wal");
    db_close(lab.db);
    struct db_options options = writer();
    lab.db = open_db(&options);
    assert_int_equal(number(lab.db, COUNT), 3);
}

/* ---- migrations ---- */

static const char *const versions[] = {
    "CREATE TABLE m (k {key}); INSERT INTO m (k) VALUES (1);",
    "ALTER TABLE m ADD COLUMN v text",
    "CREATE TABLE m2 (k {key}); INSERT INTO m2 (k) SELECT k FROM m;",
};

static void a_fresh_file_gets_every_version(void **state)
{
    (void)state;
    struct hf_err err = {0};
    ok(db_migrate(lab.db, versions, 3, &err), &err);
    assert_int_equal(number(lab.db, "SELECT COUNT(*) FROM m2"), 1);
    assert_int_equal(number(lab.db, "SELECT MAX(version) FROM schema_version"), 3);
    ok(db_migrate(lab.db, versions, 3, &err), &err); /* nothing is left to do */
    assert_int_equal(number(lab.db, "SELECT COUNT(*) FROM schema_version"), 3);
}

static void an_old_file_gets_what_it_lacks_and_keeps_its_rows(void **state)
{
    (void)state;
    struct hf_err err = {0};
    ok(db_migrate(lab.db, versions, 1, &err), &err);
    script("INSERT INTO m (k) VALUES (2)");
    ok(db_migrate(lab.db, versions, 3, &err), &err);
    assert_int_equal(number(lab.db, "SELECT COUNT(*) FROM m2"), 2);
}

/* On a server, where each version is cheap, it gets them one by one. */
static void a_fresh_file_may_get_the_newest_version_at_once(void **state)
{
    (void)state;
    const char *const whole =
        "CREATE TABLE m (k {key}, v text); INSERT INTO m (k) VALUES (1);"
        "CREATE TABLE m2 (k {key}); INSERT INTO m2 (k) VALUES (1); CREATE TABLE at_once (k {key});";
    struct hf_err err = {0};
    for (int i = 0; i < 2; i++) {
        ok(db_create(lab.db, whole, versions, 3, &err), &err);
        assert_int_equal(number(lab.db, "SELECT COUNT(*) FROM m2"), 1);
        assert_int_equal(number(lab.db, "SELECT MAX(version) FROM schema_version"), 3);
        assert_int_equal(number(lab.db, "SELECT COUNT(*) FROM schema_version"),
                         on_postgres ? 3 : 1);
        if (!on_postgres)
            assert_int_equal(number(lab.db, "SELECT COUNT(*) FROM at_once"), 0);
    }
}

static void an_old_file_gets_what_it_lacks_though_there_is_a_script_of_all(void **state)
{
    (void)state;
    struct hf_err err = {0};
    ok(db_migrate(lab.db, versions, 1, &err), &err);
    script("INSERT INTO m (k) VALUES (2)");
    ok(db_create(lab.db, "SELEKT", versions, 3, &err), &err);
    assert_int_equal(number(lab.db, "SELECT COUNT(*) FROM m2"), 2);
}

static void a_file_newer_than_the_program_is_refused(void **state)
{
    (void)state;
    struct hf_err err = {0};
    ok(db_migrate(lab.db, versions, 3, &err), &err);
    assert_int_equal(db_migrate(lab.db, versions, 2, &err), HF_STORE_UNAVAILABLE);
    assert_non_null(strstr(err.msg, "version 3"));
    assert_non_null(strstr(err.msg, "program's 2"));
}

static void a_migration_that_fails_leaves_the_version_before_it(void **state)
{
    (void)state;
    const char *const broken[] = {versions[0], "CREATE TABLE half (k {key}); SELEKT;"};
    struct hf_err err = {0};
    assert_int_equal(db_migrate(lab.db, broken, 2, &err), HF_INTERNAL);
    assert_int_equal(number(lab.db, "SELECT MAX(version) FROM schema_version"), 1);
    assert_int_equal(number(lab.db, on_postgres
                                        ? "SELECT COUNT(*) FROM pg_class WHERE relname = 'half'"
                                        : "SELECT COUNT(*) FROM sqlite_master WHERE name = 'half'"),
                     0);
    ok(db_migrate(lab.db, versions, 3, &err), &err);
}

/* ---- opening ---- */

static enum hf_status try_open(const char *url, struct db_options options, struct hf_err *err)
{
    struct db *db = NULL;
    *err = (struct hf_err){0};
    enum hf_status status = db_open(url, &options, &db, err);
    assert_int_equal(db != NULL, status == HF_OK);
    db_close(db);
    return status;
}

static void a_second_writer_is_refused_and_told_the_process_id(void **state)
{
    (void)state;
    struct hf_err err;
    char pid[32];
    snprintf(pid, sizeof pid, " %ld ", (long)getpid());
    for (int i = 0; i < 2; i++) { /* a refused attempt does not release the lock */
        assert_int_equal(try_open(lab.dir.url, writer(), &err), HF_STORE_UNAVAILABLE);
        assert_non_null(strstr(err.msg, pid));
        assert_non_null(strstr(err.msg, lab.dir.db));
    }
    assert_int_equal(try_open(lab.dir.url, reader(), &err), HF_OK);
    db_close(lab.db);
    assert_int_equal(try_open(lab.dir.url, writer(), &err), HF_OK);
    struct db_options options = writer();
    lab.db = open_db(&options);
}

static void the_lock_of_a_dead_server_does_not_count(void **state)
{
    (void)state;
    char name[200];
    struct hf_err err;
    db_close(lab.db);
    snprintf(name, sizeof name, "%s.lock", lab.dir.db);
    int fd = open(name, O_WRONLY | O_TRUNC | O_CREAT, 0600);
    assert_int_equal(write(fd, "999999999", 9), 9);
    close(fd);
    struct db_options options = writer();
    lab.db = open_db(&options);
    assert_int_equal(try_open(lab.dir.url, writer(), &err), HF_STORE_UNAVAILABLE);
    assert_null(strstr(err.msg, "999999999"));
}

static void a_url_without_a_driver_is_refused(void **state)
{
    (void)state;
    struct hf_err err;
    static const char *const urls[] = {"",       "ledger.db", "mysql:x",
                                       "sqlite", "sqlite3:x", "SQLITE:x"};
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        assert_int_equal(try_open(urls[i], writer(), &err), HF_INVALID_REQUEST);
        assert_non_null(strstr(err.msg, "sqlite:"));
    }
    assert_int_equal(try_open("sqlite:", writer(), &err), HF_INVALID_REQUEST);
    char url[5000] = "sqlite:";
    memset(url + 7, 'x', 4500);
    assert_int_equal(try_open(url, writer(), &err), HF_INVALID_REQUEST);
    url[7 + 4095] = '\0'; /* it fits, but not with .lock appended */
    assert_int_equal(try_open(url, writer(), &err), HF_INVALID_REQUEST);
}

static void a_path_that_cannot_be_opened_is_named(void **state)
{
    (void)state;
    char url[256];
    struct hf_err err;
    snprintf(url, sizeof url, "sqlite:%s/no/such", lab.dir.path);
    assert_int_equal(try_open(url, writer(), &err), HF_STORE_UNAVAILABLE);
    assert_non_null(strstr(err.msg, "/no/such"));
    assert_int_equal(try_open(url, reader(), &err), HF_STORE_UNAVAILABLE);
    assert_non_null(strstr(err.msg, "/no/such"));
    snprintf(url, sizeof url, "sqlite:%s/absent", lab.dir.path);
    assert_int_equal(try_open(url, reader(), &err), HF_STORE_UNAVAILABLE); /* creates nothing */
    assert_int_not_equal(access(url + 7, F_OK), 0);
    snprintf(url, sizeof url, "%s?vfs=nobody", lab.dir.url);
    assert_int_equal(try_open(url, reader(), &err), HF_STORE_UNAVAILABLE);
    snprintf(url, sizeof url, "%s?vfs=unix", lab.dir.url);
    assert_int_equal(try_open(url, reader(), &err), HF_OK);
}

static void a_file_that_is_no_database_is_refused(void **state)
{
    (void)state;
    char url[256];
    struct hf_err err;
    snprintf(url, sizeof url, "sqlite:%s/letter", lab.dir.path);
    int fd = open(url + 7, O_WRONLY | O_CREAT, 0600);
    for (int i = 0; i < 100; i++)
        assert_int_equal(write(fd, "Dear Sir or Madam, we regret\n", 29), 29);
    close(fd);
    assert_int_equal(try_open(url, writer(), &err), HF_STORE_UNAVAILABLE);
    assert_non_null(strstr(err.msg, "not a database"));
}

static void closing_nothing_is_harmless(void **state)
{
    (void)state;
    db_close(NULL);
    db_sqlite.close(NULL);
}

/* ---- time ---- */

static int64_t now(struct db *db)
{
    int64_t ms;
    struct hf_err err = {0};
    ok(db->driver->now_ms(db, &ms, &err), &err);
    return ms;
}

static void time_begins_at_the_wall_clock_and_goes_on_without_it(void **state)
{
    (void)state;
    assert_int_equal(now(lab.db), T0_MS);
    clock_fake_advance(&lab.clock, 1500 * 1000);
    assert_int_equal(now(lab.db), T0_MS + 1500);
    clock_fake_step(&lab.clock, -HOUR_MS * 1000);
    assert_int_equal(now(lab.db), T0_MS + 1500);
    clock_fake_step(&lab.clock, 5 * HOUR_MS * 1000);
    assert_int_equal(now(lab.db), T0_MS + 1500);
    clock_fake_advance(&lab.clock, 1000);
    assert_int_equal(now(lab.db), T0_MS + 1501);
    struct db_options options = reader();
    struct db *other = open_db(&options); /* it was opened now, so it has the wall clock of now */
    assert_int_equal(now(other), T0_MS + 1501 + 4 * HOUR_MS);
    db_close(other);
}

static void time_is_never_before_what_was_stored(void **state)
{
    (void)state;
    lab.db->driver->now_floor(lab.db, T0_MS - 1);
    assert_int_equal(now(lab.db), T0_MS);
    lab.db->driver->now_floor(lab.db, T0_MS + HOUR_MS);
    assert_int_equal(now(lab.db), T0_MS + HOUR_MS);
    clock_fake_advance(&lab.clock, 1000 * 1000);
    assert_int_equal(now(lab.db), T0_MS + HOUR_MS + 1000); /* and goes on from there */
    lab.db->driver->now_floor(lab.db, T0_MS + HOUR_MS + 999);
    assert_int_equal(now(lab.db), T0_MS + HOUR_MS + 1000);
}

#define claim(name) cmocka_unit_test_setup_teardown(name, open_lab, close_lab)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_without_braces_is_left_alone),
        cmocka_unit_test(rows_vanish_and_their_columns_become_parameters),
        cmocka_unit_test(args_at_the_end_vanish),
        cmocka_unit_test(a_parameter_may_be_declared_and_not_used),
        cmocka_unit_test(names_are_matched_whole),
        cmocka_unit_test(a_list_may_run_over_lines),
        cmocka_unit_test(fragments_are_replaced_by_the_driver_s_words),
        cmocka_unit_test(rows_that_are_sent_as_arrays_are_unnested),
        cmocka_unit_test(the_text_is_appended),
        cmocka_unit_test(there_may_be_32_parameters_and_no_more),
        cmocka_unit_test(a_wrong_template_is_our_mistake),
        claim(exec_many_counts_the_rows_it_changed),
        claim(statements_are_counted_one_per_row),
        claim(query_many_answers_for_each_row_in_turn),
        claim(a_query_may_be_ended_early),
        claim(text_bytes_and_null_come_back_as_they_were),
        claim(integers_keep_all_their_64_bits),
        claim(an_invalid_statement_is_our_mistake),
        claim(a_refused_row_is_reported_and_the_statement_lives_on),
        claim(a_transaction_that_is_rolled_back_leaves_no_trace),
        claim(a_reader_sees_commits_only_and_one_moment_in_a_transaction),
        claim(a_transaction_within_a_transaction_is_our_mistake),
        claim(a_commit_is_on_disk_when_it_returns),
        claim(a_fresh_file_gets_every_version),
        claim(an_old_file_gets_what_it_lacks_and_keeps_its_rows),
        claim(a_file_newer_than_the_program_is_refused),
        claim(a_fresh_file_may_get_the_newest_version_at_once),
        claim(an_old_file_gets_what_it_lacks_though_there_is_a_script_of_all),
        claim(a_migration_that_fails_leaves_the_version_before_it),
        claim(a_second_writer_is_refused_and_told_the_process_id),
        claim(the_lock_of_a_dead_server_does_not_count),
        claim(a_url_without_a_driver_is_refused),
        claim(a_path_that_cannot_be_opened_is_named),
        claim(a_file_that_is_no_database_is_refused),
        cmocka_unit_test(closing_nothing_is_harmless),
        claim(time_begins_at_the_wall_clock_and_goes_on_without_it),
        claim(time_is_never_before_what_was_stored),
    };
    const struct CMUnitTest of_all[] = {
        claim(a_query_may_be_ended_early),
        claim(integers_keep_all_their_64_bits),
        claim(a_transaction_that_is_rolled_back_leaves_no_trace),
        claim(a_reader_sees_commits_only_and_one_moment_in_a_transaction),
        claim(a_transaction_within_a_transaction_is_our_mistake),
        claim(a_fresh_file_gets_every_version),
        claim(an_old_file_gets_what_it_lacks_and_keeps_its_rows),
        claim(a_file_newer_than_the_program_is_refused),
        claim(a_fresh_file_may_get_the_newest_version_at_once),
        claim(an_old_file_gets_what_it_lacks_though_there_is_a_script_of_all),
        claim(a_migration_that_fails_leaves_the_version_before_it),
    };
    int failed = cmocka_run_group_tests_name("db", tests, NULL, NULL);
    on_postgres = true;
    return failed + cmocka_run_group_tests_name("db, PostgreSQL", of_all, NULL, NULL);
}
