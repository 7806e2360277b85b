/* See tls.h.  Sessions use the socket through OpenSSL's own BIO, which raises SIGPIPE: programs
 * that serve TLS ignore that signal. */
#include "http/tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/hash.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/private_file.h"

#define CIPHERS_1_2 "ECDHE+AESGCM:ECDHE+CHACHA20"
#define TICKET_LIFE_S 3600
#define KEY_FILE_MAX ((size_t)64 * 1024)
#define RECORD_MAX 16384 /* bytes of plain text in one record */
#define HANDSHAKE_BYTE 0x16

struct tls {
    struct lock lock; /* of `context` */
    SSL_CTX *context;
    const struct clock *clock;
    struct gauge *expires;
    struct counter *shaken, *failed;
};

struct tls_session {
    SSL *ssl;
    struct tls *tls;
    size_t unsent;        /* bytes of a record that the socket did not take; 0: none */
    uint64_t unsent_hash; /* of those bytes */
    bool broken;          /* nothing more can be said */
};

/* ---- certificates ---- */

struct identity {
    X509 *chain[TLS_CHAIN_MAX]; /* the server's own first */
    int n;
    EVP_PKEY *key;
};

static void identity_close(struct identity *id)
{
    for (int i = 0; i < id->n; i++)
        X509_free(id->chain[i]);
    EVP_PKEY_free(id->key);
}

static bool refuse(struct hf_err *err, const char *file, const char *why)
{
    (void)hf_err_set(err, HF_INVALID_REQUEST, "%.120s: %.120s", file, why);
    return false;
}

static bool read_chain(struct identity *id, const char *file, struct hf_err *err)
{
    errno = 0;
    BIO *bio = BIO_new_file(file, "r");
    if (!bio)
        return refuse(err, file, errno ? strerror(errno) : "it cannot be read");
    X509 *cert = NULL;
    while ((cert = PEM_read_bio_X509(bio, NULL, NULL, NULL)) && id->n < TLS_CHAIN_MAX)
        id->chain[id->n++] = cert;
    bool ended = !cert && ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
    BIO_free(bio);
    X509_free(cert);
    if (cert)
        return refuse(err, file, "it has too many certificates");
    if (ended && id->n > 0)
        return true;
    return refuse(err, file,
                  id->n ? "a certificate in it is damaged"
                        : "there is no certificate in it (PEM: -----BEGIN CERTIFICATE-----)");
}

/* Asked for the passphrase of a key: there is nobody to ask. */
static int no_passphrase(char *buf, int size, int writes, void *ctx)
{
    (void)buf, (void)size, (void)writes;
    *(bool *)ctx = true;
    return -1;
}

static bool read_key(struct identity *id, const char *file, struct hf_err *err)
{
    char *text = hf_alloc(KEY_FILE_MAX);
    size_t len = 0;
    bool is_encrypted = false;
    if (!private_file_read(file, text, KEY_FILE_MAX, &len, err)) {
        free(text);
        return false;
    }
    BIO *bio = BIO_new_mem_buf(text, (int)len);
    id->key = bio ? PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, &is_encrypted) : NULL;
    BIO_free(bio);
    explicit_bzero(text, KEY_FILE_MAX);
    free(text);
    if (id->key)
        return true;
    return refuse(err, file,
                  is_encrypted
                      ? "the key is encrypted; it has to be stored without a passphrase"
                      : "there is no private key in it (PEM: -----BEGIN PRIVATE KEY-----)");
}

/* Does the key belong to the first certificate, and did each certificate sign the one before? */
static bool check_identity(const struct identity *id, const char *cert_file, const char *key_file,
                           struct hf_err *err)
{
    int owner = 0;
    while (owner < id->n && X509_check_private_key(id->chain[owner], id->key) != 1)
        owner++;
    if (owner == id->n)
        return refuse(err, key_file, "the key does not belong to the certificate");
    bool in_order = owner == 0;
    for (int i = 1; i < id->n; i++)
        in_order &= X509_check_issued(id->chain[i], id->chain[i - 1]) == X509_V_OK;
    if (!in_order)
        return refuse(err, cert_file,
                      "the certificates are in the wrong order: the server's own comes first, and "
                      "then each one's signer");
    if (X509_check_purpose(id->chain[0], X509_PURPOSE_SSL_SERVER, 0) != 1)
        return refuse(err, cert_file, "the certificate is not one for servers");
    return true;
}

static int64_t seconds_of(const ASN1_TIME *time)
{
    struct tm tm = {0};
    return ASN1_TIME_to_tm(time, &tm) == 1 ? (int64_t)timegm(&tm) : 0;
}

static void note_times(struct tls *t, const X509 *cert, const char *file)
{
    int64_t now_s = clock_wall_us(t->clock) / 1000000;
    int64_t end_s = seconds_of(X509_get0_notAfter(cert));
    gauge_set(t->expires, end_s);
    if (now_s >= end_s)
        log_write(LOG_WARN, "the TLS certificate has expired, so clients refuse it", "file", file,
                  "days_ago", LOG_INT((now_s - end_s) / 86400), NULL);
    else if (end_s - now_s < TLS_EXPIRES_SOON_S)
        log_write(LOG_WARN, "the TLS certificate expires soon", "file", file, "days_left",
                  LOG_INT((end_s - now_s) / 86400), NULL);
    if (now_s < seconds_of(X509_get0_notBefore(cert)))
        log_write(LOG_WARN, "the TLS certificate is not valid yet, so clients refuse it", "file",
                  file, NULL);
}

/* ---- contexts ---- */

static int choose_protocol(SSL *ssl, const unsigned char **ret, unsigned char *ret_len,
                           const unsigned char *offered, unsigned len, void *ctx)
{
    static const unsigned char ours[] = "\x08http/1.1";
    (void)ssl, (void)ctx;
    unsigned char *chosen = NULL;
    if (SSL_select_next_proto(&chosen, ret_len, ours, sizeof ours - 1, offered, len) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *ret = chosen;
    return SSL_TLSEXT_ERR_OK;
}

static void context_configure(SSL_CTX *context)
{
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    hf_check(SSL_CTX_set_cipher_list(context, CIPHERS_1_2) == 1);
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                     SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA |
                                     SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                  SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_timeout(context, TICKET_LIFE_S);
    SSL_CTX_set_num_tickets(context, 1);
    SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
}

static SSL_CTX *context_new(const struct identity *id, const char *cert_file, struct hf_err *err)
{
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    hf_check(context);
    context_configure(context);
    bool good = SSL_CTX_use_certificate(context, id->chain[0]) == 1 &&
                SSL_CTX_use_PrivateKey(context, id->key) == 1;
    for (int i = 1; good && i < id->n; i++)
        good = SSL_CTX_add1_chain_cert(context, id->chain[i]) == 1;
    if (good)
        return context;
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    (void)refuse(err, cert_file, reason ? reason : "OpenSSL does not take it");
    SSL_CTX_free(context);
    return NULL;
}

struct tls *tls_new(struct metrics *metrics, const struct clock *clock)
{
    static const char shaken_name[] = "holdfast_tls_handshakes_total";
    static const char shaken_help[] = "TLS handshakes of clients, by how they ended.";
    struct tls *t = hf_alloc(sizeof *t);
    lock_init(&t->lock);
    t->clock = clock;
    t->expires = metrics_gauge(metrics, "holdfast_tls_certificate_expires_seconds", NULL,
                               "When the server's TLS certificate expires, in Unix time.");
    t->shaken = metrics_counter(metrics, shaken_name, "result=\"done\"", shaken_help);
    t->failed = metrics_counter(metrics, shaken_name, "result=\"failed\"", shaken_help);
    return t;
}

void tls_free(struct tls *t)
{
    if (!t)
        return;
    SSL_CTX_free(t->context);
    lock_close(&t->lock);
    free(t);
}

bool tls_load(struct tls *t, const char *cert_file, const char *key_file, struct hf_err *err)
{
    struct identity id = {0};
    SSL_CTX *context = NULL;
    ERR_clear_error();
    if (read_chain(&id, cert_file, err) && read_key(&id, key_file, err) &&
        check_identity(&id, cert_file, key_file, err))
        context = context_new(&id, cert_file, err);
    if (context) {
        note_times(t, id.chain[0], cert_file);
        lock_take(&t->lock);
        SSL_CTX *before = t->context;
        t->context = context;
        lock_give(&t->lock);
        SSL_CTX_free(before); /* sessions have references of their own */
    }
    identity_close(&id);
    ERR_clear_error();
    return context != NULL;
}

/* ---- sessions ---- */

enum tls_first tls_look(int fd)
{
    unsigned char first;
    ssize_t n = recv(fd, &first, 1, MSG_PEEK);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return TLS_FIRST_NONE;
    if (n == 1 && first == HANDSHAKE_BYTE)
        return TLS_FIRST_HELLO;
    return n == 1 && first >= 'A' && first <= 'Z' ? TLS_FIRST_PLAIN : TLS_FIRST_WRONG;
}

struct tls_session *tls_session_new(struct tls *t, int fd)
{
    struct tls_session *s = hf_alloc(sizeof *s);
    lock_take(&t->lock);
    s->ssl = SSL_new(t->context);
    lock_give(&t->lock);
    s->tls = t;
    if (!s->ssl || SSL_set_fd(s->ssl, fd) != 1) {
        tls_session_abort(s);
        return NULL;
    }
    SSL_set_accept_state(s->ssl);
    return s;
}

void tls_session_abort(struct tls_session *s)
{
    if (!s)
        return;
    if (s->ssl && !SSL_is_init_finished(s->ssl))
        counter_add(s->tls->failed, 1);
    SSL_free(s->ssl);
    ERR_clear_error();
    free(s);
}

void tls_session_end(struct tls_session *s)
{
    if (s && !s->broken && !s->unsent && SSL_is_init_finished(s->ssl))
        (void)SSL_shutdown(s->ssl);
    tls_session_abort(s);
}

enum tls_step tls_handshake(struct tls_session *s)
{
    ERR_clear_error();
    int n = SSL_do_handshake(s->ssl);
    if (n == 1) {
        counter_add(s->tls->shaken, 1);
        return TLS_DONE;
    }
    int error = SSL_get_error(s->ssl, n);
    if (error == SSL_ERROR_WANT_READ)
        return TLS_WANTS_READ;
    if (error == SSL_ERROR_WANT_WRITE)
        return TLS_WANTS_WRITE;
    s->broken = true;
    return TLS_FAILED;
}

/* Sets errno for a call that failed, and returns what the system's call would.  `waits_for` is what
 * OpenSSL wants if the socket is not ready; see tls.h about anything else. */
static ssize_t failed(struct tls_session *s, int waits_for)
{
    int error = SSL_get_error(s->ssl, 0);
    if (error == waits_for) {
        errno = EAGAIN;
        return -1;
    }
    if (error == SSL_ERROR_ZERO_RETURN && waits_for == SSL_ERROR_WANT_READ)
        return 0;
    s->broken = true;
    errno = EPROTO;
    return -1;
}

ssize_t tls_read(struct tls_session *s, void *data, size_t len)
{
    size_t n = 0;
    ERR_clear_error();
    return SSL_read_ex(s->ssl, data, len, &n) == 1 ? (ssize_t)n : failed(s, SSL_ERROR_WANT_READ);
}

/* The first bytes of the parts, as many as one record takes: they are copied into `room` unless the
 * first part has enough of them. */
static struct iovec gather(const struct iovec *parts, int n, char room[static RECORD_MAX])
{
    struct iovec all = {.iov_base = room};
    if (n == 1 || parts[0].iov_len >= RECORD_MAX) {
        all = parts[0];
        all.iov_len = all.iov_len < RECORD_MAX ? all.iov_len : RECORD_MAX;
        return all;
    }
    for (int i = 0; i < n && all.iov_len < RECORD_MAX; i++) {
        size_t free_len = RECORD_MAX - all.iov_len;
        size_t len = parts[i].iov_len < free_len ? parts[i].iov_len : free_len;
        memcpy(room + all.iov_len, parts[i].iov_base, len);
        all.iov_len += len;
    }
    return all;
}

ssize_t tls_write(struct tls_session *s, const struct iovec *parts, int n)
{
    char room[RECORD_MAX];
    size_t sent = 0;
    const struct iovec all = gather(parts, n, room);
    if (s->unsent &&
        (all.iov_len < s->unsent || hash_bytes(all.iov_base, s->unsent) != s->unsent_hash)) {
        s->broken = true;
        errno = EPROTO;
        return -1;
    }
    ERR_clear_error();
    if (SSL_write_ex(s->ssl, all.iov_base, all.iov_len, &sent) == 1) {
        s->unsent = 0;
        return (ssize_t)sent;
    }
    ssize_t result = failed(s, SSL_ERROR_WANT_WRITE);
    if (errno == EAGAIN && !s->unsent) {
        s->unsent = all.iov_len;
        s->unsent_hash = hash_bytes(all.iov_base, s->unsent);
    }
    return result;
}

bool tls_has_data(const struct tls_session *s) { return SSL_pending(s->ssl) > 0; }
