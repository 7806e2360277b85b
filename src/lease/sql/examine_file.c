/* Says what an SQLite file's place and settings mean for locks.  Runs on the handle's thread. */
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "lease/sql/link.h"
#include "lease/sql/sql.h"

#define FREE_MIN_BYTES (INT64_C(16) << 20)

#define FIND(grade, topic, ...) lease_finding(each, ctx, grade, topic, __VA_ARGS__)

struct file_system {
    unsigned long magic;
    const char *name;
    bool is_shared; /* several kernels may use the same file */
};
static const struct file_system file_systems[] = {
    {NFS_SUPER_MAGIC, "NFS", true},
    {SMB_SUPER_MAGIC, "SMB", true},
    {0xff534d42, "CIFS", true},
    {0xfe534d42, "SMB", true},
    {AFS_SUPER_MAGIC, "AFS", true},
    {0x6b414653, "AFS", true},
    {CODA_SUPER_MAGIC, "Coda", true},
    {0x00c36400, "Ceph", true},
    {V9FS_MAGIC, "9P, a folder of another machine", true},
    {0x786f4256, "a VirtualBox folder", true},
    {OCFS2_SUPER_MAGIC, "OCFS2", true},
    {0x01161970, "GFS2", true},
    {0x65735546, "FUSE, which may be a network's", true},
    {TMPFS_MAGIC, "tmpfs", false},
    {RAMFS_MAGIC, "ramfs", false},
};

static const struct file_system *file_system_of(const char *path)
{
    struct statfs fs;
    if (statfs(path, &fs) != 0)
        return NULL;
    for (size_t i = 0; i < sizeof file_systems / sizeof *file_systems; i++)
        if (((unsigned long)fs.f_type & 0xffffffff) == file_systems[i].magic)
            return &file_systems[i];
    return NULL;
}

static void find_file_system(const char *path, lease_each_finding *each, void *ctx)
{
    const struct file_system *fs = file_system_of(path);
    if (!fs)
        FIND(HF_GOOD, "file system", "The file is on a disk of this machine.");
    else if (fs->is_shared)
        FIND(HF_DANGER, "file system",
             "The file is on %s.  SQLite shares its log through memory, so processes on different "
             "machines do not exclude each other.  Put it on a local disk, or use a server.",
             fs->name);
    else
        FIND(HF_NOTE, "file system",
             "The file is on %s, which a reboot empties.  Fences of a new file start at the wall "
             "clock.",
             fs->name);
}

static void find_space(struct db *db, lease_each_finding *each, void *ctx)
{
    struct db_sizes sizes;
    if (db->driver->upkeep.sizes(db, &sizes, NULL) != HF_OK || sizes.disk_free_bytes < 0)
        return;
    int64_t mib = sizes.disk_free_bytes >> 20;
    if (sizes.disk_free_bytes < FREE_MIN_BYTES)
        FIND(HF_WARNING, "disk",
             "%" PRId64 " MiB of the disk are free.  When it is full, no lock can be taken or "
             "renewed.",
             mib);
    else
        FIND(HF_GOOD, "disk", "%" PRId64 " MiB of the disk are free.", mib);
}

static void find_rights(const char *path, lease_each_finding *each, void *ctx)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return;
    if (st.st_mode & S_IWOTH)
        FIND(HF_WARNING, "rights",
             "Every user of the machine may write to the file, and so take or break any lock.");
    else if (st.st_mode & S_IWGRP)
        FIND(HF_NOTE, "rights", "The file's group may take its locks as well as its owner.");
    else
        FIND(HF_GOOD, "rights", "Only the file's owner may take its locks.");
}

/* synchronous is 1 (NORMAL) on every connection of ours. */
static enum hf_status find_settings(struct sql_link *link, lease_each_finding *each, void *ctx,
                                    struct hf_err *err)
{
    enum hf_status status = HF_OK;
    if (!link->examine)
        status = link->db->driver->prepare(
            link->db, "SELECT journal_mode, sqlite_version() FROM pragma_journal_mode",
            &link->examine, err);
    if (status == HF_OK)
        status = db_query(link->examine, NULL, err);
    enum db_step step = status == HF_OK ? db_step(link->examine, err) : DB_FAILED;
    if (step == DB_ROW) {
        size_t len;
        const char *version = db_column_data(link->examine, 1, &len);
        FIND(HF_GOOD, "version", "SQLite %s.", version ? version : "");
        const char *mode = db_column_data(link->examine, 0, &len);
        if (mode && strcmp(mode, "wal") == 0)
            FIND(HF_GOOD, "persistence",
                 "A lock survives the end of any process.  A power cut loses the last locks, whose "
                 "holders ended with the machine; fences never repeat.");
        else
            FIND(
                HF_DANGER, "persistence",
                "Another program has turned the write-ahead log off (journal_mode %s): waiters are "
                "not woken, and the file may be damaged.",
                mode ? mode : "unknown");
    }
    if (link->examine)
        link->db->driver->finish(link->examine);
    return step == DB_FAILED ? err->code : HF_OK;
}

/* sqlite:PATH or sqlite:PATH?vfs=NAME */
static void path_of(const char *url, char *ret, size_t size)
{
    const char *path = strchr(url, ':') + 1, *end = strstr(path, "?vfs=");
    (void)snprintf(ret, size, "%.*s", end ? (int)(end - path) : (int)strlen(path), path);
}

enum hf_result sql_examine_file(struct lease *l, lease_each_finding *each, void *ctx,
                                struct hf_fault *fault)
{
    struct sql_lease *s = sql_of(l);
    struct hf_err err = {0};
    char path[4096];
    enum hf_status status = sql_enter(s, SQL_TO_TAKE, &err);
    if (status == HF_OK)
        status = find_settings(s->link, each, ctx, &err);
    if (status == HF_OK) {
        path_of(s->family->url, path, sizeof path);
        find_file_system(path, each, ctx);
        find_space(s->link->db, each, ctx);
        find_rights(path, each, ctx);
        FIND(HF_GOOD, "clock",
             "Leases end by the machine's boot-time clock, which nobody can set.");
    }
    sql_leave(s);
    return sql_result(status, &err, fault);
}
