/* See file.h. */
#include "http/file.h"

#include <stdio.h>
#include <string.h>

#include "base/gzip.h"
#include "base/hash.h"

const struct static_file *file_find(const struct static_file *files, const char *name)
{
    for (; files->name; files++)
        if (strcmp(files->name, name) == 0)
            return files;
    return NULL;
}

static const char *type_of(const char *name)
{
    static const struct {
        const char *ending, *type;
    } types[] = {{".html", "text/html; charset=utf-8"},
                 {".css", "text/css; charset=utf-8"},
                 {".js", "text/javascript; charset=utf-8"},
                 {".svg", "image/svg+xml"},
                 {".png", "image/png"},
                 {".jpg", "image/jpeg"},
                 {".webp", "image/webp"}};
    size_t len = strlen(name);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        size_t n = strlen(types[i].ending);
        if (len > n && strcmp(name + len - n, types[i].ending) == 0)
            return types[i].type;
    }
    return "application/octet-stream";
}

/* The compressed file has other bytes, so it has another ETag. */
static void etag_write(char out[ETAG_SIZE], const struct static_file *file, const char *policy,
                       bool packed)
{
    unsigned by_policy = policy ? (unsigned)hash_bytes(policy, strlen(policy)) : 0;
    (void)snprintf(out, ETAG_SIZE, "\"%.12s%08x%s\"", file->digest, by_policy,
                   packed ? "-gzip" : "");
}

void answer_file_as(struct request *r, int status, const struct static_file *file,
                    const char *policy, const char *headers)
{
    struct answer *a = &r->answer;
    bool packed = gzip_accepted(request_header(r, "Accept-Encoding"));
    a->headers.varies = true;
    a->headers.more = headers;
    a->headers.policy = policy;
    a->headers.gzipped = packed;
    a->status = status;
    a->type = type_of(file->name);
    a->data = packed ? file->packed : file->plain;
    a->len = (size_t)(packed ? file->packed_end - file->packed : file->plain_end - file->plain);
}

void answer_file(struct request *r, const struct static_file *file, const char *policy,
                 const char *headers)
{
    struct answer *a = &r->answer;
    const char *known = request_header(r, "If-None-Match");
    bool packed = gzip_accepted(request_header(r, "Accept-Encoding"));
    etag_write(a->headers.etag, file, policy, packed);
    a->headers.varies = true;
    a->headers.more = headers;
    if (known && text_etag_listed(known, a->headers.etag))
        a->status = HTTP_NOT_MODIFIED;
    else
        answer_file_as(r, HTTP_OK, file, policy, headers);
}
