/* See link.h.  This file turns what went wrong into faults, and knows the errors of Redis. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redis/link_parts.h"

const char *link_host(const struct redis_link *k)
{
    return k->found.host ? k->found.host : k->address->host;
}

int link_port(const struct redis_link *k)
{
    return k->found.host ? k->found.port : k->address->port;
}

/* ---- faults ---- */

/* What TIME may answer; in microseconds it fits its type. */
#define TIME_MAX_S (INT64_C(1) << 40)
#define WHERE_SIZE 160
static const char *where(const struct redis_link *k, char out[WHERE_SIZE])
{
    if (k->address->path)
        snprintf(out, WHERE_SIZE, "Redis at %.107s", k->address->path);
    else if (link_host(k))
        snprintf(out, WHERE_SIZE, "Redis at %.120s port %d", link_host(k), link_port(k));
    else
        snprintf(out, WHERE_SIZE, "Redis %.120s", k->address->primary);
    return out;
}

enum hf_result link_fail(const struct redis_link *k, enum hf_result result, const char *why,
                         struct hf_fault *fault)
{
    char text[WHERE_SIZE];
    return fault_set(fault, result, "%s: %s", where(k, text), why);
}

enum hf_result link_fail_errno(const struct redis_link *k, enum hf_result result, int error,
                               struct hf_fault *fault)
{
    char text[128], place[WHERE_SIZE];
    const char *reason = k->tls && error == EPROTO ? redis_tls_reason(k->tls) : NULL;
    if (reason)
        return fault_set(fault, result, "%s: TLS: %.80s", where(k, place), reason);
    if (error != ETIMEDOUT && error != EAGAIN)
        return link_fail(k, result, strerror_r(error, text, sizeof text), fault);
    return fault_set(fault, result, "%s: no answer within %" PRId64 " ms", where(k, place),
                     k->allowed_ms);
}

/* ---- refusals ---- */

/* Errors after which the server has done nothing.  Our scripts write nothing before the first
 * command that can be refused, and undo their writes if a later one is. */
static const struct refusal {
    const char *code;
    bool elsewhere; /* the server is not, or not yet, the primary that takes writes: dial again */
} refusals[] = {
    {"NOAUTH", true},    {"WRONGPASS", true},  {"NOPERM", false},    {"READONLY", true},
    {"LOADING", true},   {"BUSY", false},      {"MISCONF", true},    {"OOM", false},
    {"NOSCRIPT", false}, {"NOREPLICAS", true}, {"MASTERDOWN", true}, {"CLUSTERDOWN", true},
    {"MOVED", true},     {"ASK", true},        {"TRYAGAIN", false},  {"CROSSSLOT", false},
};

/* Redis before 7 reports the error of a command in a script as "ERR Error running script (call to
 * f_...): @user_script:3: @user_script: 3: -READONLY ...".  Returns where the code begins. */
static const char *error_code(const char *error)
{
    if (strncmp(error, "ERR Error running script", 24) != 0)
        return error;
    const char *at = strstr(error, ": -");
    return at ? at + 3 : error;
}

static const struct refusal *refusal_of(const char *error)
{
    static const struct refusal forbidden = {"", false};
    const char *code = error_code(error);
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        size_t len = strlen(refusals[i].code);
        if (strncmp(code, refusals[i].code, len) == 0 && (code[len] == ' ' || code[len] == '\0'))
            return &refusals[i];
    }
    /* an ACL forbids what a script does; a command was renamed */
    return strstr(error, "user executing the script can't") ||
                   strncmp(error, "ERR unknown command", 19) == 0
               ? &forbidden
               : NULL;
}

/* Servers quote the arguments of unknown commands and the text of scripts: the message is cut
 * there. */
enum hf_result redis_refusal(struct redis_link *k, const redisReply *reply, struct hf_fault *fault)
{
    char where_text[WHERE_SIZE];
    const char *error = reply->type == REDIS_REPLY_ERROR ? error_code(reply->str)
                                                         : "an answer of an unexpected type";
    const struct refusal *refusal =
        reply->type == REDIS_REPLY_ERROR ? refusal_of(reply->str) : NULL;
    const char *end = strstr(error, ", with args");
    const char *script = strstr(error, " script: ");
    end = script && (!end || script < end) ? script : end;
    size_t len = end ? (size_t)(end - error) : strlen(error);
    if (refusal && refusal->elsewhere)
        link_hang_up(k);
    return fault_set(fault, refusal ? HF_UNREACHABLE : HF_FAILED, "%s refuses: %.*s",
                     where(k, where_text), (int)(len < 120 ? len : 120), error);
}

int64_t redis_time_us(const redisReply *reply)
{
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 || !reply->element[0]->str ||
        !reply->element[1]->str)
        return 0;
    int64_t s = strtoll(reply->element[0]->str, NULL, 10);
    int64_t us = strtoll(reply->element[1]->str, NULL, 10);
    return s > 0 && s < TIME_MAX_S && us >= 0 && us < 1000000 ? 1000000 * s + us : 0;
}
