/* See locks.h. */
#include "setup/locks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "api/api.h"
#include "base/duration.h"
#include "base/log.h"
#include "base/wait.h"
#include "cell/cell.h"

#define TIMEOUT_MS_DEFAULT 2000
#define TIMEOUT_MS_MIN 500
#define TIMEOUT_MS_MAX 60000
#define SESSIONS_MAX_DEFAULT 100000
#define MASTERSHIP_MS 3000
#define MASTERSHIP_POLL_US 500
#define RETIRE_MS 2000 /* to store the last entry, and to answer what waits */

/* ---- options ---- */

static enum hf_status read_timeout(const char *text, int64_t *ret, struct hf_err *err)
{
    int64_t ms = text ? duration_parse_ms(text) : TIMEOUT_MS_DEFAULT;
    if (ms < TIMEOUT_MS_MIN || ms > TIMEOUT_MS_MAX)
        return hf_err_set(err, HF_INVALID_REQUEST,
                          "--cell-timeout is a duration from 500ms to 60s, not %.60s", text);
    *ret = ms;
    return HF_OK;
}

static enum hf_status read_sessions_max(const char *text, uint32_t *ret, struct hf_err *err)
{
    char *end;
    *ret = SESSIONS_MAX_DEFAULT;
    if (!text)
        return HF_OK;
    errno = 0;
    long n = strtol(text, &end, 10);
    if (errno || end == text || *end || n < 1 || n > CELL_SESSIONS_MAX)
        return hf_err_set(err, HF_INVALID_REQUEST, "--sessions-max is a number from 1 to %d",
                          CELL_SESSIONS_MAX);
    *ret = (uint32_t)n;
    return HF_OK;
}

static bool is_wildcard(const char *address)
{
    return strncmp(address, "0.0.0.0:", 8) == 0 || strncmp(address, "[::]:", 5) == 0;
}

/* Clients append paths to the URL, so it names a scheme and a host and nothing else. */
static bool is_server_url(const char *url)
{
    size_t scheme = strncasecmp(url, "http://", 7) == 0    ? 7
                    : strncasecmp(url, "https://", 8) == 0 ? 8
                                                           : 0;
    size_t host = strspn(url + scheme, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                       "0123456789-._~:[]");
    return scheme && host && !url[scheme + host] && strlen(url) <= CELL_URL_MAX;
}

static enum hf_status read_url(struct locks *l, const struct lock_options *o, const char *address,
                               struct hf_err *err)
{
    const char *advertise = o->advertise;
    if (!advertise) {
        if (l->is_shared && is_wildcard(address))
            return hf_err_set(err, HF_INVALID_REQUEST,
                              "--listen %.60s needs --advertise URL with a journal that servers "
                              "share: how do the others reach this one?",
                              address);
        (void)snprintf(l->url, sizeof l->url, "%s://%.200s", o->scheme, address);
        return HF_OK;
    }
    size_t len = strlen(advertise);
    if (len && advertise[len - 1] == '/')
        len--;
    (void)snprintf(l->url, sizeof l->url, "%.*s", (int)(len < 300 ? len : 300), advertise);
    if (len > CELL_URL_MAX || !is_server_url(l->url))
        return hf_err_set(err, HF_INVALID_REQUEST,
                          "--advertise is a URL such as http://10.0.0.7:8080, without a path");
    return HF_OK;
}

/* Several servers of one ledger that each had a journal of its own would grant one lock to several
 * clients, so there the operator has to name the journal that they share. */
static void choose_journal(struct locks *l, const struct lock_options *o, const char *data)
{
    if (o->journal || o->ledger_is_shared)
        (void)snprintf(l->journal, sizeof l->journal, "%s", o->journal ? o->journal : "off");
    else
        (void)snprintf(l->journal, sizeof l->journal, "sqlite:%s/locks.db", data);
    if (!o->journal && o->ledger_is_shared)
        log_write(LOG_INFO, "the lock service is off: servers that share a ledger need --journal",
                  NULL);
}

/* ---- life ---- */

/* The only server of a journal is its master within milliseconds.  Its first client need not be
 * told that there is none. */
static void wait_for_mastership(const struct cell *cell)
{
    char url[CELL_URL_MAX + 1];
    int64_t until_us = wait_now_us() + MASTERSHIP_MS * INT64_C(1000);
    while (cell_redirect(cell, url) && wait_now_us() < until_us)
        wait_sleep_us(MASTERSHIP_POLL_US);
}

static enum hf_status open_cell(struct locks *l, const struct lock_options *o, int64_t timeout_ms,
                                const struct clock *clock, struct metrics *metrics,
                                struct hf_err *err)
{
    const struct cell_config config = {
        .journal_url = l->journal,
        .clock = clock,
        .url = l->url,
        .timeout_ms = timeout_ms,
        .may_lose = o->may_lose,
        .metrics = metrics,
    };
    struct hf_err why = {0};
    enum hf_status status = cell_start(&config, &l->cell, &why);
    if (status == HF_OK) {
        if (!l->is_shared)
            wait_for_mastership(l->cell);
        return HF_OK;
    }
    return hf_err_set(err, status, "%s%.200s",
                      o->journal ? "--journal: " : "the lock service: ", why.msg);
}

enum hf_status locks_start(struct locks *l, const struct lock_options *o, const char *data,
                           const char *address, const struct clock *clock, struct metrics *metrics,
                           struct hf_err *err)
{
    int64_t timeout_ms = 0;
    choose_journal(l, o, data);
    enum hf_status status = read_timeout(o->timeout, &timeout_ms, err);
    if (status == HF_OK)
        status = read_sessions_max(o->sessions_max, &l->sessions_max, err);
    if (status != HF_OK || strcmp(l->journal, "off") == 0)
        return status;
    const struct journal_driver *driver = journal_driver_for(l->journal);
    if (!driver)
        return hf_err_set(err, HF_INVALID_REQUEST,
                          "--journal is sqlite:FILE, postgres://..., etcd://... or off");
    l->driver = driver->name;
    l->is_shared = driver->shared;
    status = read_url(l, o, address, err);
    return status == HF_OK ? open_cell(l, o, timeout_ms, clock, metrics, err) : status;
}

void locks_serve(const struct locks *l, struct api *api)
{
    api->cell = l->cell;
    api->cell_url = l->url;
    api->journal = l->driver;
    api->sessions_max = l->sessions_max;
}

void locks_leave(struct locks *l)
{
    if (l->cell && l->is_shared)
        cell_retire(l->cell, RETIRE_MS);
}

void locks_drain(struct locks *l)
{
    if (l->cell)
        cell_retire(l->cell, RETIRE_MS);
}

void locks_stop(struct locks *l) { cell_stop(l->cell); }
