/* See http_origin.h. */
#include "net/http_origin.h"

#include <curl/curl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/status.h"

static bool is_loopback(const char *host)
{
    return strcasecmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0 ||
           (strncmp(host, "127.", 4) == 0 && host[strspn(host, "0123456789.")] == '\0');
}

static bool has_part(CURLU *url, CURLUPart part)
{
    char *text = NULL;
    bool has = curl_url_get(url, part, &text, 0) == CURLUE_OK;
    curl_free(text);
    return has;
}

bool http_origin_parse(const char *text, struct http_origin *ret)
{
    CURLU *url = curl_url();
    char *scheme = NULL, *host = NULL, *port = NULL, *path = NULL;
    hf_check(url);
    bool good = curl_url_set(url, CURLUPART_URL, text, CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK &&
                curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
                (strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0) &&
                curl_url_get(url, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
                curl_url_get(url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) == CURLUE_OK &&
                curl_url_get(url, CURLUPART_PATH, &path, 0) == CURLUE_OK;
    if (good) {
        ret->is_tls = strcmp(scheme, "https") == 0;
        ret->is_loopback = is_loopback(host);
        ret->is_bare = strcmp(path, "/") == 0 && text[strlen(text) - 1] != '/' &&
                       !has_part(url, CURLUPART_USER) && !has_part(url, CURLUPART_PASSWORD) &&
                       !has_part(url, CURLUPART_QUERY) && !has_part(url, CURLUPART_FRAGMENT);
        (void)snprintf(ret->text, sizeof ret->text, "%s://%s:%s", scheme, host, port);
    }
    curl_free(scheme);
    curl_free(host);
    curl_free(port);
    curl_free(path);
    curl_url_cleanup(url);
    return good;
}
