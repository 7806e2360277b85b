/* Claims about fork(): what the parent opened is refused in the child, which would otherwise act
 * with the parent's owners and fences, and nothing that the child does harms the parent.  Exit
 * codes of the child are lines of this file; 0 is success. */
#include "support/fixtures.h"

#include "support/lock.h"
#include "support/process.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>

struct scene {
    struct temp_dir dir;
    struct hf_locks *locks;
    struct hf_lock *lock;
    struct hf_lock_set *set;
    struct hf_grant grant;
};

static int set_up(void **state)
{
    struct scene *s = calloc(1, sizeof *s);
    struct hf_lock_options want = HF_LOCK_OPTIONS(.ttl_ms = 20000, .label = "the parent");
    assert_non_null(s);
    temp_dir_make(&s->dir);
    assert_int_equal(hf_open(s->dir.url, NULL, &s->locks, NULL), HF_DONE);
    assert_int_equal(hf_lock(s->locks, "a", &want, &s->lock, NULL), HF_DONE);
    assert_int_equal(
        hf_lock_many(s->locks, (const char *const[]){"b", "c"}, 2, &want, &s->set, NULL), HF_DONE);
    s->grant = (struct hf_grant)HF_GRANT_INIT;
    assert_int_equal(hf_lease_get(s->locks, "d", &want, &s->grant, NULL), HF_DONE);
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *s = *state;
    hf_close(s->locks);
    temp_dir_remove(&s->dir);
    free(s);
    return 0;
}

/* Runs `child` in a forked process and returns its exit code. */
static int in_child(int (*child)(struct scene *s), struct scene *s)
{
    pid_t pid = process_fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves no process behind */
        _exit(child(s));
    }
    assert_true(pid > 0);
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return __LINE__ & 255 ? __LINE__ & 255 : 1;                                            \
    } while (0)
/* Refused, with a sentence that says why. */
#define CHECK_REFUSED(call)                                                                        \
    do {                                                                                           \
        fault = (struct hf_fault){HF_DONE, ""};                                                    \
        CHECK((call) == HF_BAD_REQUEST && fault.result == HF_BAD_REQUEST);                         \
        CHECK(strstr(fault.msg, "fork"));                                                          \
    } while (0)

static bool no_name(void *ctx, const char *name)
{
    (void)ctx, (void)name;
    return false;
}

static void no_finding(void *ctx, const struct hf_finding *finding) { (void)ctx, (void)finding; }

static void no_term(struct hf_lock *lock, void *ctx) { (void)lock, (void)ctx; }

static int ask_for_everything(struct scene *s)
{
    struct hf_fault fault;
    struct hf_lock *lock = NULL;
    struct hf_lock_set *set = NULL;
    struct hf_grant grant = HF_GRANT_INIT;
    struct hf_lock_state state = HF_LOCK_STATE_INIT;
    struct hf_election election = HF_ELECTION(.name = "free", .lead = no_term);
    CHECK_REFUSED(hf_lock(s->locks, "free", NULL, &lock, &fault));
    CHECK_REFUSED(hf_lock_many(s->locks, (const char *const[]){"free"}, 1, NULL, &set, &fault));
    CHECK_REFUSED(hf_elect(s->locks, &election, &fault));
    CHECK_REFUSED(hf_renew(s->lock, &fault));
    CHECK_REFUSED(hf_renew(hf_lock_set_at(s->set, 0), &fault));
    CHECK_REFUSED(hf_lease_get(s->locks, "free", NULL, &grant, &fault));
    CHECK_REFUSED(hf_lease_renew(s->locks, "d", s->grant.owner, 20000, &grant, &fault));
    CHECK_REFUSED(hf_lease_release(s->locks, "d", s->grant.owner, &fault));
    CHECK_REFUSED(hf_inspect(s->locks, "a", &state, &fault));
    CHECK_REFUSED(hf_list(s->locks, "", no_name, NULL, &fault));
    CHECK_REFUSED(hf_break(s->locks, "a", &fault));
    CHECK_REFUSED(hf_examine(s->locks, no_finding, NULL, &fault));
    CHECK(!lock && !set);
    return 0;
}

static int believe_nothing(struct scene *s)
{
    CHECK(!hf_lock_held(s->lock));
    CHECK(!hf_lock_held(hf_lock_set_at(s->set, 0)));
    return 0;
}

static int free_everything(struct scene *s)
{
    struct hf_fault fault;
    CHECK_REFUSED(hf_unlock(s->lock, &fault));
    CHECK_REFUSED(hf_unlock_many(s->set, &fault));
    hf_close(s->locks);
    return 0;
}

/* An own handle sees the parent as another holder.  (It does not ask for a lock here, since the
 * thread sanitizer allows no threads in the forked child of a process with threads.) */
static int open_own(struct scene *s)
{
    struct hf_locks *own = NULL;
    struct hf_lock_state state = HF_LOCK_STATE_INIT;
    CHECK(hf_open(s->dir.url, NULL, &own, NULL) == HF_DONE);
    CHECK(hf_inspect(own, "a", &state, NULL) == HF_DONE);
    CHECK(state.n_holders == 1 && strcmp(state.holders[0]->label, "the parent") == 0);
    hf_lock_state_close(&state);
    hf_close(own);
    return 0;
}

static void the_parent_is_unharmed(struct scene *s, int64_t fence)
{
    struct hf_lock *second = NULL;
    assert_true(hf_lock_held(s->lock));
    assert_int_equal(hf_renew(s->lock, NULL), HF_DONE);
    assert_int_equal(hf_lock_fence(s->lock), fence);
    assert_int_equal(hf_lock(s->locks, "a", NULL, &second, NULL), HF_TAKEN);
    assert_true(hf_lock_held(hf_lock_set_at(s->set, 0)));
    assert_true(hf_lock_held(hf_lock_set_at(s->set, 1)));
    assert_int_equal(hf_lease_release(s->locks, "d", s->grant.owner, NULL), HF_DONE);
    assert_int_equal(hf_unlock_many(s->set, NULL), HF_DONE);
    assert_int_equal(hf_unlock(s->lock, NULL), HF_DONE);
    assert_int_equal(hf_lock(s->locks, "a", NULL, &second, NULL), HF_DONE);
    assert_true(hf_lock_fence(second) > fence);
    assert_int_equal(hf_unlock(second, NULL), HF_DONE);
}

static void a_child_is_refused_whatever_it_asks_for(void **state)
{
    struct scene *s = *state;
    int64_t fence = hf_lock_fence(s->lock);
    assert_int_equal(in_child(ask_for_everything, s), 0);
    the_parent_is_unharmed(s, fence);
}

static void a_child_does_not_believe_that_it_holds_the_parents_lock(void **state)
{
    struct scene *s = *state;
    int64_t fence = hf_lock_fence(s->lock);
    assert_int_equal(in_child(believe_nothing, s), 0);
    the_parent_is_unharmed(s, fence);
}

static void a_child_that_frees_everything_takes_nothing_from_the_parent(void **state)
{
    struct scene *s = *state;
    int64_t fence = hf_lock_fence(s->lock);
    assert_int_equal(in_child(free_everything, s), 0);
    the_parent_is_unharmed(s, fence);
}

static void a_child_can_open_its_own(void **state)
{
    struct scene *s = *state;
    int64_t fence = hf_lock_fence(s->lock);
    assert_int_equal(in_child(open_own, s), 0);
    the_parent_is_unharmed(s, fence);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_child_is_refused_whatever_it_asks_for, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_child_does_not_believe_that_it_holds_the_parents_lock,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_child_that_frees_everything_takes_nothing_from_the_parent,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_child_can_open_its_own, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
