/* Certificates for C tests, made by OpenSSL's library while the test runs.  Nothing here asserts by
 * cmocka: what fails aborts. */
#ifndef HF_TESTS_SUPPORT_CERTIFICATES_H
#define HF_TESTS_SUPPORT_CERTIFICATES_H

#include <openssl/ssl.h>
#include <stdint.h>

struct certificate {
    X509 *cert;
    EVP_PKEY *key;
};

/* A certificate for the name, valid in this span of Unix time.  `signer` NULL: it signs itself.  It
 * may sign others. */
void certificate_make(struct certificate *ret, const char *name, const struct certificate *signer,
                      int64_t from_s, int64_t until_s);
void certificate_close(struct certificate *c);

/* Writes certificates, one after the other, as PEM. */
void certificates_write(const char *path, const struct certificate *const *list, int n);
/* Writes the key as PEM, for its owner alone. */
void certificate_write_key(const char *path, const struct certificate *c, const char *passphrase);

#endif
