/* See certificates.h. */
#include "support/certificates.h"

#include <fcntl.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/status.h"

static void add_extension(X509 *cert, int nid, const char *value)
{
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, nid, value);
    hf_check(extension && X509_add_ext(cert, extension, -1) == 1);
    X509_EXTENSION_free(extension);
}

void certificate_make(struct certificate *ret, const char *name, const struct certificate *signer,
                      int64_t from_s, int64_t until_s)
{
    static long serial;
    char names[128];
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = X509_new();
    hf_check(key && cert);
    X509_NAME *subject = X509_get_subject_name(cert);
    hf_check(X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name,
                                        -1, -1, 0) == 1);
    X509_set_version(cert, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(cert), ++serial);
    ASN1_TIME_set(X509_getm_notBefore(cert), (time_t)from_s);
    ASN1_TIME_set(X509_getm_notAfter(cert), (time_t)until_s);
    X509_set_pubkey(cert, key);
    X509_set_issuer_name(cert, signer ? X509_get_subject_name(signer->cert) : subject);
    (void)snprintf(names, sizeof names, "DNS:%s", name);
    add_extension(cert, NID_subject_alt_name, names);
    add_extension(cert, NID_basic_constraints, "critical,CA:TRUE");
    hf_check(X509_sign(cert, signer ? signer->key : key, EVP_sha256()) > 0);
    *ret = (struct certificate){.cert = cert, .key = key};
}

void certificate_close(struct certificate *c)
{
    X509_free(c->cert);
    EVP_PKEY_free(c->key);
    *c = (struct certificate){0};
}

void certificates_write(const char *path, const struct certificate *const *list, int n)
{
    FILE *file = fopen(path, "we");
    hf_check(file);
    for (int i = 0; i < n; i++)
        hf_check(PEM_write_X509(file, list[i]->cert) == 1);
    hf_check(fclose(file) == 0);
}

void certificate_write_key(const char *path, const struct certificate *c, const char *passphrase)
{
    FILE *file = fopen(path, "we");
    hf_check(file && chmod(path, 0600) == 0);
    const EVP_CIPHER *cipher = passphrase ? EVP_aes_128_cbc() : NULL;
    hf_check(PEM_write_PrivateKey(file, c->key, cipher, (const unsigned char *)passphrase,
                                  passphrase ? (int)strlen(passphrase) : 0, NULL, NULL) == 1);
    hf_check(fclose(file) == 0);
}
