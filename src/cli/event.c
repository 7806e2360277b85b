/* `holdfast event`: what is on sale.  Main thread. */
#include "cli/event_watch.h"
#include "cli/render.h"
#include "cli/resource.h"

static const char usage[] =
    "usage: holdfast event create --name TEXT --currency CODE [OPTION...]\n"
    "       holdfast event create --file FILE\n"
    "       holdfast event create --name TEXT --currency CODE --plan FILE --price NAME=AMOUNT...\n"
    "       holdfast event list|ls [--upcoming] [--limit N]\n"
    "       holdfast event show|map|close|open|archive|cancel EVENT\n"
    "       holdfast event set EVENT [OPTION...]\n"
    "       holdfast event block|unblock EVENT [SEAT...] [OPTION...]\n"
    "       holdfast event watch EVENT [--after SEQ]\n"
    "cancel also cancels every booking of the event, and refunds it; show tells how far it has "
    "come.\n"
    "watch prints every change as it happens, until it is interrupted.\n"
    "  --file FILE            create, set: the request as JSON; - for standard input\n"
    "  --section NAME:ROWSxSEATS:PRICE[:TIER]\n"
    "                         create: a section; may be repeated\n"
    "  --area NAME:CAPACITY:PRICE[:PLAN_AREA]\n"
    "                         create: an area, and the uuid of the plan's area that shows it;\n"
    "                         may be repeated\n"
    "  --plan FILE            create: a seating plan in pretix's format; see also holdfast plan\n"
    "  --accessible SEAT      create: a wheelchair place of the plan; may be repeated\n"
    "  --focus X,Y            create: where on the plan everybody looks; the best seats are near\n"
    "  --name TEXT, --venue TEXT, --venue-address TEXT, --description TEXT, --image URL,\n"
    "  --starts-at TIME, --doors-at TIME, --timezone NAME, --metadata JSON,\n"
    "  --sales-open-at TIME, --sales-close-at TIME, --hold-ttl DURATION,\n"
    "  --hold-max DURATION, --max-per-hold N, --max-per-owner N,\n"
    "  --lone-seats allow|hint|refuse, --waitlist JSON\n"
    "                         create, set: as the API has them; in set, none removes a value\n"
    "  --price NAME=AMOUNT    create: of a category of the plan; set: of a category, section or\n"
    "                         area, from now on; may be repeated\n"
    "  --type ID[:NAME]       create, set: a ticket type; may be repeated\n"
    "  --type-price ID:NAME=AMOUNT\n"
    "                         create, set: what it costs in a category, section or area, if not\n"
    "                         the same as others; may be repeated\n"
    "  --section NAME, --area NAME=N, --channel NAME\n"
    "                         block, unblock: whole sections, places of areas; who may hold them\n"
    "  --after SEQ            watch: begin with what followed this seq\n"
    "  --upcoming             list: in the order of dates, without what is past, closed or\n"
    "                         cancelled\n"
    "  --limit N              list: at most N\n" REMOTE_OPTIONS_HELP REMOTE_EXIT_HELP;

/* What create and set share. */
#define SETTINGS                                                                                   \
    {"name", PARAM_TEXT, "name", false, false},                                                    \
        {"starts-at", PARAM_TEXT, "starts_at", false, true},                                       \
        {"doors-at", PARAM_TEXT, "doors_at", false, true},                                         \
        {"timezone", PARAM_TEXT, "timezone", false, true},                                         \
        {"venue", PARAM_TEXT, "venue", false, true},                                               \
        {"venue-address", PARAM_TEXT, "venue_address", false, true},                               \
        {"image", PARAM_TEXT, "image", false, true},                                               \
        {"description", PARAM_TEXT, "description", false, true},                                   \
        {"metadata", PARAM_JSON, "metadata", false, true},                                         \
        {"sales-open-at", PARAM_TEXT, "sales_open_at", false, true},                               \
        {"sales-close-at", PARAM_TEXT, "sales_close_at", false, true},                             \
        {"hold-ttl", PARAM_DURATION, "hold_ttl_ms", false, false},                                 \
        {"hold-max", PARAM_DURATION, "hold_max_ms", false, false},                                 \
        {"max-per-hold", PARAM_INTEGER, "max_per_hold", false, false},                             \
        {"max-per-owner", PARAM_INTEGER, "max_per_owner", false, true},                            \
        {"lone-seats", PARAM_TEXT, "lone_seats", false, false},                                    \
        {"waitlist", PARAM_JSON, "waitlist", false, true},                                         \
        {"type", PARAM_TYPE, "types", false, false},                                               \
        {"type-price", PARAM_TYPE_PRICE, "types", false, false},                                   \
    {                                                                                              \
        "file", PARAM_BODY, "", false, false                                                       \
    }

static const struct param create_params[] = {
    SETTINGS,
    {"currency", PARAM_TEXT, "currency", false, false},
    {"section", PARAM_SECTION, "sections", false, false},
    {"area", PARAM_AREA, "areas", false, false},
    {"plan", PARAM_FILE, "plan", false, false},
    {"price", PARAM_NUMBERS, "prices", false, false},
    {"accessible", PARAM_TEXTS, "accessible", false, false},
    {"focus", PARAM_POINT, "focus", false, false},
    {0}};
static const struct param set_params[] = {
    SETTINGS, {"price", PARAM_NUMBERS, "prices", false, false}, {0}};
static const struct param block_params[] = {{"section", PARAM_TEXTS, "sections", false, false},
                                            {"area", PARAM_NUMBERS, "areas", false, false},
                                            {"channel", PARAM_TEXT, "channel", false, false},
                                            {0}};
static const struct param list_params[] = {{"upcoming", PARAM_TRUE, "upcoming", false, false}, {0}};
static const struct param watch_params[] = {{"after", PARAM_INTEGER, "after", false, false}, {0}};

static const char *const columns[] = {"id",     "status",  "available", "held",
                                      "booked", "blocked", "name",      NULL};

static const struct verb verbs[] = {
    {.name = "create", .method = "POST", .path = "/v1/events", .params = create_params},
    {.name = "list",
     .method = "GET",
     .path = "/v1/events",
     .params = list_params,
     .columns = columns,
     .page_max = 100},
    {.name = "ls",
     .method = "GET",
     .path = "/v1/events",
     .params = list_params,
     .columns = columns,
     .page_max = 100},
    {.name = "show", .method = "GET", .path = "/v1/events/%s", .operand = "EVENT"},
    {.name = "map",
     .method = "GET",
     .path = "/v1/events/%s/seats",
     .operand = "EVENT",
     .render = render_map},
    {.name = "close", .method = "POST", .path = "/v1/events/%s/close", .operand = "EVENT"},
    {.name = "open", .method = "POST", .path = "/v1/events/%s/open", .operand = "EVENT"},
    {.name = "archive", .method = "POST", .path = "/v1/events/%s/archive", .operand = "EVENT"},
    {.name = "cancel", .method = "POST", .path = "/v1/events/%s/cancel", .operand = "EVENT"},
    {.name = "set",
     .method = "PATCH",
     .path = "/v1/events/%s",
     .operand = "EVENT",
     .params = set_params},
    {.name = "block",
     .method = "POST",
     .path = "/v1/events/%s/block",
     .operand = "EVENT",
     .rest = "seats",
     .params = block_params},
    {.name = "unblock",
     .method = "POST",
     .path = "/v1/events/%s/unblock",
     .operand = "EVENT",
     .rest = "seats",
     .params = block_params},
    {.name = "watch",
     .method = "GET",
     .path = "/v1/events/%s/stream",
     .operand = "EVENT",
     .params = watch_params,
     .run = event_watch},
    {0},
};

int cli_event(int argc, char **argv)
{
    static const struct resource event = {.name = "event", .usage = usage, .verbs = verbs};
    return resource_main(&event, argc, argv);
}
