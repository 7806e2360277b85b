/* See variables.h.  Pure functions; they run at the start of a program. */
#include "base/variables.h"

#include <string.h>

#include "base/nearest.h"

static const char *const known[] = {
    /* holdfastd: its options, and the keys, which have no option */
    "HOLDFAST_ADDRESS_CONNECTIONS_MAX",
    "HOLDFAST_ADDRESS_STREAMS_MAX",
    "HOLDFAST_ADMIN_KEY",
    "HOLDFAST_ADMIN_KEY_FILE",
    "HOLDFAST_ADVERTISE",
    "HOLDFAST_ANSWER_MEMORY_MAX",
    "HOLDFAST_BRAND",
    "HOLDFAST_CAPTURE",
    "HOLDFAST_CELL_TIMEOUT",
    "HOLDFAST_CORE_DUMPS",
    "HOLDFAST_CORS_ORIGIN",
    "HOLDFAST_DATA",
    "HOLDFAST_DEMO",
    "HOLDFAST_DRAIN_DELAY",
    "HOLDFAST_ENV_FILE",
    "HOLDFAST_EVENT_IDLE",
    "HOLDFAST_EVENT_MEMORY_MAX",
    "HOLDFAST_GATE",
    "HOLDFAST_HOLD_RATE",
    "HOLDFAST_HOST",
    "HOLDFAST_HTTP_THREADS",
    "HOLDFAST_JOURNAL",
    "HOLDFAST_JOURNAL_MAY_LOSE",
    "HOLDFAST_KEEP",
    "HOLDFAST_KEEP_HOLDS",
    "HOLDFAST_LEDGER",
    "HOLDFAST_LISTEN",
    "HOLDFAST_LOG_LEVEL",
    "HOLDFAST_NOTIFY",
    "HOLDFAST_NOTIFY_EVENTS",
    "HOLDFAST_NOTIFY_SECRET",
    "HOLDFAST_PAGES",
    "HOLDFAST_PAYMENTS",
    "HOLDFAST_PAYMENTS_RATE",
    "HOLDFAST_PUBLIC_HOLDS",
    "HOLDFAST_PUBLIC_SEATS_MAX",
    "HOLDFAST_PUBLIC_URL",
    "HOLDFAST_QUEUE_MAX",
    "HOLDFAST_RECONCILE_EVERY",
    "HOLDFAST_REQUEST_LOG",
    "HOLDFAST_SANDBOX_LISTEN",
    "HOLDFAST_SANDBOX_PUBLIC",
    "HOLDFAST_SELLER_KEY",
    "HOLDFAST_SELLER_KEY_FILE",
    "HOLDFAST_SESSIONS_MAX",
    "HOLDFAST_STREAM_LISTEN",
    "HOLDFAST_STRIPE_API",
    "HOLDFAST_TLS_CERT",
    "HOLDFAST_TLS_KEY",
    "HOLDFAST_TRUSTED_PROXY",
    /* holdfast, and what it sets for the commands that it runs */
    "HOLDFAST_CACERT",
    "HOLDFAST_DEADLINE_MS",
    "HOLDFAST_FENCE",
    "HOLDFAST_FENCES",
    "HOLDFAST_FENCE_RESOURCE",
    "HOLDFAST_KEY",
    "HOLDFAST_LOCKS_HELD",
    "HOLDFAST_LOCK_NAME",
    "HOLDFAST_LOCK_URL",
    "HOLDFAST_SERVER",
    "HOLDFAST_SLOT",
};
#define N_KNOWN (sizeof known / sizeof *known)

/* Named as Stripe's documents name them, without our prefix. */
static const char *const foreign[] = {
    "STRIPE_PUBLISHABLE_KEY",
    "STRIPE_SECRET_KEY",
    "STRIPE_WEBHOOK_SECRET",
};
#define N_FOREIGN (sizeof foreign / sizeof *foreign)
#define PREFIX_LEN (sizeof VARIABLES_PREFIX - 1)

static const char *const secret[] = {
    "HOLDFAST_ADMIN_KEY",  "HOLDFAST_GATE",     "HOLDFAST_JOURNAL",  "HOLDFAST_KEY",
    "HOLDFAST_LEDGER",     "HOLDFAST_LOCK_URL", "HOLDFAST_NOTIFY",   "HOLDFAST_NOTIFY_SECRET",
    "HOLDFAST_SELLER_KEY", "PGPASSWORD",        "STRIPE_SECRET_KEY", "STRIPE_WEBHOOK_SECRET",
};
#define N_SECRET (sizeof secret / sizeof *secret)

static bool has(const char *const *list, size_t n, const char *name, size_t len)
{
    for (size_t i = 0; i < n; i++)
        if (strlen(list[i]) == len && memcmp(list[i], name, len) == 0)
            return true;
    return false;
}

bool variables_know(const char *name, size_t len)
{
    return has(known, N_KNOWN, name, len) || has(foreign, N_FOREIGN, name, len);
}

bool variables_is_secret(const char *name, size_t len) { return has(secret, N_SECRET, name, len); }

/* One mistake per three characters behind the prefix is too many. */
const char *variables_nearest(const char *name, size_t len)
{
    return len > PREFIX_LEN ? nearest_word(name, len, known, N_KNOWN, (len - PREFIX_LEN) / 3)
                            : NULL;
}

const char *variables_next_unknown(char *const *environment, size_t *at, size_t *ret_len)
{
    while (environment[*at]) {
        const char *entry = environment[(*at)++];
        size_t len = strcspn(entry, "=");
        if (strncmp(entry, VARIABLES_PREFIX, PREFIX_LEN) == 0 && !variables_know(entry, len)) {
            *ret_len = len;
            return entry;
        }
    }
    return NULL;
}
