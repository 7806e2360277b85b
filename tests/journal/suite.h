/* One suite over every driver of the journal, which uses cell/journal.h only.  The engine is
 * started once; each claim begins with an empty journal and two handles to it, as two servers have.
 * Where the journal is for one server both are the same handle: what a mastership may do is a
 * matter of its mandate, and mandates are data.
 *
 * Include this header first: it includes cmocka and what cmocka needs before it. */
#ifndef HF_TESTS_JOURNAL_SUITE_H
#define HF_TESTS_JOURNAL_SUITE_H

#include "support/fixtures.h"

#include <stdio.h>

#include "cell/journal.h"
#include "support/process.h"

struct engine {
    const struct journal_driver *driver;
    char url[256];
    void (*start)(struct engine *e);
    void (*stop)(struct engine *e);
    /* Forgets everything that is stored; no handle is open.  May change the URL. */
    void (*fresh)(struct engine *e);
    /* Ends the engine at once and starts it again; NULL: it has no processes. */
    void (*restart)(struct engine *e);
    void (*freeze)(struct engine *e, bool frozen); /* NULL: it has no processes */
    /* Makes the URL of the same journal at another port of 127.0.0.1; NULL: it has no port. */
    void (*url_at)(struct engine *e, int port, char *ret, size_t size);
    int port;
    int64_t (*count_chunks)(struct engine *e); /* that are stored; NULL: not known */
    bool in_memory;                            /* other processes cannot use it */
    int n_entries;                             /* of a long log, unless HF_ENTRIES says how many */
    const struct CMUnitTest *own_claims;       /* ends with a NULL name; NULL: none */
};

struct world {
    struct engine *engine;
    struct journal *a, *b; /* the same, if the journal is not shared */
};

/* Runs the suite and returns its exit status. */
int suite_run(struct engine *e);
/* The parts of the suite; each list ends with a NULL name. */
extern const struct CMUnitTest entries_claims[], snapshots_claims[], masters_claims[],
    model_claims[], faults_claims[];

int world_open(void **state);
int world_close(void **state);
#define CLAIM(f) cmocka_unit_test_setup_teardown(f, world_open, world_close)
#define CLAIMS_END                                                                                 \
    {                                                                                              \
        .name = NULL                                                                               \
    }

/* ---- handles ---- */

#define SLOW_MS 20000 /* the time of a call that must succeed, however busy the machine is */
/* Opens a handle whose calls may take this long.  Opening is repeated, since on a busy machine it may
 * take longer. */
struct journal *handle_open(const char *url, int64_t timeout_ms);
void handle_close(struct journal *j);
/* Opens both handles of the world again, as servers that start do. */
void world_reopen(struct world *w);

/* ---- calls ---- */

/* A mandate whose claim id consists of this byte. */
struct journal_mandate mandate(int64_t epoch, uint8_t who);
/* The id of an entry of this server for this index. */
void id_make(uint8_t ret[JOURNAL_ID_SIZE], int64_t index, uint8_t who);

/* The calls of journal.h, with what most claims do not care about filled in.  Entries have the id
 * of id_make(index, m->claim[0]). */
enum journal_result claim(struct journal *j, const struct journal_mandate *m);
enum journal_result append(struct journal *j, const struct journal_mandate *m, int64_t index,
                           const char *text);
enum journal_result append_bytes(struct journal *j, const struct journal_mandate *m, int64_t index,
                                 const void *data, size_t len);
enum journal_result put_chunk(struct journal *j, const struct journal_mandate *m, int64_t index,
                              int64_t no, const char *text);
enum journal_result point(struct journal *j, const struct journal_mandate *m, int64_t index,
                          int64_t n_chunks);
enum journal_result trim(struct journal *j, const struct journal_mandate *m); /* until no more */
/* A snapshot of one chunk. */
void take_snapshot(struct journal *j, const struct journal_mandate *m, int64_t index,
                   const char *text);
/* Repeats a call while it is JOURNAL_UNKNOWN or JOURNAL_UNREACHABLE, as a node does. */
#define again(ret, call)                                                                           \
    for (int64_t end_ms_ = now_ms() + SLOW_MS; must_repeat((ret) = (call), end_ms_);)              \
    rest_ms(10)
bool must_repeat(enum journal_result result, int64_t end_ms);
/* Why the last of these calls failed. */
extern struct hf_err last_err;

#define expect(result, expected) expect_at((result), (expected), __FILE__, __LINE__)
void expect_at(enum journal_result result, enum journal_result expected, const char *file,
               int line);

struct journal_head head_of(struct journal *j);
/* The entries after `after` are these texts, ended by NULL, and no others. */
void assert_entries(struct journal *j, int64_t after, const char *const *texts);
/* The newest snapshot is that after `index`, with this text. */
void assert_snapshot(struct journal *j, int64_t index, const char *text);

/* ---- time and processes ---- */

int64_t now_ms(void);
void rest_ms(int64_t ms);
/* Starts tests/journal/appender.c; *ret_out reads what it prints. */
int appender_start(const char *url, int64_t epoch, size_t entry_bytes, FILE **ret_out);

#endif
