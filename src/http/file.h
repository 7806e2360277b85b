/* Files that are part of the program, as answers: with the right type, compressed where the client
 * accepts that, and with an ETag, so that a client that has the file is not sent it again.  Nothing
 * is read from a file system.  On the request's HTTP thread; costs nothing but the headers. */
#ifndef HF_HTTP_FILE_H
#define HF_HTTP_FILE_H

#include "http/request.h"

#define FILE_DIGEST_LEN 16

/* A row of a table that ends with a row without a name. */
struct static_file {
    const char *name;
    const char *digest;              /* FILE_DIGEST_LEN characters that change with the bytes */
    const char *plain, *plain_end;   /* the bytes */
    const char *packed, *packed_end; /* the same in gzip */
};

/* The file of this name, or NULL. */
const struct static_file *file_find(const struct static_file *files, const char *name);

/* Answers with the file, or with 304.  A browser keeps the headers of a page together with it, so a
 * page whose `policy` (Content-Security-Policy; NULL: nothing may load) has changed is sent again.
 * `policy` and `headers` are as in struct answer. */
void answer_file(struct request *r, const struct static_file *file, const char *policy,
                 const char *headers);
/* Answers with the file and another status, such as 404; the client does not keep it. */
void answer_file_as(struct request *r, int status, const struct static_file *file,
                    const char *policy, const char *headers);

#endif
