/* The part of the native driver (native_driver.mjs) that has the locks: what the scenarios of
 * clients/conformance ask of locks is done by libholdfast, through include/holdfast.h alone.
 *
 * Requests are lines of JSON on stdin and answers are lines on stdout, as README.md there says.
 * Each request has a thread of its own, but those of one agent are carried out by one thread in
 * their order, because the library tells the service which thread waits.
 *
 * One mutex guards the tables of clients, locks and agents.  A client is in use while a request
 * counts in `n_calls`; close_client waits until none does. */
#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "holdfast.h"

#define THINGS_MAX 4096
#define NAMES_MAX 64
#define LOOK_MS 100 /* how often a wait for a loss looks whether its client is to be closed */

struct client {
    char *url;
    int64_t timeout_ms;
    struct hf_locks *locks; /* opened by the first request that needs it */
    struct hf_cancel *cancel;
    int n_calls;
};

struct held {
    struct client *client;
    struct hf_lock *lock;    /* NULL: a set */
    struct hf_lock_set *set; /* NULL: one lock */
};

struct agent {
    json_t *requests; /* not begun yet, oldest first */
};

enum kind { CLIENT, HELD, AGENT };

/* What requests have named. */
struct thing {
    enum kind kind;
    char *name; /* NULL: free */
    void *it;
};

static struct thing things[THINGS_MAX];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void *must(void *p)
{
    if (!p)
        abort();
    return p;
}

/* ---- tables, under the mutex ---- */

static struct thing *thing(enum kind kind, const char *name)
{
    for (size_t i = 0; name && i < THINGS_MAX; i++)
        if (things[i].name && things[i].kind == kind && strcmp(things[i].name, name) == 0)
            return &things[i];
    return NULL;
}

static void *find(enum kind kind, const char *name)
{
    const struct thing *found = thing(kind, name);
    return found ? found->it : NULL;
}

static void keep(enum kind kind, const char *name, void *it)
{
    size_t i = 0;
    while (i < THINGS_MAX && things[i].name)
        i++;
    if (i == THINGS_MAX)
        abort();
    things[i] = (struct thing){kind, must(strdup(name)), it};
}

static void drop(struct thing *found)
{
    free(found->name);
    *found = (struct thing){0};
}

/* ---- what requests and answers consist of ---- */

static const char *text(const json_t *request, const char *name)
{
    return json_string_value(json_object_get(request, name));
}

static double number(const json_t *object, const char *name, double otherwise)
{
    const json_t *value = json_object_get(object, name);
    return json_is_number(value) ? json_number_value(value) : otherwise;
}

static json_t *error_of(const char *class, const char *code, const char *detail)
{
    return must(json_pack("{s:{s:s, s:s, s:n, s:s, s:n, s:{}}}", "error", "class", class, "code",
                          code, "status", "detail", detail, "retry_after", "extra"));
}

static json_t *usage(const char *detail) { return error_of("Usage", "usage", detail); }

static json_t *refusal(enum hf_result result, const struct hf_fault *fault)
{
    static const struct {
        enum hf_result result;
        const char *class, *code;
    } refusals[] = {
        {HF_TAKEN, "Conflict", "lock_taken"},
        {HF_DEADLOCK, "Conflict", "deadlock"},
        {HF_LOST, "LockLost", "lock_lost"},
        {HF_UNKNOWN, "OutcomeUnknown", "outcome_unknown"},
        {HF_UNREACHABLE, "Unavailable", "unreachable"},
        {HF_BAD_REQUEST, "HoldfastError", "invalid_request"},
    };
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
        if (refusals[i].result == result)
            return error_of(refusals[i].class, refusals[i].code, fault->msg);
    return error_of("HoldfastError", "failed", fault->msg);
}

/* Takes over the value. */
static json_t *answer_of(json_t *value) { return must(json_pack("{s:o}", "value", must(value))); }

/* ---- clients ---- */

/* "holdfast://KEY@host:port,host:port" of a client's URLs. */
static char *url_of(const json_t *request)
{
    const char *key = text(json_object_get(request, "options"), "key");
    char *url = must(malloc(4096));
    const json_t *one;
    size_t i, len = (size_t)snprintf(url, 4096, "holdfast://%s%s", key ? key : "", key ? "@" : "");
    json_array_foreach(json_object_get(request, "urls"), i, one)
    {
        const char *host = strstr(json_string_value(one), "//");
        len += (size_t)snprintf(url + len, 4096 - len, "%s%s", i ? "," : "", host ? host + 2 : "");
    }
    return url;
}

static json_t *make_client(const json_t *request)
{
    struct client *c = must(calloc(1, sizeof *c));
    c->url = url_of(request);
    c->timeout_ms = (int64_t)(1000 * number(json_object_get(request, "options"), "timeout", 2));
    c->cancel = must(hf_cancel_new());
    keep(CLIENT, text(request, "name"), c);
    return answer_of(json_null());
}

/* Finds the client and begins a call on it, which `leave` ends. */
static struct client *enter(const char *name)
{
    struct client *c = find(CLIENT, name);
    if (c)
        c->n_calls++;
    return c;
}

static void leave(struct client *c)
{
    c->n_calls--;
    pthread_cond_broadcast(&changed);
}

static json_t *close_client(const json_t *request)
{
    struct thing *found = thing(CLIENT, text(request, "name"));
    if (!found)
        return usage("there is no such client");
    struct client *c = found->it;
    drop(found);
    hf_cancel_trigger(c->cancel);
    while (c->n_calls > 0)
        pthread_cond_wait(&changed, &mutex);
    for (size_t i = 0; i < THINGS_MAX; i++)
        if (things[i].name && things[i].kind == HELD &&
            ((struct held *)things[i].it)->client == c) {
            free(things[i].it); /* hf_close has the lock */
            drop(&things[i]);
        }
    pthread_mutex_unlock(&mutex);
    hf_close(c->locks);
    pthread_mutex_lock(&mutex);
    hf_cancel_free(c->cancel);
    free(c->url);
    free(c);
    return answer_of(json_null());
}

/* ---- without the mutex, on a client in use ---- */

static enum hf_result open_client(struct client *c, struct hf_fault *fault)
{
    struct hf_options options = HF_OPTIONS(.timeout_ms = c->timeout_ms);
    struct hf_locks *locks;
    pthread_mutex_lock(&mutex);
    bool is_open = c->locks != NULL;
    pthread_mutex_unlock(&mutex);
    if (is_open)
        return HF_DONE;
    enum hf_result result = hf_open(c->url, &options, &locks, fault);
    if (result != HF_DONE)
        return result;
    pthread_mutex_lock(&mutex);
    bool is_first = c->locks == NULL;
    if (is_first)
        c->locks = locks;
    pthread_mutex_unlock(&mutex);
    if (!is_first)
        hf_close(locks);
    return HF_DONE;
}

static struct hf_lock *lock_at(const struct held *h, size_t i)
{
    return h->set ? hf_lock_set_at(h->set, i) : i == 0 ? h->lock : NULL;
}

static json_t *describe(const struct held *h)
{
    json_t *fences = must(json_object());
    struct hf_lock *lock;
    for (size_t i = 0; (lock = lock_at(h, i)); i++)
        json_object_set_new(fences, hf_lock_name(lock), json_integer(hf_lock_fence(lock)));
    lock = lock_at(h, 0);
    return answer_of(json_pack("{s:I, s:o, s:i}", "fence", (json_int_t)hf_lock_fence(lock),
                               "fences", fences, "slot", (int)hf_lock_slot(lock)));
}

static json_t *take(struct client *c, const json_t *request)
{
    const json_t *options = json_object_get(request, "options");
    const json_t *wait = json_object_get(options, "wait"),
                 *names = json_object_get(request, "locks");
    const char *wanted[NAMES_MAX];
    size_t n = 0;
    const json_t *name;
    struct hf_fault fault = {0};
    struct hf_lock_options want =
        HF_LOCK_OPTIONS(.ttl_ms = (int64_t)(1000 * number(options, "ttl", 30)),
                        .wait_ms = json_is_number(wait) ? (int64_t)(1000 * json_number_value(wait))
                                                        : HF_FOREVER,
                        .mode = json_is_true(json_object_get(options, "shared")) ? HF_SHARED
                                                                                 : HF_EXCLUSIVE,
                        .slots = (unsigned)number(options, "slots", 1),
                        .priority = (int)number(options, "priority", 0),
                        .value = text(options, "value"), .cancel = c->cancel);
    json_array_foreach(names, n, name) wanted[n] = json_string_value(name);
    struct held *h = must(calloc(1, sizeof *h));
    h->client = c;
    enum hf_result result = open_client(c, &fault);
    if (result == HF_DONE)
        result = n == 1 ? hf_lock(c->locks, wanted[0], &want, &h->lock, &fault)
                        : hf_lock_many(c->locks, wanted, n, &want, &h->set, &fault);
    if (result != HF_DONE) {
        free(h);
        return refusal(result, &fault);
    }
    json_t *answer = describe(h);
    pthread_mutex_lock(&mutex);
    keep(HELD, text(request, "name"), h);
    pthread_mutex_unlock(&mutex);
    return answer;
}

static bool is_held(const struct held *h)
{
    const struct hf_lock *lock;
    bool all = true;
    for (size_t i = 0; (lock = lock_at(h, i)); i++)
        all = hf_lock_held(lock) && all;
    return all;
}

/* Nobody has given it back: if it is not held, it is lost. */
static json_t *state_of(const struct held *h)
{
    bool held = is_held(h);
    return answer_of(json_pack("{s:b, s:b}", "held", held, "lost", !held));
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Waits until the library tells the loss, which it does by the lock's descriptor. */
static json_t *await_loss(const struct held *h, const json_t *request)
{
    int64_t until_ms = now_ms() + (int64_t)(1000 * number(request, "timeout", 10));
    struct pollfd fds[NAMES_MAX];
    struct hf_lock *lock;
    nfds_t n = 0;
    for (; (lock = lock_at(h, n)); n++)
        fds[n] = (struct pollfd){.fd = hf_lock_fd(lock), .events = POLLIN};
    int n_ready = 0;
    while (n_ready <= 0 && now_ms() < until_ms && !hf_cancel_is_triggered(h->client->cancel))
        n_ready = poll(fds, n, LOOK_MS);
    return answer_of(json_pack("{s:b}", "lost", n_ready > 0));
}

static json_t *give_back(struct held *h)
{
    struct hf_fault fault = {0};
    enum hf_result result = h->set ? hf_unlock_many(h->set, &fault) : hf_unlock(h->lock, &fault);
    free(h);
    return result == HF_DONE ? answer_of(json_null()) : refusal(result, &fault);
}

/* A child looks at the lock, and tries to give it back.  Nothing in it allocates: another thread of
 * the parent may have been within the allocator. */
static json_t *fork_child(struct held *h)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        bool held = is_held(h);
        bool released = !h->set && hf_unlock(h->lock, NULL) == HF_DONE;
        _exit(held + 2 * released);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (pid < 0 || !WIFEXITED(status))
        return usage("the child did not end");
    return answer_of(json_pack("{s:b, s:b}", "held", WEXITSTATUS(status) & 1, "released",
                               WEXITSTATUS(status) >> 1));
}

/* ---- looking at locks ---- */

static json_t *people(const struct hf_holder *const *who, size_t n)
{
    json_t *list = must(json_array());
    for (size_t i = 0; i < n; i++)
        json_array_append_new(
            list, must(json_pack("{s:s, s:s, s:s, s:i, s:I}", "owner", who[i]->owner, "label",
                                 who[i]->label, "mode",
                                 who[i]->mode == HF_SHARED ? "shared" : "exclusive", "priority",
                                 who[i]->priority, "fence", (json_int_t)who[i]->fence)));
    return list;
}

static enum hf_result look(struct client *c, const char *name, json_t **ret, struct hf_fault *fault)
{
    struct hf_lock_state state = HF_LOCK_STATE_INIT;
    enum hf_result result = hf_inspect(c->locks, name, &state, fault);
    if (result == HF_DONE)
        *ret = json_pack("{s:s, s:i, s:i, s:o, s:o, s:I, s:s?}", "name", name, "n_holders",
                         (int)state.n_holders, "n_waiters", (int)state.n_waiters, "holders",
                         people(state.holders, state.n_holders), "waiters",
                         people(state.waiters, state.n_waiters), "last_fence",
                         (json_int_t)state.last_fence, "value", state.value);
    hf_lock_state_close(&state);
    return result;
}

static bool add_name(void *names, const char *name)
{
    return json_array_append_new(names, json_string(name)) == 0;
}

static enum hf_result list(struct client *c, const char *prefix, json_t **ret,
                           struct hf_fault *fault)
{
    json_t *names = must(json_array()), *found = must(json_array()), *one;
    const json_t *name;
    size_t i;
    enum hf_result result = hf_list(c->locks, prefix, add_name, names, fault);
    json_array_foreach(
        names, i, name) if (result == HF_DONE &&
                            (result = look(c, json_string_value(name), &one, fault)) == HF_DONE)
        json_array_append_new(found, one);
    json_decref(names);
    *ret = json_pack("{s:o}", "data", found);
    return result;
}

static json_t *call(struct client *c, const json_t *request)
{
    const json_t *args = json_object_get(request, "args");
    const char *what = text(request, "call"), *id = text(args, "id"),
               *prefix = text(args, "prefix");
    struct hf_fault fault = {0};
    json_t *value = json_null();
    enum hf_result result = open_client(c, &fault);
    if (result == HF_DONE && strcmp(what, "locks.get") == 0)
        result = look(c, id, &value, &fault);
    else if (result == HF_DONE && strcmp(what, "locks.list") == 0)
        result = list(c, prefix ? prefix : "", &value, &fault);
    else if (result == HF_DONE && strcmp(what, "locks.break_lock") == 0)
        result = hf_break(c->locks, id, &fault);
    else if (result == HF_DONE)
        return usage("there is no such call");
    return result == HF_DONE ? answer_of(value) : refusal(result, &fault);
}

/* ---- requests ---- */

/* Carries out a request about a client, or a lock of it, with the mutex released. */
static json_t *with_client(const char *op, const json_t *request)
{
    struct thing *named = thing(HELD, text(request, "name"));
    bool is_of_client = strcmp(op, "lock") == 0 || strcmp(op, "call") == 0;
    struct held *h = named ? named->it : NULL;
    struct client *c = is_of_client ? enter(text(request, "client")) : h ? h->client : NULL;
    json_t *answer;
    if (!c)
        return usage("there is no such client or lock");
    if (!is_of_client)
        c->n_calls++;
    if (strcmp(op, "unlock") == 0)
        drop(named);
    pthread_mutex_unlock(&mutex);
    if (strcmp(op, "lock") == 0)
        answer = take(c, request);
    else if (strcmp(op, "call") == 0)
        answer = call(c, request);
    else if (strcmp(op, "lock_state") == 0)
        answer = state_of(h);
    else if (strcmp(op, "lock_await_lost") == 0)
        answer = await_loss(h, request);
    else if (strcmp(op, "unlock") == 0)
        answer = give_back(h);
    else if (strcmp(op, "fork") == 0)
        answer = fork_child(h);
    else
        answer = usage("there is no such op");
    pthread_mutex_lock(&mutex);
    leave(c);
    return answer;
}

static void *carry_out(void *of)
{
    json_t *request = of, *answer;
    const char *op = text(request, "op");
    pthread_mutex_lock(&mutex);
    if (strcmp(op, "client") == 0)
        answer = make_client(request);
    else if (strcmp(op, "close_client") == 0)
        answer = close_client(request);
    else if (strcmp(op, "pid") == 0)
        answer = answer_of(json_integer(getpid()));
    else
        answer = with_client(op, request);
    json_object_set(answer, "id", json_object_get(request, "id"));
    char *line = must(json_dumps(answer, JSON_COMPACT));
    puts(line);
    fflush(stdout);
    pthread_mutex_unlock(&mutex);
    free(line);
    json_decref(answer);
    json_decref(request);
    return NULL;
}

static void start(void *(*work)(void *), void *of)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, of) != 0)
        abort();
    pthread_detach(thread);
}

static void *be_agent(void *of)
{
    struct agent *a = of;
    for (;;) {
        pthread_mutex_lock(&mutex);
        while (json_array_size(a->requests) == 0)
            pthread_cond_wait(&changed, &mutex);
        json_t *request = json_incref(json_array_get(a->requests, 0));
        json_array_remove(a->requests, 0);
        pthread_mutex_unlock(&mutex);
        carry_out(request);
    }
    return NULL;
}

static void hand_to_agent(const char *name, json_t *request)
{
    pthread_mutex_lock(&mutex);
    struct agent *a = find(AGENT, name);
    if (!a) {
        a = must(calloc(1, sizeof *a));
        a->requests = must(json_array());
        keep(AGENT, name, a);
        start(be_agent, a);
    }
    json_array_append_new(a->requests, request);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

int main(void)
{
    char *line = NULL;
    size_t size = 0;
    while (getline(&line, &size, stdin) > 0) {
        json_t *request = must(json_loads(line, 0, NULL));
        const char *agent = text(json_object_get(request, "options"), "agent");
        if (agent)
            hand_to_agent(agent, request);
        else
            start(carry_out, request);
    }
    free(line);
    _exit(0); /* scenarios leave clients and locks behind */
}
