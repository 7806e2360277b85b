/* Headers that are read by hand (Accept-Encoding, If-None-Match, Idempotency-Key, X-Forwarded-For,
 * Host and Origin), times and numbers of queries, and the lists of networks, origins and names an
 * operator gives.  The first byte of the input picks the reader, the rest is the value. */
#include "fuzz.h"

#include <strings.h>

#include "api/idempotency.h"
#include "base/clock.h"
#include "base/gzip.h"
#include "http/address.h"
#include "http/cors.h"
#include "http/host.h"
#include "http/server_internal.h"
#include "json/fields.h"

static void accept_encoding(const char *value)
{
    bool wanted = gzip_accepted(value);
    hf_check(!wanted || strpbrk(value, "gG*")); /* never if the header does not name it */
}

static void if_none_match(const char *value)
{
    static const char etag[] = "\"417\"";
    bool listed = text_etag_listed(value, etag);
    hf_check(!listed || strstr(value, etag) || strchr(value, '*'));
}

static void idempotency_key(const char *value, size_t len)
{
    static const struct http_app app = {0};
    static struct access access = {.has_keys = true, .counts_clients = true};
    static struct server server = {.config = {.app = &app, .access = &access}};
    const struct text hold = {"hold_x", 6};
    struct call c = {.http = {.server = &server,
                              .segment = hold,
                              .headers = {.key = {value, len}, .n_keys = 1},
                              .id = "req_000000000000000000"}};
    bool taken = idempotency_read(&c);
    hf_check(taken == (c.http.answer.status == 0) && taken == c.command.key.present);
    hf_check(taken || c.http.answer.status == problem_invalid_request.status);
    if (taken && value[0] != '"' && len <= 253) { /* the same key in quotes is the same key */
        struct buf quoted = {0};
        buf_char(&quoted, '"');
        buf_put(&quoted, value, len);
        buf_char(&quoted, '"');
        struct call again = {.http = {.server = &server,
                                      .segment = hold,
                                      .headers = {.key = {quoted.data, quoted.len}, .n_keys = 1}}};
        hf_check(idempotency_read(&again));
        hf_check(memcmp(again.command.key.hash, c.command.key.hash, KEY_HASH_SIZE) == 0);
        buf_close(&quoted);
    }
    buf_close(&c.http.out);
}

/* The UTC text of a time is the same time again, as long as its year has four digits. */
static void time_of_query(const char *value)
{
    const int64_t end_ms = INT64_C(253402300800000);
    int64_t ms = 0, again = -1;
    char text[CLOCK_TEXT_SIZE];
    if (!parse_time(value, &ms) || ms < 0 || ms >= end_ms)
        return;
    clock_format_ms(ms, text);
    hf_check(parse_time(text, &again) && again == ms);
}

static void digits(const char *value, size_t len)
{
    int64_t n = -1;
    if (!parse_digits(value, len, &n))
        return;
    hf_check(len >= 1 && len <= 18 && n >= 0 && n == strtoll(value, NULL, 10));
    hf_check(strspn(value, "0123456789") == len);
}

/* Any value of X-Forwarded-For leads to some client, and without trusted proxies to the peer. */
static void forwarded_for(const char *value, size_t len)
{
    const struct address peer = {.bytes = {10, 0, 0, 1}, .v4 = true};
    struct networks trusted;
    struct hf_err err = {0};
    struct address one;
    hf_check(networks_parse("10.0.0.0/8,fd00::/8", &trusted, &err));
    struct address client = forwarded_client(&trusted, &peer, &value, 1);
    hf_check(address_client(&client) != 0);
    const struct networks none = {0};
    client = forwarded_client(&none, &peer, &value, 1);
    hf_check(memcmp(client.bytes, peer.bytes, sizeof peer.bytes) == 0);
    if (address_parse(value, len, &one))
        hf_check(len >= 2 && address_client(&one) != 0);
}

static void networks(const char *value)
{
    struct networks list = {0};
    struct hf_err err = {0};
    bool read = networks_parse(value, &list, &err);
    hf_check(read || err.msg[0]);
    for (size_t i = 0; read && i < list.n; i++) {
        hf_check(list.list[i].bits <= (list.list[i].address.v4 ? 32 : 128));
        hf_check(networks_have(&list, &list.list[i].address));
    }
}

static void origins(const char *value)
{
    struct cors cors = {0};
    struct hf_err err = {0};
    bool read = cors_parse(value, &cors, &err);
    hf_check(read || err.msg[0]);
    for (const char **o = cors.origins; read && *o; o++)
        hf_check(cors_match(&cors, *o, strlen(*o)));
    if (read)
        cors_close(&cors);
}

/* Only names and addresses of loopback pass as such. */
static void host(const char *value, size_t len)
{
    const struct hosts loopback = {.loopback = true};
    const struct text text = {value, len}, name = host_name(text);
    struct address address;
    struct buf origin = {0};
    bool is_name = name.len == 9 && strncasecmp(name.data, "localhost", 9) == 0;
    bool is_address = address_parse(name.data, name.len, &address) && address_is_loopback(&address);
    hf_check(hosts_have(&loopback, text) == (is_name || is_address || len == 0));
    buf_lit(&origin, "http://");
    buf_put(&origin, value, len);
    hf_check(host_is_origin(text, (struct text){origin.data, origin.len}) == (len > 0));
    buf_close(&origin);
}

static void hosts(const char *value)
{
    struct hosts list = {0};
    struct hf_err err = {0};
    bool read = hosts_add(&list, value, &err);
    hf_check(read || err.msg[0]);
    for (size_t i = 0; read && i < list.n; i++) {
        const char *text = list.list[i].text;
        hf_check(!text[0] || hosts_have(&list, (struct text){text, strlen(text)}));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    char *value = fuzz_text(data + 1, size - 1);
    switch (data[0]) {
    case 'A':
        accept_encoding(value);
        break;
    case 'I':
        if_none_match(value);
        break;
    case 'K':
        idempotency_key(value, size - 1);
        break;
    case 'T':
        time_of_query(value);
        break;
    case '9':
        digits(value, size - 1);
        break;
    case 'F':
        forwarded_for(value, size - 1);
        break;
    case 'N':
        networks(value);
        break;
    case 'O':
        origins(value);
        break;
    case 'H':
        host(value, size - 1);
        break;
    case 'L':
        hosts(value);
        break;
    default:
        break;
    }
    free(value);
    return 0;
}
