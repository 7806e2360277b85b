/* See actor.h. */
#include "model/actor.h"

#include <string.h>

/* A name has letters, digits and what addresses and names of keys have besides. */
static bool is_name(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        bool is_letter = (text[i] >= 'a' && text[i] <= 'z') || (text[i] >= 'A' && text[i] <= 'Z');
        bool is_digit = text[i] >= '0' && text[i] <= '9';
        if (!is_letter && !is_digit && (!text[i] || !strchr("._-:", text[i])))
            return false;
    }
    return len > 0;
}

bool actor_is_valid(const char *text, size_t len)
{
    static const char *const plain[] = {ACTOR_OPEN, ACTOR_TIMER, ACTOR_SERVER};
    static const char *const named[] = {ACTOR_KEY, ACTOR_ADDRESS, ACTOR_PROVIDER};
    if (len >= ACTOR_SIZE)
        return false;
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (len == strlen(plain[i]) && memcmp(text, plain[i], len) == 0)
            return true;
    for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
        size_t n = strlen(named[i]);
        if (len > n && memcmp(text, named[i], n) == 0)
            return is_name(text + n, len - n);
    }
    return false;
}

bool actor_is_address(const char *text)
{
    return strncmp(text, ACTOR_ADDRESS, strlen(ACTOR_ADDRESS)) == 0 &&
           strcmp(text, ACTOR_ADDRESS_ERASED) != 0;
}

bool actor_equal(const char *a, const char *b) { return a == b || (a && b && strcmp(a, b) == 0); }
