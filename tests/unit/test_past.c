/* Claims about maps of past moments: from the view and the log's later rows, or from an older map
 * and the rows up to the moment, comes the map as it was.  A random history is played by the real
 * rules on the paper ledger (tests/support/paper.c), and the map after each step is noted. */
#include "support/paper.h"

#include <stdlib.h>
#include <string.h>

#include "view/past.h"

#define SEATS 24
#define AREAS 2
#define STEPS 600
#define LIVE_MAX 64

struct moment {
    int64_t at, seq;
    uint8_t seats[SEATS];
    int64_t available[AREAS];
    enum event_status status;
};

struct grant {
    struct id id;
    int64_t fence;
};

static struct paper paper;
static struct event *hall;
static struct moment moments[STEPS + 1];
static size_t n_moments;
static struct grant live[LIVE_MAX];
static size_t n_live;
static struct id sold[LIVE_MAX];
static size_t n_sold;

static int setup(void **state)
{
    (void)state;
    paper_init(&paper, test_seed(17));
    struct event_def *def = def_hall(4, SEATS / 4);
    def_area(def, "Floor", 700, 20);
    def_area(def, "Box", 9000, 6);
    hall = paper_event(&paper, def);
    n_moments = n_live = n_sold = 0;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    paper_close(&paper);
    return 0;
}

/* ---- the history ---- */

/* Notes the map of this moment: the state as decided, but for holds that are due. */
static void note(void)
{
    struct moment *m = &moments[n_moments++];
    *m = (struct moment){.at = paper.now, .seq = hall->shown.seq, .status = hall->status_draft};
    for (uint32_t i = 0; i < SEATS; i++)
        m->seats[i] = hall->seats[i].status;
    for (size_t i = 0; i < AREAS; i++)
        m->available[i] = hall->areas[i].available;
    const struct sim_event *stored = sim_event(&paper.ledger, 1);
    for (size_t i = 0; i < stored->holds.n; i++) {
        const struct hold_row *row = &stored->holds.v[i].row;
        if (row->status != HOLD_ACTIVE || row->expires_at > paper.now)
            continue;
        for (uint32_t s = 0; s < row->n_seats; s++)
            m->seats[row->seats[s]] =
                hall->seats[row->seats[s]].channel ? SEAT_BLOCKED : SEAT_AVAILABLE;
        for (uint32_t a = 0; a < row->n_areas && !row->channel; a++)
            m->available[row->areas[a].area] += row->areas[a].quantity;
    }
}

static uint32_t below(uint32_t n) { return (uint32_t)random_below(&paper.random, n); }

static void run(struct ask *a)
{
    bool is_made = paper_run(&paper, a) == VERDICT_CREATED;
    if (is_made && a->c.kind == CMD_HOLD_CREATE && n_live < LIVE_MAX)
        live[n_live++] = (struct grant){command_hold(&a->c)->id, command_hold(&a->c)->fence};
    if (is_made && a->c.kind == CMD_HOLD_CONFIRM && n_sold < LIVE_MAX)
        sold[n_sold++] = command_booking(&a->c)->id;
    ask_close(a);
}

static void make_hold(struct ask *a)
{
    uint32_t first = below(SEATS - 2);
    uint32_t seats[] = {first, first + 1, first + 2};
    if (below(4))
        ask_create_n(a, hall, seats, 1 + below(3));
    else
        ask_create_none(a, hall);
    if (a->c.create.n_seats == 0 || !below(2))
        ask_area(a, below(AREAS), 1 + below(2));
    if (!below(6))
        a->c.create.channel = 1;
}

static void end_or_change(struct ask *a, uint32_t what)
{
    uint32_t index = below((uint32_t)n_live);
    const struct grant g = live[index];
    switch (what) {
    case 0:
        ask_release(a, hall, &g.id);
        live[index] = live[--n_live];
        break;
    case 1:
        ask_confirm(a, hall, &g.id, g.fence, below(2));
        live[index] = live[--n_live];
        break;
    case 2:
        ask_renew(a, hall, &g.id, 0);
        break;
    default:
        ask_change(a, hall, &g.id, g.fence);
        ask_add(a, below(SEATS));
        ask_area(a, below(AREAS), 1);
        break;
    }
}

static void block(struct ask *a)
{
    enum command_kind kind = below(2) ? CMD_SEATS_BLOCK : CMD_SEATS_UNBLOCK;
    ask_seats(a, kind, hall, below(SEATS));
    if (!below(3))
        ask_area(a, below(AREAS), 1);
    if (kind == CMD_SEATS_BLOCK && !below(2))
        ask_channel(a, "house");
}

static void step(void)
{
    struct ask a;
    uint32_t what = below(13);
    paper.now += 1 + below(1500);
    paper.expire_max = below(3) ? 0 : 16; /* due holds often stay for a while */
    if (what < 5)
        make_hold(&a);
    else if (what < 9 && n_live)
        end_or_change(&a, what - 5);
    else if (what < 11 && n_sold > 2)
        ask_cancel(&a, hall, &sold[--n_sold]);
    else if (what < 12)
        block(&a);
    else
        ask_event(&a, below(3) ? CMD_EVENT_OPEN : CMD_EVENT_CLOSE, hall);
    run(&a);
    note();
}

static void play(void)
{
    note();
    for (int i = 0; i < STEPS; i++)
        step();
    paper.now += HOUR_MS;
    paper.expire_max = LIVE_MAX; /* all that is due ends */
    paper_begin(&paper);
    paper_commit(&paper);
    paper_check(&paper);
}

/* ---- claims ---- */

static void assert_map(const struct past_map *p, const struct moment *m)
{
    assert_int_equal(p->map.at, m->at);
    assert_memory_equal(p->map.seats, m->seats, SEATS);
    for (size_t i = 0; i < AREAS; i++)
        assert_int_equal(p->map.available[i], m->available[i]);
    assert_int_equal(p->map.status, m->status);
}

static void rows_after_the_moment_are_taken_back(void **state)
{
    (void)state;
    size_t seen[SEAT_BLOCKED + 1] = {0};
    play();
    for (size_t i = 0; i < n_moments; i++) {
        struct past_map p;
        past_map_begin(&p, hall, moments[i].at);
        assert_int_equal(p.map.seq, hall->shown.seq);
        for (size_t r = 0; r < paper.audit.n; r++)
            if (paper.audit.v[r].at > moments[i].at)
                assert_true(past_map_undo(&p, &paper.audit.v[r]));
        assert_map(&p, &moments[i]);
        past_map_close(&p);
        for (uint32_t s = 0; s < SEATS; s++)
            seen[moments[i].seats[s]]++;
    }
    for (int i = 0; i <= SEAT_BLOCKED; i++)
        assert_true(seen[i] > STEPS / 4); /* the history is of some interest */
}

/* Maps as the view of a server that is behind would show them. */
static struct past_map behind[STEPS];

static void rows_that_the_view_does_not_show_yet_are_added(void **state)
{
    (void)state;
    const size_t ahead = 3;
    note();
    for (size_t i = 0; i < STEPS; i++) {
        past_map_begin(&behind[i], hall, 0);
        step();
        if (!below(2)) { /* nothing is due for a while */
            paper.expire_max = LIVE_MAX;
            paper_begin(&paper);
            paper_commit(&paper);
        }
    }
    size_t compared = 0;
    for (size_t i = 0; i < STEPS; i++) {
        const struct moment *m = &moments[i + ahead < n_moments ? i + ahead : n_moments - 1];
        struct past_map *p = &behind[i];
        bool is_exact = true; /* a hold that falls due meanwhile is not known to the rows */
        p->map.at = m->at;
        for (size_t r = 0; r < paper.audit.n; r++) {
            const struct audit_row *row = &paper.audit.v[r];
            if (row->object == AUDIT_HOLD && row->until <= m->at && row->at > m->at)
                is_exact = false;
            if (row->seq > p->map.seq && row->at <= m->at)
                assert_true(past_map_redo(p, row));
        }
        const struct sim_event *stored = sim_event(&paper.ledger, 1);
        for (size_t h = 0; h < stored->holds.n; h++)
            if (stored->holds.v[h].row.status == HOLD_ACTIVE &&
                stored->holds.v[h].row.expires_at <= m->at)
                is_exact = false;
        if (is_exact) {
            assert_map(p, m);
            compared++;
        }
        past_map_close(p);
    }
    assert_true(compared > STEPS / 10);
}

static void a_row_about_a_place_that_does_not_exist_is_noticed(void **state)
{
    (void)state;
    struct past_map p;
    struct audit_row row = {.object = AUDIT_SEAT, .item = SEATS, .from = SEAT_HELD};
    past_map_begin(&p, hall, paper.now);
    assert_false(past_map_undo(&p, &row));
    assert_false(past_map_redo(&p, &row));
    row.item = -1;
    assert_false(past_map_undo(&p, &row));
    row.object = AUDIT_AREA;
    row.item = AREAS;
    assert_false(past_map_undo(&p, &row));
    assert_false(past_map_redo(&p, &row));
    past_map_close(&p);
}

int main(void)
{
#define CLAIM(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CLAIM(rows_after_the_moment_are_taken_back),
        CLAIM(rows_that_the_view_does_not_show_yet_are_added),
        CLAIM(a_row_about_a_place_that_does_not_exist_is_noticed),
    };
    return cmocka_run_group_tests_name("past", tests, NULL, NULL);
}
