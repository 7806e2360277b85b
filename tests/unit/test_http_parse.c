/* The request parser: what it accepts, what it refuses and with which answer.  Every input arrives
 * whole, byte by byte, and in two pieces cut at every place, and leads to the same transcript each
 * time (support/transcript.h). */
#include "support/fixtures.h"

#include <string.h>

#include "support/transcript.h"

struct example {
    const char *in;
    size_t len;
    const char *transcript;
};

#define CASE(bytes, text)                                                                          \
    {                                                                                              \
        .in = (bytes), .len = sizeof(bytes) - 1, .transcript = (text)                              \
    }

/* Inputs that differ in one place. */
#define LINE(text) text "\r\nHost: x\r\n\r\n"
#define FIELDS(text) "GET / HTTP/1.1\r\n" text "\r\n"
#define WITH(text) "GET / HTTP/1.1\r\nHost: x\r\n" text "\r\n\r\n"
#define CHUNKS(text) "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" text
/* What they lead to. */
#define GOT(fields) "GET / 1.1 persists\nHost: x\n" fields "end\n"
#define GOT_CHUNKS(text) "POST / 1.1 persists\nHost: x\nTransfer-Encoding: chunked\n" text
#define NO_METHOD "refused 400 The request line must begin with a method and a space.\n"
#define BAD_TARGET                                                                                 \
    "refused 400 The target of a request must be printable ASCII, without # and between single "   \
    "spaces.\n"
#define NO_PATH "refused 400 The target of a request must be a path or a URL of this server.\n"
#define BAD_URL "refused 400 The URL in the request line has no valid host.\n"
#define NO_VERSION "refused 400 The request line must end in HTTP/1.1 or HTTP/1.0.\n"
#define NO_CRLF "refused 400 A line must end in CR and LF.\n"
#define NO_NAME                                                                                    \
    "refused 400 A header must be a name, a colon and a value, and no space before the colon.\n"
#define FOLDED "refused 400 A header must not be folded.\n"
#define CONTROL "refused 400 A header must not contain control characters.\n"
#define NO_HOST "refused 400 Host is missing.\n"
#define TWO_HOSTS "refused 400 There must be only one Host.\n"
#define BAD_HOST "refused 400 Host must be a host, or a host and a port.\n"
#define BAD_LENGTH "refused 400 There must be only one Content-Length, a decimal number.\n"
#define NOT_CHUNKED "refused 400 The last Transfer-Encoding of a request must be chunked.\n"
#define NO_DIGITS "refused 400 The length of a chunk must be 1 to 16 hexadecimal digits.\n"
#define NO_CHUNK_CRLF "refused 400 A line of a chunked body must end in CR and LF.\n"
#define BAD_TRAILER "refused 400 The name of a trailer must be a token.\n"

/* Feeds `step` bytes at a time after the first `cut`. */
static void check_arrival(const struct example *e, size_t cut, size_t step)
{
    struct transcript t;
    transcript_begin(&t);
    transcript_feed(&t, e->in, cut);
    for (size_t at = cut; at < e->len; at += step)
        transcript_feed(&t, e->in + at, step < e->len - at ? step : e->len - at);
    transcript_end(&t);
    if (strcmp(t.out.data, e->transcript) != 0)
        fail_msg("after %zu of %zu bytes in steps of %zu:\n%s\nled to:\n%s\ninstead of:\n%s", cut,
                 e->len, step, e->in, t.out.data, e->transcript);
    transcript_close(&t);
}

static void check_example(const struct example *e)
{
    check_arrival(e, e->len, 1);
    check_arrival(e, 0, 1);
    for (size_t cut = 1; cut < e->len; cut++)
        check_arrival(e, cut, e->len);
}

static void check_examples(const struct example *examples, size_t n)
{
    for (size_t i = 0; i < n; i++)
        check_example(&examples[i]);
}
#define CHECK(...)                                                                                 \
    do {                                                                                           \
        const struct example examples[] = {__VA_ARGS__};                                           \
        check_examples(examples, sizeof examples / sizeof *examples);                              \
    } while (0)

/* ---- request line ---- */

static void a_request_is_taken_apart(void **state)
{
    (void)state;
    CHECK(CASE("POST /v1/holds?a=b HTTP/1.1\r\nHost: localhost:8080\r\nContent-Type: a/b\r\n"
               "Content-Length: 2\r\nX:\t y z \t\r\nEmpty:\r\n\r\n{}",
               "POST /v1/holds?a=b 1.1 persists\nHost: localhost:8080\nContent-Type: a/b\n"
               "Content-Length: 2\nX: y z\nEmpty: \nbody {}\nend\n"),
          CASE("", ""), CASE("GET", "incomplete\n"),
          CASE("GET / HTTP/1.1\r\nHost: x\r\n", "incomplete\n"));
}

static void requests_follow_each_other(void **state)
{
    (void)state;
    CHECK(CASE(FIELDS("Host: x\r\n") FIELDS("Host: x\r\n"), GOT("") GOT("")),
          CASE("\r\n\r\n" FIELDS("Host: x\r\n") "\r\n" FIELDS("Host: x\r\n"), GOT("") GOT("")),
          CASE(WITH("Content-Length: 3") "abc" FIELDS("Host: x\r\n") "GE",
               GOT("Content-Length: 3\nbody abc\n") GOT("") "incomplete\n"),
          CASE(CHUNKS("1\r\na\r\n0\r\n\r\n") FIELDS("Host: x\r\n"),
               GOT_CHUNKS("body a\nend\n") GOT("")),
          /* nothing is read after the last request of a connection */
          CASE(WITH("Connection: close") "GET\n", "GET / 1.1 closes\nHost: x\nConnection: close\n"
                                                  "end\n"));
}

static void any_token_is_a_method(void **state)
{
    (void)state;
    CHECK(CASE(LINE("M-SEARCH / HTTP/1.1"), "M-SEARCH / 1.1 persists\nHost: x\nend\n"),
          CASE(LINE("!#$%&'*+-.^_`|~09az / HTTP/1.1"),
               "!#$%&'*+-.^_`|~09az / 1.1 persists\nHost: x\nend\n"),
          CASE(LINE(" GET / HTTP/1.1"), NO_METHOD), CASE(LINE("\tGET / HTTP/1.1"), NO_METHOD),
          CASE(LINE("G(ET / HTTP/1.1"), NO_METHOD), CASE(LINE("G\0ET / HTTP/1.1"), NO_METHOD),
          CASE(LINE("G\xc3\x89T / HTTP/1.1"), NO_METHOD), CASE(LINE("GET"), NO_METHOD),
          CASE(LINE("GET\t/ HTTP/1.1"), NO_METHOD), CASE(LINE("\rGET / HTTP/1.1"), NO_METHOD));
}

/* TLS, for example, may wait for an answer before it ever sends an LF. */
static void what_is_not_http_is_refused_at_its_first_byte(void **state)
{
    (void)state;
    CHECK(CASE("\x16\x03\x01", NO_METHOD), CASE("\r\n\x80", NO_METHOD), CASE("\0", NO_METHOD));
}

static void a_target_is_a_path_or_a_url(void **state)
{
    (void)state;
    CHECK(CASE(LINE("GET /a//b/../%00?c=%zz&\"<>\\^`{|}[] HTTP/1.1"),
               "GET /a//b/../%00?c=%zz&\"<>\\^`{|}[] 1.1 persists\nHost: x\nend\n"),
          CASE(LINE("GET http://y:80/a?b HTTP/1.1"),
               "GET http://y:80/a?b 1.1 persists\npath /a?b\nhost y:80\nHost: x\nend\n"),
          CASE(LINE("GET HTTPS://[::1] HTTP/1.1"),
               "GET HTTPS://[::1] 1.1 persists\npath \nhost [::1]\nHost: x\nend\n"),
          CASE(LINE("GET http://x?a HTTP/1.1"),
               "GET http://x?a 1.1 persists\npath ?a\nHost: x\nend\n"),
          CASE(LINE("OPTIONS * HTTP/1.1"), "OPTIONS * 1.1 persists\nHost: x\nend\n"),
          CASE(LINE("GET * HTTP/1.1"), NO_PATH), CASE(LINE("OPTIONS ** HTTP/1.1"), NO_PATH),
          CASE(LINE("GET a HTTP/1.1"), NO_PATH), CASE(LINE("GET ?a HTTP/1.1"), NO_PATH),
          CASE(LINE("GET ftp://x/ HTTP/1.1"), NO_PATH), CASE(LINE("GET x:80 HTTP/1.1"), NO_PATH),
          CASE(LINE("GET http:/x HTTP/1.1"), NO_PATH), CASE(LINE("CONNECT x:80 HTTP/1.1"), NO_PATH),
          CASE(LINE("CONNECT / HTTP/1.1"), NO_PATH),
          CASE(LINE("CONNECT http://x/ HTTP/1.1"), NO_PATH),
          CASE(LINE("GET http:// HTTP/1.1"), BAD_URL),
          CASE(LINE("GET http:///a HTTP/1.1"), BAD_URL),
          CASE(LINE("GET http://u@x/ HTTP/1.1"), BAD_URL),
          CASE(LINE("GET http://x:y/ HTTP/1.1"), BAD_URL),
          CASE(LINE("GET http://[x]/ HTTP/1.1"), BAD_URL));
}

static void a_target_has_no_odd_characters(void **state)
{
    (void)state;
    CHECK(CASE(LINE("GET  / HTTP/1.1"), BAD_TARGET), CASE(LINE("GET /\t HTTP/1.1"), BAD_TARGET),
          CASE(LINE("GET /a#b HTTP/1.1"), BAD_TARGET), CASE(LINE("GET /\0 HTTP/1.1"), BAD_TARGET),
          CASE(LINE("GET /\x7f HTTP/1.1"), BAD_TARGET),
          CASE(LINE("GET /\xc3\xa9 HTTP/1.1"), BAD_TARGET),
          CASE(LINE("GET /\r HTTP/1.1"), BAD_TARGET), CASE(LINE("GET "), BAD_TARGET));
}

static void versions_are_told_apart(void **state)
{
    (void)state;
    CHECK(CASE("GET / HTTP/1.0\r\n\r\n", "GET / 1.0 closes\nend\n"),
          CASE(LINE("GET / HTTP/1.9"), GOT("")), CASE(LINE("GET / HTTP/2.0"), "refused 505\n"),
          CASE("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "refused 505\n"),
          CASE(LINE("GET / HTTP/0.9"), "refused 505\n"),
          CASE(LINE("GET / HTTP/3"), "refused 505\n"), CASE(LINE("GET /"), NO_VERSION),
          CASE(LINE("GET / "), NO_VERSION), CASE(LINE("GET / HTTP"), NO_VERSION),
          CASE(LINE("GET / HTTP/"), NO_VERSION), CASE(LINE("GET / HTTP/1"), NO_VERSION),
          CASE(LINE("GET / HTTP/1."), NO_VERSION), CASE(LINE("GET / HTTP/1,1"), NO_VERSION),
          CASE(LINE("GET / HTTP/1.10"), NO_VERSION), CASE(LINE("GET / HTTP/11.1"), NO_VERSION),
          CASE(LINE("GET / http/1.1"), NO_VERSION), CASE(LINE("GET / HTTP/1.1 "), NO_VERSION),
          CASE(LINE("GET /  HTTP/1.1"), NO_VERSION), CASE(LINE("GET / HTTP/1.1\r"), NO_VERSION),
          CASE(LINE("GET / a HTTP/1.1"), NO_VERSION), CASE(LINE("GET / ICE/1.0"), NO_VERSION));
}

/* ---- fields ---- */

static void lines_end_in_cr_and_lf(void **state)
{
    (void)state;
    CHECK(CASE("\n", NO_CRLF), CASE("GET / HTTP/1.1\n", NO_CRLF),
          CASE("GET / HTTP/1.1\r\nHost: x\n", NO_CRLF), CASE(FIELDS("Host: x\n\r\n"), NO_CRLF),
          CASE("GET / HTTP/1.1\r\nHost: x\r\n\n", NO_CRLF),
          CASE(FIELDS("A: b\nHost: x\r\n"), NO_CRLF), CASE(FIELDS("A: b\rHost: x\r\n"), CONTROL),
          CASE(FIELDS("A: b\r\r\n"), CONTROL), CASE(FIELDS("Host: x\r\n\r") "\n", NO_NAME));
}

static void names_are_tokens_and_the_colon_follows(void **state)
{
    (void)state;
    CHECK(CASE(WITH("!#$%&'*+-.^_`|~09az: b"), GOT("!#$%&'*+-.^_`|~09az: b\n")),
          CASE(WITH("A:b"), GOT("A: b\n")), CASE(WITH("A::b"), GOT("A: :b\n")),
          CASE(WITH("A : b"), NO_NAME), CASE(WITH("A\t: b"), NO_NAME), CASE(WITH(": b"), NO_NAME),
          CASE(WITH("A"), NO_NAME), CASE(WITH("A b"), NO_NAME), CASE(WITH("A\0: b"), NO_NAME),
          CASE(WITH("A(: b"), NO_NAME), CASE(WITH("\xc3\x84: b"), NO_NAME),
          CASE(WITH("A\x7f: b"), NO_NAME), CASE(WITH("A: b\r\n c"), FOLDED),
          CASE(WITH("A: b\r\n\tc: d"), FOLDED), CASE(FIELDS(" Host: x\r\n"), FOLDED));
}

static void values_have_no_control_characters(void **state)
{
    (void)state;
    CHECK(CASE(WITH("A: \tb\tc \x80\xff,\"\\ \t"), GOT("A: b\tc \x80\xff,\"\\\n")),
          CASE(WITH("A:  \t "), GOT("A: \n")), CASE(WITH("A: b\0c"), CONTROL),
          CASE(WITH("A: \x01"), CONTROL), CASE(WITH("A: b\x0b"), CONTROL),
          CASE(WITH("A: b\x1f"
                    "c"),
               CONTROL),
          CASE(WITH("A: b\x7f"), CONTROL));
}

static void there_is_one_host_and_it_is_one(void **state)
{
    (void)state;
    CHECK(CASE(FIELDS("hOSt:\r\n"), "GET / 1.1 persists\nhOSt: \nend\n"),
          CASE(FIELDS("Host: a-b.example.:8080\r\n"),
               "GET / 1.1 persists\nHost: a-b.example.:8080\nend\n"),
          CASE(FIELDS("Host: [fe80::1.2.3.4]:1\r\n"),
               "GET / 1.1 persists\nHost: [fe80::1.2.3.4]:1\nend\n"),
          CASE(FIELDS("Host: x:\r\n"), "GET / 1.1 persists\nHost: x:\nend\n"),
          CASE("GET / HTTP/1.0\r\nHost: x\r\n\r\n", "GET / 1.0 closes\nHost: x\nend\n"),
          CASE(FIELDS(""), NO_HOST), CASE(FIELDS("Hos: x\r\nHosts: x\r\nMost: x\r\n"), NO_HOST),
          CASE("GET http://x/ HTTP/1.1\r\n\r\n", NO_HOST), CASE(WITH("Host: x"), TWO_HOSTS),
          CASE("GET / HTTP/1.0\r\nHost:\r\nhost: x\r\n\r\n", TWO_HOSTS),
          CASE(FIELDS("Host: a b\r\n"), BAD_HOST), CASE(FIELDS("Host: a, b\r\n"), BAD_HOST),
          CASE(FIELDS("Host: a/b\r\n"), BAD_HOST), CASE(FIELDS("Host: u@a\r\n"), BAD_HOST),
          CASE(FIELDS("Host: http://a\r\n"), BAD_HOST), CASE(FIELDS("Host: :80\r\n"), BAD_HOST),
          CASE(FIELDS("Host: a:b\r\n"), BAD_HOST), CASE(FIELDS("Host: a:80:80\r\n"), BAD_HOST),
          CASE(FIELDS("Host: a:123456\r\n"), BAD_HOST), CASE(FIELDS("Host: []\r\n"), BAD_HOST),
          CASE(FIELDS("Host: [::1\r\n"), BAD_HOST), CASE(FIELDS("Host: [::1]a\r\n"), BAD_HOST),
          CASE(FIELDS("Host: ::1\r\n"), BAD_HOST), CASE(FIELDS("Host: \xc3\xa9\r\n"), BAD_HOST),
          CASE("GET / HTTP/1.0\r\nHost: a b\r\n\r\n", BAD_HOST));
}

static void the_connection_persists_if_both_can_and_want_it(void **state)
{
    (void)state;
    CHECK(CASE("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n",
               "GET / 1.0 persists\nConnection: Keep-Alive\nend\n"),
          CASE("GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n",
               "GET / 1.0 closes\nConnection: keep-alive, close\nend\n"),
          CASE(WITH("Connection: keep-alive"), GOT("Connection: keep-alive\n")),
          CASE(WITH("Connection: closed, x-close, clos e,,"),
               GOT("Connection: closed, x-close, clos e,,\n")),
          CASE(WITH("Connection: upgrade ,\t CLOSE\t, x"),
               "GET / 1.1 closes\nHost: x\nConnection: upgrade ,\t CLOSE\t, x\nend\n"),
          CASE(WITH("Connection: keep-alive\r\nconnection:,close"),
               "GET / 1.1 closes\nHost: x\nConnection: keep-alive\nconnection: ,close\nend\n"));
}

static void the_only_expectation_is_to_continue(void **state)
{
    (void)state;
    CHECK(CASE(WITH("Expect: 100-Continue"),
               "GET / 1.1 persists expects\nHost: x\nExpect: 100-Continue\nend\n"),
          CASE("GET / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n",
               "GET / 1.0 closes\nExpect: 100-continue\nend\n"),
          CASE("GET / HTTP/1.0\r\nExpect: x\r\n\r\n", "GET / 1.0 closes\nExpect: x\nend\n"),
          CASE(WITH("Expect: 100-continued"), "refused 417\n"),
          CASE(WITH("Expect: 100-continue, x"), "refused 417\n"),
          CASE(WITH("Expect:"), "refused 417\n"),
          CASE(WITH("Expect: 100-continue\r\nExpect: x"), "refused 417\n"));
}

/* ---- framing ---- */

static void a_length_is_one_decimal_number(void **state)
{
    (void)state;
    CHECK(
        CASE(WITH("Content-Length: 0"), GOT("Content-Length: 0\n")),
        CASE(WITH("Content-length: 002") "\\\n", GOT("Content-length: 002\nbody \\x5c\\x0a\n")),
        CASE(WITH("Content-Length: 18446744073709551615") "a",
             "GET / 1.1 persists\nHost: x\nContent-Length: 18446744073709551615\nincomplete\n"),
        CASE(WITH("Content-Length: 18446744073709551616"), BAD_LENGTH),
        CASE(WITH("Content-Length: 99999999999999999999"), BAD_LENGTH),
        CASE(WITH("Content-Length:"), BAD_LENGTH), CASE(WITH("Content-Length: -1"), BAD_LENGTH),
        CASE(WITH("Content-Length: +1"), BAD_LENGTH), CASE(WITH("Content-Length: 1 1"), BAD_LENGTH),
        CASE(WITH("Content-Length: 1, 1"), BAD_LENGTH),
        CASE(WITH("Content-Length: 0x1"), BAD_LENGTH), CASE(WITH("Content-Length: 1."), BAD_LENGTH),
        CASE(WITH("Content-Length: 1\r\nContent-Length: 1"), BAD_LENGTH),
        CASE(WITH("Content-Length: 0\r\nContent-Length: 1"), BAD_LENGTH));
}

static void the_only_encoding_is_chunked(void **state)
{
    (void)state;
    static const char both[] =
        "refused 400 A body has either a Content-Length or chunks, not both.\n";
    CHECK(CASE("GET / HTTP/1.1\r\nHost: x\r\ntransfer-encoding: CHUNKED\r\n\r\n0\r\n\r\n",
               GOT("transfer-encoding: CHUNKED\n")),
          CASE(WITH("Transfer-Encoding: gzip, chunked"), "refused 501\n"),
          CASE(WITH("Transfer-Encoding: chunked,\t chunked"), "refused 501\n"),
          CASE(WITH("Transfer-Encoding: gzip"), NOT_CHUNKED),
          CASE(WITH("Transfer-Encoding: identity"), NOT_CHUNKED),
          CASE(WITH("Transfer-Encoding: chunked, gzip"), NOT_CHUNKED),
          CASE(WITH("Transfer-Encoding: chunked,"), NOT_CHUNKED),
          CASE(WITH("Transfer-Encoding: xchunked"), NOT_CHUNKED),
          CASE(WITH("Transfer-Encoding: gzip, xchunked"), NOT_CHUNKED),
          CASE(WITH("Transfer-Encoding: chunked;q=1"), NOT_CHUNKED),
          CASE(WITH("Transfer-Encoding: \"chunked\""), NOT_CHUNKED),
          CASE(WITH("Transfer-Encoding:"), NOT_CHUNKED),
          CASE(WITH("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"),
               "refused 400 There must be only one Transfer-Encoding.\n"),
          CASE("GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
               "refused 400 HTTP/1.0 has no Transfer-Encoding.\n"),
          CASE(WITH("Transfer-Encoding: chunked\r\nContent-Length: 5"), both),
          CASE(WITH("Content-Length: 0\r\nTransfer-Encoding: chunked"), both));
}

static void chunks_are_taken_apart(void **state)
{
    (void)state;
    CHECK(CASE(CHUNKS("0\r\n\r\n"), GOT_CHUNKS("end\n")),
          CASE(CHUNKS("5\r\nhello\r\n00a\r\n, chunked!\r\n000\r\n\r\n"),
               GOT_CHUNKS("body hello, chunked!\nend\n")),
          CASE(CHUNKS("1;a=b;c=\"\t; \xff\"\r\n\n\r\nA;\r\n0\r\n\r\n67890\r\n0;x\r\n\r\n"),
               GOT_CHUNKS("body \\x0a0\\x0d\\x0a\\x0d\\x0a67890\nend\n")),
          CASE(CHUNKS("0\r\nA: b\r\nContent-Length: \t\xff\r\n\r\n"), GOT_CHUNKS("end\n")),
          CASE(CHUNKS("ffffffffffffffff\r\na"), GOT_CHUNKS("incomplete\n")),
          CASE(CHUNKS("0\r\n"), GOT_CHUNKS("incomplete\n")),
          CASE(CHUNKS("0\r\n\r"), GOT_CHUNKS("incomplete\n")));
}

static void malformed_chunks_are_refused(void **state)
{
    (void)state;
    CHECK(CASE(CHUNKS("\r\n"), GOT_CHUNKS(NO_DIGITS)), CASE(CHUNKS("g\r\n"), GOT_CHUNKS(NO_DIGITS)),
          CASE(CHUNKS(" 1\r\na\r\n"), GOT_CHUNKS(NO_DIGITS)),
          CASE(CHUNKS("1 \r\na\r\n"), GOT_CHUNKS(NO_DIGITS)),
          CASE(CHUNKS("1 ;a\r\n"), GOT_CHUNKS(NO_DIGITS)),
          CASE(CHUNKS("0x1\r\na\r\n"), GOT_CHUNKS(NO_DIGITS)),
          CASE(CHUNKS("-1\r\n"), GOT_CHUNKS(NO_DIGITS)),
          CASE(CHUNKS(";a\r\n"), GOT_CHUNKS(NO_DIGITS)), CASE(CHUNKS("1\n"), GOT_CHUNKS(NO_DIGITS)),
          CASE(CHUNKS("00000000000000001\r\n"), GOT_CHUNKS(NO_DIGITS)),
          CASE(CHUNKS("1\ra"), GOT_CHUNKS(NO_CHUNK_CRLF)),
          CASE(CHUNKS("1;a\ra"), GOT_CHUNKS(NO_CHUNK_CRLF)),
          CASE(CHUNKS("1;a\n"),
               GOT_CHUNKS("refused 400 A chunk extension has a control character.\n")),
          CASE(CHUNKS("1;\0"),
               GOT_CHUNKS("refused 400 A chunk extension has a control character.\n")),
          CASE(CHUNKS("1\r\nab\r\n"), GOT_CHUNKS(NO_CHUNK_CRLF)),
          CASE(CHUNKS("1\r\na\n"), GOT_CHUNKS(NO_CHUNK_CRLF)),
          CASE(CHUNKS("1\r\na\rb"), GOT_CHUNKS(NO_CHUNK_CRLF)),
          CASE(CHUNKS("1\r\na\r\n\r\n"), GOT_CHUNKS(NO_DIGITS)));
}

static void malformed_trailers_are_refused(void **state)
{
    (void)state;
    CHECK(
        CASE(CHUNKS("0\r\n\n"), GOT_CHUNKS(BAD_TRAILER)),
        CASE(CHUNKS("0\r\nA : b\r\n\r\n"), GOT_CHUNKS(BAD_TRAILER)),
        CASE(CHUNKS("0\r\nA\r\n"), GOT_CHUNKS(BAD_TRAILER)),
        CASE(CHUNKS("0\r\n: b\r\n"), GOT_CHUNKS(BAD_TRAILER)),
        CASE(CHUNKS("0\r\nA: b\r\n c\r\n"), GOT_CHUNKS(BAD_TRAILER)),
        CASE(CHUNKS("0\r\nGET / HTTP/1.1\r\n"), GOT_CHUNKS(BAD_TRAILER)),
        CASE(CHUNKS("0\r\nA: b\n"), GOT_CHUNKS("refused 400 A trailer has a control character.\n")),
        CASE(CHUNKS("0\r\nA: b\rc"), GOT_CHUNKS(NO_CHUNK_CRLF)),
        CASE(CHUNKS("0\r\n\rA"), GOT_CHUNKS(NO_CHUNK_CRLF)));
}

/* ---- limits ---- */

/* An input that is too long to be cut at every place. */
static void check_long(const struct buf *in, const char *transcript)
{
    const struct example e = {.in = in->data, .len = in->len, .transcript = transcript};
    check_arrival(&e, e.len, 1);
    check_arrival(&e, 0, 1);
    for (size_t cut = 1; cut < e.len; cut += 997)
        check_arrival(&e, cut, 7);
}

static void repeat(struct buf *b, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        buf_str(b, text);
}

static void a_head_has_at_most_16384_bytes(void **state)
{
    (void)state;
    static const char begin[] = "GET / HTTP/1.1\r\nHost: x\r\nA: ", end[] = "\r\n\r\n";
    for (size_t more = 0; more < 2; more++) {
        struct buf in = {0}, out = {0};
        size_t value_len = HEAD_LEN_MAX + more - (sizeof begin - 1) - (sizeof end - 1);
        buf_str(&in, begin);
        repeat(&in, "v", value_len);
        buf_str(&in, end);
        assert_int_equal(in.len, HEAD_LEN_MAX + more);
        buf_lit(&out, "GET / 1.1 persists\nHost: x\nA: ");
        repeat(&out, "v", value_len);
        buf_lit(&out, "\nend\n");
        buf_char(&out, '\0');
        check_long(&in, more ? "refused 431\n" : out.data);
        buf_close(&in);
        buf_close(&out);
    }
}

static void empty_lines_before_a_request_count(void **state)
{
    (void)state;
    struct buf in = {0};
    repeat(&in, "\r\n", HEAD_LEN_MAX / 2);
    check_long(&in, "refused 431\n");
    buf_close(&in);
}

static void a_head_has_at_most_100_fields(void **state)
{
    (void)state;
    for (size_t more = 0; more < 2; more++) {
        struct buf in = {0}, out = {0};
        buf_lit(&in, "GET / HTTP/1.1\r\nHost: x\r\n");
        repeat(&in, "A: b\r\n", FIELDS_MAX - 1 + more);
        buf_lit(&in, "\r\n");
        buf_lit(&out, "GET / 1.1 persists\nHost: x\n");
        repeat(&out, "A: b\n", FIELDS_MAX - 1);
        buf_lit(&out, "end\n");
        buf_char(&out, '\0');
        check_long(&in, more ? "refused 431\n" : out.data);
        buf_close(&in);
        buf_close(&out);
    }
}

static void a_body_has_at_most_100_trailers(void **state)
{
    (void)state;
    for (size_t more = 0; more < 2; more++) {
        struct buf in = {0};
        buf_str(&in, CHUNKS("0\r\n"));
        repeat(&in, "A: b\r\n", FIELDS_MAX + more);
        buf_lit(&in, "\r\n");
        check_long(&in, more ? GOT_CHUNKS("refused 431 There must be at most 100 trailers.\n")
                             : GOT_CHUNKS("end\n"));
        buf_close(&in);
    }
}

/* Small chunks, each with an extension of 2 bytes and its CR. */
static void extensions_and_trailers_share_a_limit(void **state)
{
    (void)state;
    static const char too_large[] =
        GOT_CHUNKS("refused 431 Chunk extensions and trailers must have at most 16384 bytes in "
                   "all.\n");
    const size_t n = 3000;
    for (size_t more = 0; more < 2; more++) {
        struct buf in = {0}, out = {0};
        buf_str(&in, CHUNKS(""));
        repeat(&in, "1;ab\r\nc\r\n", n);
        buf_lit(&in, "0\r\nA: ");
        /* "A:", the space, the CR of the value and that of the last line */
        repeat(&in, "v", HEAD_LEN_MAX - 3 * n - 5 + more);
        buf_lit(&in, "\r\n\r\n");
        buf_str(&out, GOT_CHUNKS("body "));
        repeat(&out, "c", n);
        buf_lit(&out, "\nend\n");
        buf_char(&out, '\0');
        check_long(&in, more ? too_large : out.data);
        buf_close(&in);
        buf_close(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_is_taken_apart),
        cmocka_unit_test(requests_follow_each_other),
        cmocka_unit_test(any_token_is_a_method),
        cmocka_unit_test(what_is_not_http_is_refused_at_its_first_byte),
        cmocka_unit_test(a_target_is_a_path_or_a_url),
        cmocka_unit_test(a_target_has_no_odd_characters),
        cmocka_unit_test(versions_are_told_apart),
        cmocka_unit_test(lines_end_in_cr_and_lf),
        cmocka_unit_test(names_are_tokens_and_the_colon_follows),
        cmocka_unit_test(values_have_no_control_characters),
        cmocka_unit_test(there_is_one_host_and_it_is_one),
        cmocka_unit_test(the_connection_persists_if_both_can_and_want_it),
        cmocka_unit_test(the_only_expectation_is_to_continue),
        cmocka_unit_test(a_length_is_one_decimal_number),
        cmocka_unit_test(the_only_encoding_is_chunked),
        cmocka_unit_test(chunks_are_taken_apart),
        cmocka_unit_test(malformed_chunks_are_refused),
        cmocka_unit_test(malformed_trailers_are_refused),
        cmocka_unit_test(a_head_has_at_most_16384_bytes),
        cmocka_unit_test(empty_lines_before_a_request_count),
        cmocka_unit_test(a_head_has_at_most_100_fields),
        cmocka_unit_test(a_body_has_at_most_100_trailers),
        cmocka_unit_test(extensions_and_trailers_share_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
