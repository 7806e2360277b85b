/* The PostgreSQL driver: the SQL driver on a server. */
#include "lease/sql/sql.h"

extern const struct lease_driver lease_postgres;

const struct lease_driver lease_postgres = {
    .info = {.size = sizeof(struct hf_driver_info),
             .name = "postgres",
             .url = "postgres://[USER[:PASSWORD]@]HOST[:PORT][,HOST...]/DATABASE",
             .fence = HF_FENCE_CLOCK,
             .processes = true,
             .outlives = true,
             .fair = true,
             .shared = true,
             .priority = true,
             .slots = true,
             .ttl_min_ms = LEASE_TTL_MIN_MS,
             .ttl_max_ms = LEASE_TTL_MAX_MS,
             .name_len_max = LEASE_NAME_MAX,
             .ttl = "the server's wall clock, to the millisecond; set back, it makes leases last "
                    "longer",
             .survives = "all that a commit survives there: the end of any process, of the server "
                         "and of its machine; a standby that takes over, if commits wait for it "
                         "(synchronous_standby_names)",
             .overlaps = HF_OVERLAP_CLOCK | HF_OVERLAP_RESTART | HF_OVERLAP_FAILOVER,
             .beware = "If the server's clock is set forward, leases end early.  A standby that "
                       "lagged when it took over, and a backup that is put back, do not know the "
                       "last leases."},
    .schemes = (const char *const[]){"postgres:", "postgresql:", NULL},
    .light_waits = true,
    .open = sql_open,
    .examine = sql_examine_server,
    SQL_FUNCTIONS,
};
