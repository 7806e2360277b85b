/* Names, owners and commands: what is well formed.  Pure functions. */
#include "cell/command.h"

#include <string.h>

#include "base/hex.h"
#include "base/utf8.h"
#include "cell/entry.h"

const char *const cell_mode_names[CELL_MODES] = {
    [CELL_EXCLUSIVE] = "exclusive",
    [CELL_SHARED] = "shared",
    [CELL_INTENTION_EXCLUSIVE] = "intention_exclusive",
    [CELL_INTENTION_SHARED] = "intention_shared",
};

void cell_owner_format(const struct cell_owner *owner, char ret[CELL_OWNER_TEXT_SIZE])
{
    char text[2 * CELL_OWNER_SIZE + 1];
    hex_format(owner->bytes, sizeof owner->bytes, text);
    memcpy(ret, text + sizeof text - 1 - owner->digits, owner->digits + 1U);
}

bool cell_owner_parse(const char *text, size_t len, struct cell_owner *ret)
{
    struct cell_owner owner = {.digits = (uint8_t)len};
    if (len < 1 || len > 2 * CELL_OWNER_SIZE)
        return false;
    for (size_t i = 0; i < len; i++) {
        int digit = hex_digit(text[len - 1 - i]);
        if (digit < 0)
            return false;
        owner.bytes[CELL_OWNER_SIZE - 1 - i / 2] |= (uint8_t)(i % 2 ? digit << 4 : digit);
    }
    *ret = owner;
    return true;
}

bool cell_owner_equal(const struct cell_owner *a, const struct cell_owner *b)
{
    return a->digits == b->digits && memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

/* The digits before those that the owner is written with are zero. */
static bool owner_is_valid(const struct cell_owner *owner)
{
    if (owner->digits < 1 || owner->digits > 2 * CELL_OWNER_SIZE)
        return false;
    for (size_t i = owner->digits; i < sizeof owner->bytes * 2; i++) {
        uint8_t byte = owner->bytes[CELL_OWNER_SIZE - 1 - i / 2];
        if (i % 2 ? byte >> 4 : byte & 15)
            return false;
    }
    return true;
}

static bool is_control(const unsigned char *c, size_t len)
{
    return (len == 1 && (c[0] < 0x20 || c[0] == 0x7f)) || (len == 2 && c[0] == 0xc2 && c[1] < 0xa0);
}

const char *cell_name_check(const char *name, size_t len)
{
    size_t levels = 1, part = 0;
    if (len < 1 || len > CELL_NAME_MAX)
        return "a name has 1 to 255 bytes";
    for (size_t i = 0, n; i < len; i += n) {
        n = utf8_char_len(name + i, len - i);
        if (n == 0)
            return "a name is UTF-8";
        if (is_control((const unsigned char *)name + i, n))
            return "a name has no control characters";
        if (name[i] != '/') {
            part += n;
            continue;
        }
        if (part == 0 || i + 1 == len)
            return "no part of a name is empty";
        part = 0;
        levels++;
    }
    return levels > CELL_LEVELS_MAX ? "a name has at most 16 parts" : NULL;
}

/* Texts that the state keeps end with a NUL there. */
static bool text_fits(const struct cell_text *text, size_t max)
{
    return text->len <= max && (text->len == 0 || !memchr(text->data, '\0', text->len));
}

static const char *check_owner_and_name(const struct cell_command *c)
{
    if (c->session.key <= 0)
        return "a session has a positive key";
    if (!owner_is_valid(&c->owner))
        return "an owner has 1 to 32 hex digits";
    return cell_name_check(c->name.data, c->name.len);
}

static const char *check_acquire(const struct cell_command *c)
{
    const char *wrong = check_owner_and_name(c);
    if (wrong)
        return wrong;
    if ((unsigned)c->mode >= CELL_MODES)
        return "there is no such mode";
    if (c->slots > CELL_SLOTS_MAX)
        return "there are too many slots";
    if (c->priority > CELL_PRIORITY_MAX || c->priority < -CELL_PRIORITY_MAX)
        return "the priority is out of range";
    if (c->delay_ms > CELL_DELAY_MAX_MS)
        return "delay_ms is too large";
    if (!text_fits(&c->label, CELL_LABEL_MAX))
        return "the label is too long, or has a NUL";
    return text_fits(&c->agent, CELL_AGENT_MAX) ? NULL : "the agent is too long, or has a NUL";
}

static const char *check_resign(const struct cell_command *c)
{
    if (c->n_ttls > CELL_TTLS_MAX)
        return "there are too many sessions";
    for (size_t i = 0; i < c->n_ttls; i++)
        if (c->ttls[i].session <= 0 || c->ttls[i].remaining_ms < 0 ||
            c->ttls[i].remaining_ms > CELL_TTL_MAX_MS)
            return "a remaining TTL is out of range";
    return NULL;
}

static const char *check_open(const struct cell_command *c)
{
    if (c->session.key <= 0)
        return "a session has a positive key";
    if (c->ttl_ms < 1 || c->ttl_ms > CELL_TTL_MAX_MS)
        return "ttl_ms is out of range";
    return text_fits(&c->label, CELL_LABEL_MAX) ? NULL : "the label is too long, or has a NUL";
}

const char *cell_command_check(const struct cell_command *c)
{
    if (c->fence < 0 || c->fence > CELL_FENCE_MAX || c->epoch < 0)
        return "a fence or an epoch is out of range";
    if (c->value.len > CELL_VALUE_MAX)
        return "a value has at most 4096 bytes";
    switch (c->kind) {
    case CELL_MASTER:
        return text_fits(&c->url, CELL_URL_MAX) ? NULL : "the URL is too long, or has a NUL";
    case CELL_RESIGN:
        return check_resign(c);
    case CELL_OPEN:
        return check_open(c);
    case CELL_CLOSE:
    case CELL_EXPIRE:
        return c->session.key > 0 ? NULL : "a session has a positive key";
    case CELL_ACQUIRE:
        return check_acquire(c);
    case CELL_RELEASE:
    case CELL_CANCEL:
    case CELL_WITHDRAW:
    case CELL_VALUE:
        return check_owner_and_name(c);
    case CELL_UNDELAY:
    case CELL_BREAK:
        return cell_name_check(c->name.data, c->name.len);
    case CELL_FORGET:
        return NULL;
    default:
        return "there is no such command";
    }
}

void cell_verdict_close(struct cell_verdict *v) { vec_close(&v->people); }
