/* See address.h. */
#include "lease/zookeeper/address.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"

#define ROOT_NAME "/holdfast"
#define REPEATED_MIN 8

static const struct url_form form = {
    .kind = "the ZooKeeper URL", .scheme = "zookeeper", .port = 2181, .has_path = true};

static enum hf_result bad(struct hf_fault *fault, const char *what)
{
    return url_bad(&form, what, fault);
}

static enum hf_result read_login(const struct url *u, struct zk_address *ret,
                                 struct hf_fault *fault)
{
    char *user = NULL, *password = NULL;
    enum hf_result result = url_login(u, &user, &password, fault);
    if (result == HF_DONE && u->login.text && !(user && password))
        result = bad(fault, "before @ comes user:password");
    if (result == HF_DONE && u->login.text)
        ret->user_password = url_decoded(u->login);
    free(user);
    url_free_secret(password);
    return result;
}

static enum hf_result read_hosts(const struct url *u, struct zk_address *ret,
                                 struct hf_fault *fault)
{
    struct url_host hosts[URL_HOSTS_MAX];
    enum hf_result result = url_hosts(u, hosts, &ret->n_hosts, fault);
    struct buf text = {0};
    if (result != HF_DONE)
        return result;
    for (size_t i = 0; i < ret->n_hosts; i++) {
        buf_str(&text, i ? "," : "");
        url_put_host(&hosts[i], &text);
    }
    buf_char(&text, '\0');
    ret->hosts = text.data;
    return HF_DONE;
}

/* When the client library has tried every server of its list it rests for a sixtieth of the
 * session's timeout, also if it was connected to the last one for hours.  A list that repeats the
 * servers lets it reconnect at once. */
static void repeat_hosts(struct zk_address *a)
{
    struct buf servers = {0};
    for (size_t n = 0; n < REPEATED_MIN; n += a->n_hosts)
        buf_printf(&servers, "%s%s", n ? "," : "", a->hosts);
    a->servers = hf_strndup(servers.data, servers.len);
    buf_close(&servers);
}

/* Every part of the path must be a name that ZooKeeper accepts. */
static enum hf_result read_chroot(struct url_part path, struct zk_address *ret,
                                  struct hf_fault *fault)
{
    const char *text = path.text ? path.text : "";
    size_t len = path.len;
    if (len && text[len - 1] == '/')
        len--;
    if (len > ZK_CHROOT_MAX)
        return bad(fault, "the path has more than 200 bytes");
    for (size_t i = 0; i < len; i++) {
        if (text[i] <= ' ' || text[i] > '~' || text[i] == '#')
            return bad(fault, "the path has a character that cannot be in it");
        if (text[i] != '/')
            continue;
        size_t part = strcspn(text + i + 1, "/");
        bool dots = part > 0 && part <= 2 && strspn(text + i + 1, ".") >= part;
        if (i + 1 + part > len || part == 0 || dots)
            return bad(fault, "the path has a part that is empty or made of dots");
    }
    struct buf root = {0};
    buf_put(&root, text, len);
    buf_put(&root, ROOT_NAME, sizeof ROOT_NAME);
    ret->root = root.data;
    return HF_DONE;
}

enum hf_result zk_address_parse(const char *url, struct zk_address *ret, struct hf_fault *fault)
{
    struct zk_address a = {0};
    struct url u;
    enum hf_result result = url_split(url, &form, &u, fault);
    if (result != HF_DONE)
        return result;
    if ((result = read_login(&u, &a, fault)) == HF_DONE &&
        (result = read_hosts(&u, &a, fault)) == HF_DONE &&
        (result = url_parameters(&u, NULL, 0, "there are no parameters", fault)) == HF_DONE)
        result = read_chroot(u.path, &a, fault);
    if (result == HF_DONE) {
        repeat_hosts(&a);
        *ret = a;
    } else {
        zk_address_close(&a);
    }
    return result;
}

void zk_address_close(struct zk_address *a)
{
    url_free_secret(a->user_password);
    free(a->hosts);
    free(a->servers);
    free(a->root);
    *a = (struct zk_address){0};
}
