/* `holdfast booking`: sales, and the money that goes back for them.  Main thread. */
#include "cli/resource.h"

static const char usage[] =
    "usage: holdfast booking list [--event EVENT] [--status STATUS] [--reference TEXT]\n"
    "           [--owner TEXT] [--limit N]\n"
    "       holdfast booking create HOLD [--email ADDRESS] [--reference TEXT]\n"
    "       holdfast booking show BOOKING\n"
    "       holdfast booking refund BOOKING [--amount N]\n"
    "       holdfast booking cancel BOOKING [--reason TEXT]\n"
    "create makes a booking that is to be paid; what it prints has the client secret for that.\n"
    "The ids of holds and bookings are secrets.  If the id is -, it is read from standard input.\n"
    "  --event EVENT, --status STATUS, --reference TEXT, --owner TEXT\n"
    "                         list: only such bookings\n"
    "  --email ADDRESS        create: where the payment provider sends a receipt\n"
    "  --reference TEXT       create: your own number of it\n"
    "  --amount N             refund: how much, in the smallest unit; default all that is left\n"
    "  --reason TEXT          cancel: why\n"
    "  --limit N              list: at most N\n" REMOTE_OPTIONS_HELP REMOTE_EXIT_HELP;

static const struct param list_params[] = {{"event", PARAM_TEXT, "event", false, false},
                                           {"status", PARAM_TEXT, "status", false, false},
                                           {"reference", PARAM_TEXT, "reference", false, false},
                                           {"owner", PARAM_TEXT, "owner", false, false},
                                           {0}};
static const struct param create_params[] = {{"email", PARAM_TEXT, "email", false, false},
                                             {"reference", PARAM_TEXT, "reference", false, false},
                                             {0}};
static const struct param refund_params[] = {{"amount", PARAM_INTEGER, "amount", false, false},
                                             {0}};
static const struct param cancel_params[] = {{"reason", PARAM_TEXT, "reason", false, false}, {0}};

static const char *const columns[] = {"id",        "status", "event",    "seats", "areas",
                                      "reference", "amount", "currency", NULL};

static const struct verb verbs[] = {
    {.name = "list",
     .method = "GET",
     .path = "/v1/bookings",
     .params = list_params,
     .columns = columns,
     .page_max = 100},
    {.name = "create",
     .method = "POST",
     .path = "/v1/bookings",
     .operand = "HOLD",
     .operand_member = "hold",
     .params = create_params},
    {.name = "show", .method = "GET", .path = "/v1/bookings/%s", .operand = "BOOKING"},
    {.name = "refund",
     .method = "POST",
     .path = "/v1/bookings/%s/refund",
     .operand = "BOOKING",
     .params = refund_params},
    {.name = "cancel",
     .method = "POST",
     .path = "/v1/bookings/%s/cancel",
     .operand = "BOOKING",
     .params = cancel_params},
    {0},
};

int cli_booking(int argc, char **argv)
{
    static const struct resource booking = {.name = "booking", .usage = usage, .verbs = verbs};
    return resource_main(&booking, argc, argv);
}
