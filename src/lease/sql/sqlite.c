/* The SQLite driver: the SQL driver on a file. */
#include "lease/sql/sql.h"

extern const struct lease_driver lease_sqlite;

const struct lease_driver lease_sqlite = {
    .info = {.size = sizeof(struct hf_driver_info),
             .name = "sqlite",
             .url = "sqlite:PATH",
             .fence = HF_FENCE_DURABLE,
             .processes = true,
             .outlives = true,
             .fair = true,
             .shared = true,
             .priority = true,
             .slots = true,
             .ttl_min_ms = LEASE_TTL_MIN_MS,
             .ttl_max_ms = LEASE_TTL_MAX_MS,
             .name_len_max = LEASE_NAME_MAX,
             .ttl =
                 "the machine's boot-time clock, one for all who use the file, to the millisecond",
             .survives = "the end of any process; of the machine: fences never repeat, the last "
                         "leases, whose holders ended with it, may be forgotten; a file removed: "
                         "its leases are lost, fences go on from the wall clock in microseconds.  "
                         "Not a file put back from a copy, nor a network file system",
             .overlaps = HF_OVERLAP_RESTART,
             .beware = "A file that is removed or replaced while its locks are held does not know "
                       "them.  A process that is stopped in the middle of a transaction keeps all "
                       "others out."},
    .schemes = (const char *const[]){"sqlite:", NULL},
    .open = sql_open_file,
    .examine = sql_examine_file,
    SQL_FUNCTIONS,
};
