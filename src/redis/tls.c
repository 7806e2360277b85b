/* See tls.h.  OpenSSL reads and writes through a BIO of our own, since its own one for sockets
 * raises SIGPIPE.  A context is made for every connection, so that renewed certificates are used.
 */
#include "redis/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/status.h"
#include "base/wait.h"

struct redis_tls {
    SSL_CTX *context;
    SSL *ssl;
    BIO_METHOD *method;
    int fd;
    const char *reason; /* why TLS failed after the handshake; NULL: it did not */
};

/* ---- the socket as OpenSSL sees it ---- */

static int bio_write(BIO *bio, const char *data, int len)
{
    const struct redis_tls *t = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    ssize_t n = send(t->fd, data, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_write(bio);
    return (int)n;
}

static int bio_read(BIO *bio, char *data, int size)
{
    const struct redis_tls *t = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    ssize_t n = recv(t->fd, data, (size_t)size, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_read(bio);
    return (int)n;
}

static long bio_ctrl(BIO *bio, int command, long number, void *pointer)
{
    (void)bio, (void)number, (void)pointer;
    return command == BIO_CTRL_FLUSH; /* nothing is buffered here */
}

static bool bio_attach(struct redis_tls *t)
{
    t->method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "redis");
    BIO *bio = NULL;
    if (t->method && BIO_meth_set_write(t->method, bio_write) &&
        BIO_meth_set_read(t->method, bio_read) && BIO_meth_set_ctrl(t->method, bio_ctrl))
        bio = BIO_new(t->method);
    if (!bio)
        return false;
    BIO_set_data(bio, t);
    BIO_set_init(bio, 1);
    SSL_set_bio(t->ssl, bio, bio);
    return true;
}

/* ---- the handshake ---- */

static struct redis_tls *give_up(struct redis_tls *t, const char *what,
                                 char ret_why[REDIS_TLS_WHY_SIZE])
{
    unsigned long code = ERR_peek_last_error();
    const char *reason = code ? ERR_reason_error_string(code) : NULL;
    long verified = t->ssl ? SSL_get_verify_result(t->ssl) : X509_V_OK;
    if (verified != X509_V_OK)
        reason = X509_verify_cert_error_string(verified);
    snprintf(ret_why, REDIS_TLS_WHY_SIZE, "TLS: %s%s%.100s", what, reason ? ": " : "",
             reason ? reason : "");
    redis_tls_close(t);
    return NULL;
}

/* Returns what cannot be used, or NULL. */
static const char *load_files(SSL_CTX *context, const struct redis_address *a)
{
    if (a->cacert ? SSL_CTX_load_verify_locations(context, a->cacert, NULL) != 1
                  : SSL_CTX_set_default_verify_paths(context) != 1)
        return "the file of cacert= cannot be used";
    if (a->cert && SSL_CTX_use_certificate_chain_file(context, a->cert) != 1)
        return "the file of cert= cannot be used";
    if (a->key && (SSL_CTX_use_PrivateKey_file(context, a->key, SSL_FILETYPE_PEM) != 1 ||
                   SSL_CTX_check_private_key(context) != 1))
        return "the file of key= cannot be used";
    return NULL;
}

/* The certificate has to name the host, or its address if the URL has that. */
static bool expect_host(SSL *ssl, const char *host)
{
    unsigned char address[sizeof(struct in6_addr)];
    if (inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1)
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
    return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
}

/* Returns 0 at the end of the handshake, ETIMEDOUT, or EPROTO. */
static int shake_hands(struct redis_tls *t, int64_t ms)
{
    int64_t until_us = wait_now_us() + 1000 * ms;
    for (;;) {
        ERR_clear_error();
        int n = SSL_connect(t->ssl);
        if (n == 1)
            return 0;
        int error = SSL_get_error(t->ssl, n);
        if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE)
            return EPROTO;
        struct pollfd file = {.fd = t->fd,
                              .events = error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT};
        int64_t left_us = until_us - wait_now_us();
        if (left_us <= 0 || wait_files(&file, 1, left_us) == 0)
            return ETIMEDOUT;
    }
}

struct redis_tls *redis_tls_open(const struct redis_address *a, const char *host, int fd,
                                 int64_t ms, char ret_why[REDIS_TLS_WHY_SIZE])
{
    struct redis_tls *t = hf_alloc(sizeof *t);
    t->fd = fd;
    ERR_clear_error();
    t->context = SSL_CTX_new(TLS_client_method());
    if (!t->context)
        return give_up(t, "OpenSSL cannot be used", ret_why);
    SSL_CTX_set_min_proto_version(t->context, TLS1_2_VERSION);
    SSL_CTX_set_options(t->context, SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_mode(t->context,
                     SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_verify(t->context, SSL_VERIFY_PEER, NULL);
    const char *unusable = load_files(t->context, a);
    if (unusable)
        return give_up(t, unusable, ret_why);
    t->ssl = SSL_new(t->context);
    if (!t->ssl || !bio_attach(t) || !expect_host(t->ssl, host))
        return give_up(t, "OpenSSL cannot be used", ret_why);
    int error = shake_hands(t, ms);
    if (error == ETIMEDOUT)
        return give_up(t, "no handshake in time", ret_why);
    return error == 0 ? t : give_up(t, "the handshake failed", ret_why);
}

void redis_tls_close(struct redis_tls *t)
{
    if (!t)
        return;
    if (t->ssl && SSL_is_init_finished(t->ssl))
        (void)SSL_shutdown(t->ssl); /* says goodbye if the socket has room for it */
    SSL_free(t->ssl);
    SSL_CTX_free(t->context);
    BIO_meth_free(t->method);
    ERR_clear_error();
    free(t);
}

/* ---- data ---- */

/* Sets errno for a call that returned `n`, and returns what recv would. */
static ssize_t failed(struct redis_tls *t, int n)
{
    switch (SSL_get_error(t->ssl, n)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
        errno = EAGAIN;
        return -1;
    case SSL_ERROR_ZERO_RETURN:
        return 0;
    case SSL_ERROR_SYSCALL:
        errno = errno ? errno : ECONNRESET;
        return -1;
    default:
        t->reason = ERR_reason_error_string(ERR_peek_last_error());
        errno = EPROTO;
        return -1;
    }
}

const char *redis_tls_reason(const struct redis_tls *t) { return t->reason; }

static int clamp(size_t len) { return len < (1 << 30) ? (int)len : 1 << 30; }

ssize_t redis_tls_send(struct redis_tls *t, const void *data, size_t len)
{
    ERR_clear_error();
    errno = 0;
    int n = SSL_write(t->ssl, data, clamp(len));
    return n > 0 ? n : failed(t, n);
}

ssize_t redis_tls_recv(struct redis_tls *t, void *data, size_t size)
{
    ERR_clear_error();
    errno = 0;
    int n = SSL_read(t->ssl, data, clamp(size));
    return n > 0 ? n : failed(t, n);
}

bool redis_tls_has_data(const struct redis_tls *t) { return SSL_pending(t->ssl) > 0; }

bool redis_tls_is_stale(struct redis_tls *t)
{
    char c;
    ERR_clear_error();
    errno = 0;
    int n = SSL_peek(t->ssl, &c, 1);
    return n > 0 || failed(t, n) == 0 || errno != EAGAIN;
}
