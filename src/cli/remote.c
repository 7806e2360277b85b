/* See remote.h.  Main thread. */
#include "cli/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/backoff.h"
#include "base/hex.h"
#include "base/random.h"
#include "base/wait.h"
#include "cli/render.h"

#define SERVER_DEFAULT "http://127.0.0.1:8080"
#define KEY_LEN_MAX 255
#define BODY_LEN_MAX ((size_t)256 << 20) /* maps and events of two million seats */
#define TRY_MS 10000                     /* of one exchange */
#define PAUSE_MS 100                     /* before the first repetition; doubled for each other */
#define PAUSE_MAX_MS 2000
/* How often a question without an effect is asked of a server that closes the connection instead of
 * answering: for three seconds.  Of a request that may have been carried out, the outcome is worth
 * the whole time. */
#define CLOSED_MAX 6
#define SILENCE_MS 45000 /* a stream has a comment every 15 s */

/* ---- the server and the key ---- */

static bool set_key(struct remote *r, const char *key, size_t len, const char *from)
{
    bool fits = len > 0 && len <= KEY_LEN_MAX;
    for (size_t i = 0; fits && i < len; i++)
        fits = key[i] > ' ' && key[i] < 0x7f;
    if (!fits) {
        cli_say(r->command, "%s: an access key has 1 to 255 printable ASCII characters", from);
        return false;
    }
    buf_lit(&r->authorization, "Bearer ");
    buf_put(&r->authorization, key, len);
    buf_char(&r->authorization, '\0');
    return true;
}

/* Takes the key of the first line that is neither empty nor a comment: the format of the server's
 * files, where a name may stand before a key. */
static bool read_key_file(struct remote *r)
{
    char text[16384];
    struct stat st;
    int fd = open(r->key_file, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 || fstat(fd, &st) != 0 ? -1 : read(fd, text, sizeof text - 1);
    if (len < 0)
        cli_say(r->command, "%.200s: %s", r->key_file, strerror(errno));
    else if (S_ISREG(st.st_mode) && st.st_mode & (S_IRWXG | S_IRWXO))
        cli_say(r->command, "warning: %.200s: other users may read it; chmod 600 it", r->key_file);
    if (fd >= 0)
        (void)close(fd);
    if (len < 0)
        return false;
    text[len] = '\0';
    bool is_set = false, is_good = true;
    char *rest = NULL;
    for (char *line = strtok_r(text, "\r\n", &rest); line && !is_set;
         line = strtok_r(NULL, "\r\n", &rest))
        if (*line != '#') {
            const char *space = strchr(line, ' '), *key = space ? space + 1 : line;
            is_set = true;
            is_good = set_key(r, key, strlen(key), r->key_file);
        }
    explicit_bzero(text, sizeof text);
    if (!is_set)
        cli_say(r->command, "%.200s: there is no key in it", r->key_file);
    return is_set && is_good;
}

static bool read_key(struct remote *r)
{
    const char *key = getenv("HOLDFAST_KEY");
    if (r->key_file)
        return read_key_file(r);
    return !key || !*key || set_key(r, key, strlen(key), "HOLDFAST_KEY");
}

static void set_base(struct remote *r, const char *url)
{
    size_t len = strlen(url);
    while (len && url[len - 1] == '/')
        len--;
    char *base = hf_strndup(url, len);
    free(r->base);
    r->base = base;
}

bool remote_open(struct remote *r)
{
    const char *server = r->server ? r->server : getenv("HOLDFAST_SERVER");
    const char *given = r->idempotency_key;
    if (!server || !*server)
        server = SERVER_DEFAULT;
    if (strncmp(server, "http://", 7) != 0 && strncmp(server, "https://", 8) != 0) {
        cli_say(r->command, "the server's URL begins with http:// or https://");
        return false;
    }
    set_base(r, server);
    r->is_tls = strncmp(server, "https://", 8) == 0;
    if (given && (!*given || strlen(given) >= sizeof r->key)) {
        cli_say(r->command, "--idempotency-key: 1 to 255 characters");
        return false;
    }
    if (!read_key(r))
        return false;
    const char *ca_file = r->ca_file ? r->ca_file : getenv("HOLDFAST_CACERT");
    r->client = http_client_new(&(struct http_client_options){
        .body_len_max = BODY_LEN_MAX, .ca_file = ca_file && *ca_file ? ca_file : NULL});
    return true;
}

bool remote_turn_to(struct remote *r, const char *url)
{
    if (r->is_tls && r->authorization.len && strncmp(url, "https://", 8) != 0)
        return false;
    set_base(r, url);
    return true;
}

void remote_close(struct remote *r)
{
    http_client_free(r->client);
    free(r->base);
    if (r->authorization.data)
        explicit_bzero(r->authorization.data, r->authorization.len);
    buf_close(&r->authorization);
    *r = (struct remote){0};
}

/* ---- problems ---- */

static int exit_code_of(int status, const char *code)
{
    if (status == 404)
        return EXIT_NO_SUCH_THING;
    if (status == 401 || status == 403 || status == 421)
        return EXIT_NO_ACCESS;
    if (status == 400 || status == 405 || status == 413)
        return EXIT_MALFORMED;
    if (status >= 400 && status < 500)
        return EXIT_REFUSED;
    return code && strcmp(code, "outcome_unknown") == 0 ? EXIT_OUTCOME_UNKNOWN : EXIT_NO_BACK_END;
}

/* What a problem says besides its title and its detail: which seats, how many are left. */
static void put_extras(struct buf *b, const json_t *problem)
{
    static const char *const shown[] = {"type",   "title",      "status", "code",
                                        "detail", "request_id", NULL};
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)problem, name, value)
    {
        bool is_shown = false;
        for (size_t i = 0; shown[i]; i++)
            is_shown |= strcmp(name, shown[i]) == 0;
        if (is_shown)
            continue;
        buf_char(b, ' ');
        render_text(b, name, strlen(name));
        buf_str(b, ": ");
        render_value(b, value);
        buf_char(b, '.');
    }
}

int remote_problem(const struct remote *r, const struct http_response *answer)
{
    json_t *problem =
        json_loadb(answer->body.data ? answer->body.data : "", answer->body.len, 0, NULL);
    const char *code = json_string_value(json_object_get(problem, "code"));
    const char *title = json_string_value(json_object_get(problem, "title"));
    const char *detail = json_string_value(json_object_get(problem, "detail"));
    struct buf b = {0};
    if (title) {
        render_text(&b, title, strlen(title));
        buf_printf(&b, " (%d ", answer->status);
        render_text(&b, code ? code : "", code ? strlen(code) : 0);
        buf_lit(&b, ").");
    } else if (answer->status / 100 == 2) {
        buf_lit(&b, "the server's answer is not JSON; is it Holdfast?");
    } else {
        buf_printf(&b, "the server answers with status %d and no reason", answer->status);
    }
    if (detail) {
        buf_char(&b, ' ');
        render_text(&b, detail, strlen(detail));
    }
    put_extras(&b, problem);
    if (answer->status == 401 && !r->authorization.len)
        buf_lit(&b, " Give a key with --key-file FILE or in HOLDFAST_KEY.");
    fprintf(stderr, "holdfast %s: %.*s\n", r->command, (int)b.len, b.data);
    int exit_code = exit_code_of(answer->status, code);
    buf_close(&b);
    json_decref(problem);
    return exit_code;
}

/* ---- requests ---- */

/* How the last try of a request ended. */
enum remote_ended {
    DONE,         /* an answer that is not worth another try */
    NOTHING_DONE, /* the server was not reached, or says that it did nothing; trying again may help
                   */
    MAY_BE_DONE,  /* the answer was lost, or the server does not know */
};

struct remote_attempt {
    enum remote_ended ended;
    int64_t pause_ms; /* that the server asked for; 0: none */
    bool is_unreachable;
    bool is_hopeless; /* another try would end in the same way */
    int n_closed;     /* tries so far whose answer was lost */
    struct hf_err err;
};

static int64_t retry_after_ms(const struct http_response *answer)
{
    const char *text = http_response_header(answer, "Retry-After");
    long seconds = text ? strtol(text, NULL, 10) : 0;
    return seconds > 0 && seconds < 3600 ? seconds * 1000 : 0;
}

/* NULL: has it any? */
static bool has_code(const struct http_response *answer, const char *code)
{
    json_t *problem = json_loadb(answer->body.data, answer->body.len, 0, NULL);
    const char *given = json_string_value(json_object_get(problem, "code"));
    bool has = given && (!code || strcmp(given, code) == 0);
    json_decref(problem);
    return has;
}

static bool is_json_or_empty(const struct http_response *answer)
{
    json_t *json = json_loadb(answer->body.data, answer->body.len, 0, NULL);
    bool is_json = json != NULL;
    json_decref(json);
    return is_json || answer->body.len == 0;
}

/* Does the answer say what became of earlier tries, too?  A key that is refused, a mistake of the
 * server and the word of somebody else do not. */
static bool covers_earlier_tries(const struct http_response *answer)
{
    return answer->status < 500 && answer->status != 401 && answer->status != 403 &&
           has_code(answer, NULL);
}

static void judge(struct remote_attempt *a, bool is_question, enum hf_status status,
                  const struct http_response *answer)
{
    a->is_unreachable = status == HF_UNAVAILABLE;
    a->pause_ms = 0;
    if (status != HF_OK) {
        a->ended = status == HF_OUTCOME_UNKNOWN ? MAY_BE_DONE : NOTHING_DONE;
        a->n_closed += a->ended == MAY_BE_DONE;
        a->is_hopeless = answer->is_too_large || (is_question && a->n_closed >= CLOSED_MAX);
        return;
    }
    a->pause_ms = retry_after_ms(answer);
    if (answer->status == 502 || answer->status == 504) /* a proxy's */
        a->ended = MAY_BE_DONE;
    else if (answer->status == 503)
        a->ended = has_code(answer, "outcome_unknown") ? MAY_BE_DONE : NOTHING_DONE;
    else if (answer->status == 429 ||
             (answer->status == 409 && has_code(answer, "idempotency_in_flight")))
        a->ended = NOTHING_DONE;
    else
        a->ended = DONE;
}

static int64_t now_ms(void) { return wait_now_us() / 1000; }

/* Sends the request until it has an answer or the time is up.  *ret_may_be_done: a try may have
 * been carried out that was not answered. */
static struct remote_attempt try_until_known(struct remote *r, struct http_request *request,
                                             struct http_response *ret, bool *ret_may_be_done)
{
    int64_t until_ms = now_ms() + r->timeout_ms;
    bool is_question = strcmp(request->method, "GET") == 0 && !r->is_patient;
    struct remote_attempt a = {0};
    *ret_may_be_done = false;
    for (unsigned n = 0;; n++) {
        int64_t left_ms = until_ms - now_ms();
        request->timeout_ms = left_ms < 1 ? 1 : left_ms < TRY_MS ? left_ms : TRY_MS;
        enum hf_status status = http_client_call(r->client, request, ret, &a.err);
        judge(&a, is_question, status, ret);
        *ret_may_be_done |= a.ended == MAY_BE_DONE;
        if (a.ended == DONE || a.err.code == HF_INVALID_REQUEST || a.is_hopeless)
            return a;
        if (a.is_unreachable && !*ret_may_be_done && !r->is_patient)
            return a;
        int64_t pause_ms = backoff_pause(PAUSE_MS, PAUSE_MAX_MS, n);
        int64_t wait_ms = a.pause_ms > pause_ms ? a.pause_ms : pause_ms;
        if (now_ms() + wait_ms >= until_ms)
            return a;
        wait_sleep_us(wait_ms * 1000);
    }
}

static void draw_key(struct remote *r)
{
    struct random random;
    uint8_t bytes[16];
    if (r->idempotency_key) {
        memcpy(r->key, r->idempotency_key, strlen(r->idempotency_key) + 1);
        return;
    }
    random_init_system(&random);
    random_bytes(&random, bytes, sizeof bytes);
    hex_format(bytes, sizeof bytes, r->key);
}

static int report(struct remote *r, const struct remote_attempt *a, bool is_keyed, bool may_be_done,
                  const struct http_response *answer)
{
    if (a->ended == DONE && answer->status / 100 == 2 && is_json_or_empty(answer))
        return EXIT_SUCCESS;
    int code = EXIT_NO_BACK_END;
    if (answer->status)
        code = r->is_quiet ? EXIT_NO_BACK_END : remote_problem(r, answer);
    else if (!r->is_quiet)
        cli_say(r->command, "%s", a->err.msg);
    if (a->err.code == HF_INVALID_REQUEST && !answer->status)
        return EXIT_BAD_USAGE;
    if (a->ended == DONE && (!may_be_done || covers_earlier_tries(answer)))
        return code;
    if (!is_keyed || !may_be_done)
        return EXIT_NO_BACK_END;
    if (!r->is_quiet)
        cli_say(r->command,
                "it may or may not have been done; to find out, without doing it twice, repeat the "
                "command with --idempotency-key %s",
                r->key);
    return EXIT_OUTCOME_UNKNOWN;
}

int remote_call(struct remote *r, const char *method, const char *path, const json_t *body,
                struct http_response *ret)
{
    bool is_keyed = strcmp(method, "POST") == 0 || strcmp(method, "PATCH") == 0;
    struct http_header headers[3];
    struct http_request request = {.method = method, .headers = headers, .is_repeatable = true};
    struct buf url = {0};
    bool may_be_done;
    if (r->authorization.len)
        headers[request.n_headers++] = (struct http_header){"Authorization", r->authorization.data};
    if (is_keyed) {
        draw_key(r);
        headers[request.n_headers++] = (struct http_header){"Idempotency-Key", r->key};
        headers[request.n_headers++] = (struct http_header){"Content-Type", "application/json"};
    }
    char *text = is_keyed && body ? json_dumps(body, JSON_COMPACT) : NULL;
    buf_printf(&url, "%s%s", r->base, path);
    buf_char(&url, '\0');
    request.url = url.data;
    request.body = text;
    request.body_len = text ? strlen(text) : 0;
    struct remote_attempt a = try_until_known(r, &request, ret, &may_be_done);
    int code = report(r, &a, is_keyed, may_be_done, ret);
    buf_close(&url);
    free(text);
    return code;
}

/* ---- answers without an end ---- */

enum hf_status remote_stream(struct remote *r, const char *path, const char *last_id,
                             bool (*on_body)(void *ctx, const char *data, size_t len), void *ctx,
                             struct http_response *ret, struct hf_err *err)
{
    struct http_header headers[2];
    struct http_request request = {.method = "GET",
                                   .headers = headers,
                                   .timeout_ms = SILENCE_MS,
                                   .on_body = on_body,
                                   .ctx = ctx};
    struct buf url = {0}, place = {0};
    if (*last_id)
        headers[request.n_headers++] = (struct http_header){"Last-Event-ID", last_id};
    if (r->authorization.len)
        headers[request.n_headers++] = (struct http_header){"Authorization", r->authorization.data};
    buf_printf(&url, "%s%s", r->base, path);
    buf_char(&url, '\0');
    request.url = url.data;
    enum hf_status status = http_client_call(r->client, &request, ret, err);
    const char *location =
        status == HF_OK && ret->status == 307 ? http_response_header(ret, "Location") : NULL;
    if (location && (!r->is_tls || strncmp(location, "https://", 8) == 0)) {
        buf_str(&place, location);
        buf_char(&place, '\0');
        request.url = place.data;
        request.n_headers = *last_id ? 1 : 0;
        status = http_client_call(r->client, &request, ret, err);
    }
    buf_close(&url);
    buf_close(&place);
    return status;
}
