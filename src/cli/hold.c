/* `holdfast hold`: claims on seats and places.  Main thread. */
#include "cli/resource.h"

static const char usage[] =
    "usage: holdfast hold create EVENT [SEAT...] [OPTION...]\n"
    "       holdfast hold show|release|evict HOLD\n"
    "       holdfast hold list EVENT [--status STATUS] [--owner TEXT] [--limit N]\n"
    "       holdfast hold renew HOLD [--ttl DURATION]\n"
    "       holdfast hold change HOLD --fence N [OPTION...]\n"
    "       holdfast hold confirm HOLD --fence N [--reference TEXT] [--rescue]\n"
    "The id of a hold is a secret.  If HOLD is -, it is read from standard input.\n"
    "  --best N               create: the N best places that are free, instead of named seats\n"
    "  --section NAME, --tier NAME, --category NAME, --accessible, --scattered\n"
    "                         create: of these --best chooses; --scattered: not in one row\n"
    "  --best-type TYPE=N     create: of those, so many of this ticket type; may be repeated\n"
    "  --area NAME=N[:TYPE]   create: places of an area; may be repeated, also for each type\n"
    "  --type SEAT=TYPE       create, change: the ticket type of a seat; may be repeated\n"
    "  --owner TEXT           create, list: the buyer's label\n"
    "  --ttl DURATION         create, renew: how long\n"
    "  --metadata JSON        create: a flat object\n"
    "  --channel NAME         create: hold seats that are blocked for this channel\n"
    "  --resume               create: the owner's hold, if it is of exactly these places\n"
    "  --status STATUS        list: active, expired, released or confirmed\n"
    "  --fence N              change, confirm: the hold's fence\n"
    "  --add SEAT, --remove SEAT, --add-area NAME=N[:TYPE], --remove-area NAME=N[:TYPE]\n"
    "                         change: all of it or nothing; may be repeated\n"
    "  --reference TEXT       confirm: the seller's own number\n"
    "  --rescue               confirm: also an expired hold, if its places are free\n"
    "  --limit N              list: at most N\n" REMOTE_OPTIONS_HELP REMOTE_EXIT_HELP;

static const struct param create_params[] = {
    {"best", PARAM_INTEGER, "best_available.quantity", false, false},
    {"section", PARAM_TEXT, "best_available.section", false, false},
    {"tier", PARAM_TEXT, "best_available.tier", false, false},
    {"category", PARAM_TEXT, "best_available.category", false, false},
    {"accessible", PARAM_TRUE, "best_available.accessible", false, false},
    {"scattered", PARAM_FALSE, "best_available.adjacent", false, false},
    {"area", PARAM_PLACES, "areas", false, false},
    {"type", PARAM_NAMES, "types", false, false},
    {"best-type", PARAM_NUMBERS, "best_available.types", false, false},
    {"owner", PARAM_TEXT, "owner", false, false},
    {"ttl", PARAM_DURATION, "ttl_ms", false, false},
    {"metadata", PARAM_JSON, "metadata", false, false},
    {"channel", PARAM_TEXT, "channel", false, false},
    {"resume", PARAM_TRUE, "resume", false, false},
    {0}};
static const struct param list_params[] = {{"status", PARAM_TEXT, "status", false, false},
                                           {"owner", PARAM_TEXT, "owner", false, false},
                                           {0}};
static const struct param renew_params[] = {{"ttl", PARAM_DURATION, "ttl_ms", false, false}, {0}};
static const struct param change_params[] = {
    {"fence", PARAM_INTEGER, "fence", true, false},
    {"add", PARAM_TEXTS, "add.seats", false, false},
    {"remove", PARAM_TEXTS, "remove.seats", false, false},
    {"add-area", PARAM_PLACES, "add.areas", false, false},
    {"remove-area", PARAM_PLACES, "remove.areas", false, false},
    {"type", PARAM_NAMES, "types", false, false},
    {0}};
static const struct param confirm_params[] = {{"fence", PARAM_INTEGER, "fence", true, false},
                                              {"reference", PARAM_TEXT, "reference", false, false},
                                              {"rescue", PARAM_TRUE, "rescue", false, false},
                                              {0}};

static const char *const columns[] = {"id",    "status", "fence",      "seats", "areas",
                                      "owner", "amount", "expires_at", NULL};

static const struct verb verbs[] = {
    {.name = "create",
     .method = "POST",
     .path = "/v1/holds",
     .operand = "EVENT",
     .operand_member = "event",
     .rest = "seats",
     .params = create_params},
    {.name = "show", .method = "GET", .path = "/v1/holds/%s", .operand = "HOLD"},
    {.name = "list",
     .method = "GET",
     .path = "/v1/holds",
     .operand = "EVENT",
     .operand_member = "event",
     .params = list_params,
     .columns = columns,
     .page_max = 100},
    {.name = "renew",
     .method = "POST",
     .path = "/v1/holds/%s/renew",
     .operand = "HOLD",
     .params = renew_params},
    {.name = "change",
     .method = "PATCH",
     .path = "/v1/holds/%s",
     .operand = "HOLD",
     .params = change_params},
    {.name = "release", .method = "DELETE", .path = "/v1/holds/%s", .operand = "HOLD"},
    {.name = "confirm",
     .method = "POST",
     .path = "/v1/holds/%s/confirm",
     .operand = "HOLD",
     .params = confirm_params},
    {.name = "evict", .method = "POST", .path = "/v1/holds/%s/evict", .operand = "HOLD"},
    {0},
};

int cli_hold(int argc, char **argv)
{
    static const struct resource hold = {.name = "hold", .usage = usage, .verbs = verbs};
    return resource_main(&hold, argc, argv);
}
