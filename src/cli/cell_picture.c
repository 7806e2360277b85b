/* See cell_picture.h. */
#include "cli/cell_picture.h"

#include <string.h>

#include "cli/common.h"
#include "cli/render.h"

#define BLOCKERS_SHOWN 2

static json_int_t number(const json_t *object, const char *member)
{
    return json_integer_value(json_object_get(object, member));
}

/* ---- gathering ---- */

/* Inserts a row, which it takes over, into a list that is sorted by this member, the largest first,
 * and cuts the list. */
static void insert(json_t *rows, json_t *row, const char *member)
{
    size_t at = json_array_size(rows);
    while (at > 0 && number(json_array_get(rows, at - 1), member) < number(row, member))
        at--;
    json_array_insert_new(rows, at, row);
    if (json_array_size(rows) > PICTURE_ROWS)
        json_array_remove(rows, PICTURE_ROWS);
}

static void add_waiters(struct cell_picture *p, const json_t *lock)
{
    const json_t *waiters = json_object_get(lock, "waiters"), *waiter;
    size_t i;
    json_array_foreach((json_t *)waiters, i, waiter)
    {
        json_t *row = json_copy((json_t *)waiter);
        json_object_set(row, "name", json_object_get(lock, "name"));
        insert(p->waits, row, "waited_ms");
    }
}

void picture_add(struct cell_picture *p, const json_t *page)
{
    const json_t *locks = json_object_get(page, "data"), *lock;
    size_t i;
    if (!p->busiest) {
        p->busiest = json_array();
        p->waits = json_array();
    }
    json_array_foreach((json_t *)locks, i, lock)
    {
        json_t *row = json_object();
        static const char *const members[] = {"name", "n_waiters", "n_holders", "holders", NULL};
        for (size_t m = 0; members[m]; m++)
            json_object_set(row, members[m], json_object_get(lock, members[m]));
        insert(p->busiest, row, "n_waiters");
        add_waiters(p, lock);
    }
}

const char *picture_master(const struct cell_picture *p)
{
    return json_string_value(json_object_get(json_object_get(p->cell, "master"), "url"));
}

void picture_close(struct cell_picture *p)
{
    json_decref(p->cell);
    json_decref(p->busiest);
    json_decref(p->waits);
    *p = (struct cell_picture){0};
}

json_t *picture_json(const struct cell_picture *p)
{
    json_t *object = json_pack("{s:O}", "cell", p->cell);
    json_object_set_new(object, "busiest", p->busiest ? json_incref(p->busiest) : json_null());
    json_object_set_new(object, "waits", p->waits ? json_incref(p->waits) : json_null());
    json_object_set_new(object, "is_cut", json_boolean(p->is_cut));
    return object;
}

/* ---- text ---- */

static void put_count(struct buf *b, json_int_t n, const char *one, const char *many)
{
    buf_int(b, n);
    buf_char(b, ' ');
    buf_str(b, n == 1 ? one : many);
}

static void put_summary(struct buf *b, const struct cell_picture *p)
{
    const json_t *journal = json_object_get(p->cell, "journal");
    const char *master = picture_master(p);
    if (master) {
        buf_lit(b, "The master is ");
        render_text(b, master, strlen(master));
    } else {
        buf_lit(b, "There is no master, so nothing is granted");
    }
    buf_printf(b, " (epoch %lld).", (long long)number(p->cell, "epoch"));
    if (json_is_string(journal)) {
        buf_lit(b, " The journal is in ");
        render_value(b, journal);
        buf_char(b, '.');
    }
    if (json_is_false(json_object_get(p->cell, "journal_answers"))) {
        buf_lit(b, "\nThe journal does not answer ");
        render_value(b, json_object_get(p->cell, "url"));
        buf_lit(b, ", which may know less than other servers.");
    }
    buf_char(b, '\n');
    put_count(b, number(p->cell, "sessions"), "session", "sessions");
    buf_lit(b, ", ");
    put_count(b, number(p->cell, "held"), "lock held", "locks held");
    buf_lit(b, ", ");
    put_count(b, number(p->cell, "waiting"), "waiter", "waiters");
    buf_lit(b, ".\n\n");
}

/* A label, or a dash, as a new text. */
static json_t *label_of(const json_t *person)
{
    const json_t *label = json_object_get(person, "label");
    return json_is_string(label) ? json_incref((json_t *)label) : json_string("no label");
}

/* "ann, bob, and 3 more".  Of another name: "payments (ann)". */
static json_t *people_text(const json_t *people, json_int_t n, const json_t *own_name)
{
    struct buf b = {0};
    const json_t *person;
    size_t i;
    json_array_foreach((json_t *)people, i, person)
    {
        const json_t *name = json_object_get(person, "name");
        bool is_elsewhere = own_name && name && !json_equal((json_t *)name, (json_t *)own_name);
        json_t *label = label_of(person);
        if (i == BLOCKERS_SHOWN) {
            json_decref(label);
            break;
        }
        buf_str(&b, i ? ", " : "");
        if (is_elsewhere)
            buf_put(&b, json_string_value(name), json_string_length(name));
        buf_str(&b, is_elsewhere ? " (" : "");
        buf_put(&b, json_string_value(label), json_string_length(label));
        buf_str(&b, is_elsewhere ? ")" : "");
        json_decref(label);
    }
    if (n > BLOCKERS_SHOWN)
        buf_printf(&b, ", and %lld more", (long long)n - BLOCKERS_SHOWN);
    json_t *text = b.len ? json_stringn(b.data, b.len) : json_null();
    buf_close(&b);
    return text;
}

static void put_busiest(struct buf *b, const json_t *busiest)
{
    static const char *const columns[] = {"most awaited", "waiters", "holders", "held by", NULL};
    json_t *rows = json_array();
    const json_t *row;
    size_t i;
    json_array_foreach((json_t *)busiest, i, row)
    {
        const json_t *holders = json_object_get(row, "holders");
        json_array_append_new(
            rows, json_pack("{s:O,s:O,s:O,s:o}", columns[0], json_object_get(row, "name"),
                            columns[1], json_object_get(row, "n_waiters"), columns[2],
                            json_object_get(row, "n_holders"), columns[3],
                            people_text(holders, number(row, "n_holders"), NULL)));
    }
    render_table(b, rows, columns, true);
    json_decref(rows);
}

static void put_waits(struct buf *b, const json_t *waits)
{
    static const char *const columns[] = {"longest waits", "waiter", "waited", "waits for", NULL};
    json_t *rows = json_array();
    const json_t *row;
    size_t i;
    json_array_foreach((json_t *)waits, i, row)
    {
        const json_t *name = json_object_get(row, "name"),
                     *waited = json_object_get(row, "waited_ms"),
                     *blockers = json_object_get(row, "waits_for");
        char time[32] = "-";
        if (json_is_integer(waited))
            cli_rough_time(time, json_integer_value(waited));
        json_array_append_new(
            rows, json_pack("{s:O,s:o,s:s,s:o}", columns[0], name, columns[1], label_of(row),
                            columns[2], time, columns[3],
                            people_text(blockers, (json_int_t)json_array_size(blockers), name)));
    }
    render_table(b, rows, columns, true);
    json_decref(rows);
}

void picture_render(struct buf *b, const struct cell_picture *p)
{
    static const char *const columns[] = {"url", "role", "index", "lag", NULL};
    put_summary(b, p);
    render_table(b, json_object_get(p->cell, "servers"), columns, true);
    buf_char(b, '\n');
    if (!p->busiest) {
        buf_lit(b, "What is awaited is not known: no server that knows it can be reached.\n");
    } else if (json_array_size(p->busiest) == 0) {
        buf_lit(b, "Nobody waits for a lock.\n");
    } else {
        put_busiest(b, p->busiest);
        buf_char(b, '\n');
        put_waits(b, p->waits);
    }
    if (p->is_standbys)
        buf_lit(b, "A standby was asked; only the master knows how long waits have lasted.\n");
    if (p->is_cut)
        buf_lit(b, "More names are awaited than were looked at.\n");
}
