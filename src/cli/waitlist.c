/* `holdfast waitlist`: who waits for places that come back.  Main thread. */
#include "cli/resource.h"

static const char usage[] =
    "usage: holdfast waitlist list [--event EVENT] [--status STATUS] [--owner TEXT] [--limit N]\n"
    "       holdfast waitlist show ENTRY\n"
    "       holdfast waitlist first ENTRY\n"
    "       holdfast waitlist remove ENTRY\n"
    "       holdfast waitlist pause|resume EVENT\n"
    "first gives the entry the next turn.  remove ends it, and releases what it was offered.\n"
    "While a list is paused nothing is offered, and what comes back is on sale to all.\n"
    "The ids of entries are secrets.  If the id is -, it is read from standard input.\n"
    "  --event EVENT, --status STATUS, --owner TEXT\n"
    "                         list: only such entries\n"
    "  --limit N              list: at most N\n" REMOTE_OPTIONS_HELP REMOTE_EXIT_HELP;

static const struct param list_params[] = {{"event", PARAM_TEXT, "event", false, false},
                                           {"status", PARAM_TEXT, "status", false, false},
                                           {"owner", PARAM_TEXT, "owner", false, false},
                                           {0}};

static const char *const columns[] = {"id",    "number", "status",     "best_available", "areas",
                                      "owner", "hold",   "expires_at", "reason",         NULL};

static const struct verb verbs[] = {
    {.name = "list",
     .method = "GET",
     .path = "/v1/waitlist",
     .params = list_params,
     .columns = columns,
     .page_max = 100},
    {.name = "show", .method = "GET", .path = "/v1/waitlist/%s", .operand = "ENTRY"},
    {.name = "first", .method = "POST", .path = "/v1/waitlist/%s/first", .operand = "ENTRY"},
    {.name = "remove", .method = "POST", .path = "/v1/waitlist/%s/evict", .operand = "ENTRY"},
    {.name = "pause", .method = "POST", .path = "/v1/events/%s/waitlist/pause", .operand = "EVENT"},
    {.name = "resume",
     .method = "POST",
     .path = "/v1/events/%s/waitlist/resume",
     .operand = "EVENT"},
    {0},
};

int cli_waitlist(int argc, char **argv)
{
    static const struct resource waitlist = {.name = "waitlist", .usage = usage, .verbs = verbs};
    return resource_main(&waitlist, argc, argv);
}
