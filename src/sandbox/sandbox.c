/* See sandbox.h. */
#include "sandbox/sandbox.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/metrics.h"
#include "http/listen.h"
#include "http/server.h"
#include "sandbox/http.h"

#define DRAIN_MS 1000

struct sandbox {
    char *base_url, *data, *webhook, *webhook_secret, *faults;
    struct bank_worker *worker;
    struct sandbox_site site;
    struct http_app app;
    struct cors cors;
    struct metrics *metrics; /* of the transport, which needs some; nobody reads them */
    struct server *server;
};

static char *copy(const char *text) { return text ? hf_strndup(text, strlen(text)) : NULL; }

static char *url_of(int fd)
{
    char address[LISTEN_TEXT_SIZE];
    struct buf url = {0};
    listen_text(fd, address);
    buf_printf(&url, "http://%s", address);
    buf_char(&url, '\0');
    return url.data;
}

static void free_all(struct sandbox *s)
{
    bank_worker_free(s->worker);
    metrics_free(s->metrics);
    cors_close(&s->cors);
    free(s->base_url);
    free(s->data);
    free(s->webhook);
    free(s->webhook_secret);
    free(s->faults);
    free(s);
}

static bool set_keys(struct sandbox_site *site, const struct sandbox_config *config,
                     struct hf_err *err)
{
    const char *secret = config->secret_key, *publishable = config->publishable_key;
    if (!secret && !publishable)
        return true;
    if (!secret || !publishable || strncmp(secret, "sk_test_", 8) != 0 ||
        strncmp(publishable, "pk_test_", 8) != 0) {
        (void)hf_err_set(err, HF_INVALID_REQUEST,
                         "the sandbox's keys are a pair of sk_test_... and pk_test_...");
        return false;
    }
    digest((struct iovec[]){digest_part(secret, strlen(secret))}, 1, site->secret_key);
    digest((struct iovec[]){digest_part(publishable, strlen(publishable))}, 1,
           site->publishable_key);
    site->one_account = true;
    return true;
}

static enum hf_status check(const struct sandbox_config *config, struct hf_err *err)
{
    if (config->webhook && !config->webhook_secret)
        return hf_err_set(err, HF_INVALID_REQUEST, "a webhook needs a secret to sign with");
    if (config->webhook && strncmp(config->webhook, "http://", 7) != 0 &&
        strncmp(config->webhook, "https://", 8) != 0)
        return hf_err_set(err, HF_INVALID_REQUEST, "the webhook is no http or https address");
    return HF_OK;
}

static enum hf_status start_all(struct sandbox *s, const struct sandbox_config *config,
                                struct hf_err *err)
{
    const struct bank_worker_config worker = {.data = s->data,
                                              .base_url = s->base_url,
                                              .webhook = s->webhook,
                                              .webhook_secret = s->webhook_secret,
                                              .faults = s->faults,
                                              .clock = config->clock};
    const struct server_config server = {.listen_fd = config->listen_fd,
                                         .stream_fd = -1,
                                         .threads = config->threads ? config->threads : 1,
                                         .app = &s->app,
                                         .metrics = s->metrics,
                                         .clock = config->clock,
                                         .cors = &s->cors,
                                         .request_log = config->request_log};
    enum hf_status status = check(config, err);
    if (status == HF_OK && (!set_keys(&s->site, config, err) || !cors_parse("*", &s->cors, err)))
        status = HF_INVALID_REQUEST;
    if (status == HF_OK)
        status = bank_worker_start(&worker, &s->worker, err);
    if (status != HF_OK) {
        (void)close(config->listen_fd);
        return status;
    }
    s->site.worker = s->worker;
    sandbox_app_init(&s->app, &s->site);
    status = server_start(&server, &s->server, err);
    if (status != HF_OK)
        bank_worker_close(s->worker);
    return status;
}

enum hf_status sandbox_start(const struct sandbox_config *config, struct sandbox **ret,
                             struct hf_err *err)
{
    struct sandbox *s = hf_alloc(sizeof *s);
    s->base_url = config->base_url ? copy(config->base_url) : url_of(config->listen_fd);
    s->data = copy(config->data);
    s->webhook = copy(config->webhook);
    s->webhook_secret = copy(config->webhook_secret);
    s->faults = copy(config->faults);
    s->metrics = metrics_new();
    enum hf_status status = start_all(s, config, err);
    if (status != HF_OK) {
        free_all(s);
        return status;
    }
    *ret = s;
    return HF_OK;
}

void sandbox_stop(struct sandbox *s)
{
    if (!s)
        return;
    bank_worker_close(s->worker);
    (void)server_drain(s->server, DRAIN_MS);
    server_stop(s->server);
    free_all(s);
}

const char *sandbox_url(const struct sandbox *s) { return s->base_url; }
