/* `holdfast lab anomalies`: plays the scripted interleavings (lab/anomalies.h) and prints each as a
 * timeline with one lane per actor.  Main thread. */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/common.h"
#include "cli/lab.h"
#include "lab/anomalies.h"

#define TIME_WIDTH 10
#define LANE_WIDTH_MIN 6
#define TEXT_WIDTH_MIN 24
#define WIDTH_USUAL 120

static const char usage[] =
    "usage: holdfast lab anomalies [--only NAME] [--json]\n"
    "Plays race conditions step by step on throwaway servers, each without and with its\n"
    "protection, and reads from the rows how it ended: violated or protected.  Without PostgreSQL\n"
    "or Redis it plays on SQLite what SQLite can show.  It names what cannot be played, and why.\n"
    "  --only NAME  play only this one:\n";

enum { RED, GREEN, DIM, BOLD, CYAN, PLAIN };
static const char *const codes[] = {"\033[1;31m", "\033[1;32m", "\033[2m",
                                    "\033[1m",    "\033[36m",   "\033[0m"};

struct paper {
    bool colours;
    size_t width, lane_width, n_lanes;
    const char *const *actors;
};

static const char *ink(const struct paper *p, int colour)
{
    return p->colours ? codes[colour] : "";
}

static size_t lane_of(const struct paper *p, const char *actor)
{
    size_t i = 0;
    while (strcmp(p->actors[i], actor) != 0)
        hf_check(++i < p->n_lanes);
    return i;
}

/* ---- one line: the lanes, and a part of a text beside them ---- */

/* The character in one column of the lanes.  If `from` and `to` are equal there is no arrow; if
 * they are n_lanes nothing happens on this line. */
static const char *glyph(const struct paper *p, size_t column, size_t from, size_t to)
{
    size_t lane = column / p->lane_width, low = from < to ? from : to, high = from < to ? to : from;
    bool on_lane = column % p->lane_width == 0;
    bool inside =
        from < p->n_lanes && column > low * p->lane_width && column < high * p->lane_width;
    if (on_lane && lane == from)
        return "●";
    if (on_lane && lane == to)
        return to > from ? "▶" : "◀";
    if (inside)
        return on_lane ? "┼" : "─";
    return on_lane ? "│" : " ";
}

static void put_lanes(struct buf *b, const struct paper *p, size_t from, size_t to)
{
    for (size_t column = 0; column <= (p->n_lanes - 1) * p->lane_width; column++) {
        const char *g = glyph(p, column, from, to);
        if (*g == ' ')
            buf_char(b, ' ');
        else
            buf_printf(b, "%s%s%s", ink(p, strcmp(g, "│") == 0 ? DIM : CYAN), g, ink(p, PLAIN));
    }
    buf_str(b, "   ");
}

/* How much of the text fits into `width` columns: up to a space, if there is one. */
static size_t line_len(const char *text, size_t width)
{
    size_t len = strlen(text), at = width;
    if (len <= width)
        return len;
    while (at > 0 && text[at] != ' ')
        at--;
    return at ? at : width;
}

static void put_text(struct buf *b, const struct paper *p, const char *time, size_t from, size_t to,
                     int colour, int indent, const char *text)
{
    size_t used = (size_t)indent + TIME_WIDTH + (p->n_lanes - 1) * p->lane_width + 4;
    size_t width = p->width > used + TEXT_WIDTH_MIN ? p->width - used : TEXT_WIDTH_MIN;
    do {
        size_t len = line_len(text, width);
        buf_printf(b, "%s%*s%s", ink(p, DIM), TIME_WIDTH - 1, time, ink(p, PLAIN));
        buf_char(b, ' ');
        put_lanes(b, p, from, to);
        buf_printf(b, "%*s%s%.*s%s\n", indent, "", ink(p, colour), (int)len, text, ink(p, PLAIN));
        text += len + (text[len] == ' ');
        from = to = p->n_lanes;
        time = "";
    } while (*text);
}

/* ---- an anomaly ---- */

static bool is_bad(const char *text)
{
    return strncmp(text, "ERROR", 5) == 0 || strcmp(text, "connection lost") == 0;
}

static void put_step(struct buf *b, const struct paper *p, const struct anomaly_step *step)
{
    char time[32];
    size_t from = lane_of(p, step->from), to = lane_of(p, step->to), no = p->n_lanes;
    snprintf(time, sizeof time, "%.1f ms", (double)step->at_us / 1000);
    put_text(b, p, time, from, to, is_bad(step->text) ? RED : BOLD, 0, step->text);
    if (step->answer) {
        put_text(b, p, "", to, from, is_bad(step->answer) ? RED : CYAN, 0, step->answer);
    }
    if (step->thinks) {
        struct buf thought = {0};
        buf_printf(&thought, "%s thinks: \"%s\"", step->from, step->thinks);
        buf_char(&thought, '\0');
        put_text(b, p, "", no, no, DIM, 4, thought.data);
        buf_close(&thought);
    }
}

/* A sentence below the lanes.  Its first line begins after `used` columns. */
static void put_sentence(struct buf *b, const struct paper *p, size_t used, const char *text)
{
    do {
        size_t len = line_len(text, p->width > used + TEXT_WIDTH_MIN ? p->width - used : p->width);
        buf_printf(b, "%.*s\n", (int)len, text);
        text += len + (text[len] == ' ');
        if (*text)
            buf_str(b, "  ");
        used = 2;
    } while (*text);
}

static void put_side(struct buf *b, const struct paper *p, const struct anomaly_played *played,
                     int k)
{
    const struct anomaly_side *side = &played->sides[k];
    bool as_stated = side->violated == (k == 0);
    buf_printf(b, "\n  %s%s%s: %s\n\n%*s", ink(p, BOLD), anomaly_side_names[k], ink(p, PLAIN),
               played->anomaly->strategies[k], TIME_WIDTH, "");
    for (size_t i = 0; i < p->n_lanes; i++)
        buf_printf(b, "%s%-*s%s", ink(p, BOLD), (int)p->lane_width, p->actors[i], ink(p, PLAIN));
    buf_char(b, '\n');
    for (size_t i = 0; i < side->steps.n; i++)
        put_step(b, p, &side->steps.v[i]);
    const char *word = side->violated ? "VIOLATED" : "PROTECTED";
    const char *but = as_stated ? "" : ", which it should not be";
    buf_printf(b, "\n  %s%s%s%s: ", ink(p, side->violated ? RED : GREEN), word, ink(p, PLAIN), but);
    put_sentence(b, p, strlen(word) + strlen(but) + 4, side->evidence);
}

static void put_anomaly(struct buf *b, struct paper *p, const struct anomaly_played *played)
{
    p->actors = played->actors;
    p->lane_width = LANE_WIDTH_MIN;
    for (p->n_lanes = 0; p->actors[p->n_lanes]; p->n_lanes++) {
        size_t len = strlen(p->actors[p->n_lanes]) + 2;
        if (len > p->lane_width && p->actors[p->n_lanes + 1]) /* the last lane needs no room */
            p->lane_width = len;
    }
    buf_printf(b, "%s%s: %s%s\n", ink(p, BOLD), played->anomaly->name, played->anomaly->title,
               ink(p, PLAIN));
    for (int k = 0; k < ANOMALY_SIDES; k++)
        put_side(b, p, played, k);
    buf_str(b, "\n  ");
    put_sentence(b, p, 2, played->anomaly->moral);
    buf_printf(b, "  %sSee ", ink(p, DIM));
    put_sentence(b, p, 6, played->anomaly->more);
    buf_str(b, ink(p, PLAIN));
    buf_char(b, '\n');
}

static void put_text_result(struct buf *b, const struct anomalies_result *result)
{
    struct winsize size;
    const char *no_color = getenv("NO_COLOR");
    bool is_terminal = isatty(STDOUT_FILENO) == 1;
    struct paper p = {.width = WIDTH_USUAL, .colours = is_terminal && !(no_color && *no_color)};
    if (is_terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col)
        p.width = size.ws_col;
    if (result->note[0])
        buf_printf(b, "%s%s%s\n\n", ink(&p, BOLD), result->note, ink(&p, PLAIN));
    for (size_t i = 0; i < result->n; i++)
        put_anomaly(b, &p, &result->played[i]);
    for (size_t i = 0; i < result->n_left_out; i++) {
        const char *name = result->left_out[i].anomaly->name;
        buf_printf(b, "left out: %s%s%s: ", ink(&p, BOLD), name, ink(&p, PLAIN));
        put_sentence(b, &p, strlen("left out: : ") + strlen(name), result->left_out[i].why);
    }
    buf_printf(b, "%s%s%s\n", ink(&p, result->ok ? GREEN : RED),
               result->ok ? "ok: violated without protection, protected with it"
                          : "NOT ok: a side did not end as it should",
               ink(&p, PLAIN));
}

static void print_usage(FILE *out)
{
    fputs(usage, out);
    for (size_t i = 0; i < ANOMALY_COUNT; i++)
        fprintf(out, "      %-18s %s\n", anomalies[i]->name, anomalies[i]->title);
    fputs("  --json       print JSON\n"
          "The output has colours on a terminal, unless NO_COLOR is set.\n"
          "Exit status: 0 every side ended as it should, 1 one did not, 64 usage, 69 a server is\n"
          "unavailable and SQLite cannot take its place.\n",
          out);
}

int cli_lab_anomalies(int argc, char **argv)
{
    const char *only = NULL;
    bool json = false;
    const struct cli_option options[] = {
        {"only", CLI_TEXT, .to = &only}, {"json", CLI_TRUE, .to = &json}, {0}};
    int code = cli_options("lab anomalies", argc, argv, options, NULL);
    if (code == EXIT_SUCCESS)
        print_usage(stdout);
    if (code >= 0)
        return code;
    if (optind != argc)
        return cli_misused("lab anomalies", "unexpected operand %.60s", argv[optind]);
    struct anomalies_result result;
    struct hf_err err = {0};
    enum hf_status status = anomalies_run(only, &result, &err);
    if (status != HF_OK) {
        cli_say("lab anomalies", "%s", err.msg);
        return status == HF_INVALID_REQUEST ? EXIT_BAD_USAGE : EXIT_NO_BACK_END;
    }
    struct buf b = {0};
    if (json) {
        anomalies_json(&result, &b);
        buf_char(&b, '\n');
    } else {
        put_text_result(&b, &result);
    }
    code = result.ok ? EXIT_SUCCESS : EXIT_FAILURE;
    anomalies_close(&result);
    return cli_print(&b) ? code : EXIT_NO_BACK_END;
}
