/* Coupon redemption: a code that may be used three times, and eight customers who use it at once.
 * Between reading the number that is left and writing it, a shop asks other services, which takes
 * too long for a transaction of the database; so the lock keeps the others out, and the fence keeps
 * out a server that was stopped meanwhile and wakes up when its lock has gone to the next.
 *
 *   cc -pthread coupon.c $(pkg-config --cflags --libs holdfast sqlite3) -o coupon
 *   ./coupon memory: */
#include <holdfast.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#define USES 3
#define CUSTOMERS 8
static const char database[] = "coupons.db";
static struct hf_locks *locks;
static atomic_int n_redeemed, n_too_late;

static int uses_left(sqlite3 *db)
{
    sqlite3_stmt *read;
    int left = 0;
    if (sqlite3_prepare_v2(db, "SELECT left FROM coupon", -1, &read, NULL) == SQLITE_OK &&
        sqlite3_step(read) == SQLITE_ROW)
        left = sqlite3_column_int(read, 0);
    sqlite3_finalize(read);
    return left;
}

/* Writes `left`, unless a later holder of the lock has written. */
static int write_left(sqlite3 *db, int left, long long fence)
{
    char update[64];
    snprintf(update, sizeof update, "UPDATE coupon SET left = %d", left);
    if (sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK)
        return 0;
    if (hf_fence_sqlite(db, "coupon/SPRING", fence, NULL) == HF_DONE &&
        sqlite3_exec(db, update, NULL, NULL, NULL) == SQLITE_OK)
        return sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK;
    sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    return 0;
}

static void *redeem(void *arg)
{
    struct hf_lock_options want = HF_LOCK_OPTIONS(.ttl_ms = 10000, .wait_ms = 20000);
    struct hf_fault fault;
    struct hf_lock *lock;
    sqlite3 *db;

    if (sqlite3_open(database, &db) != SQLITE_OK)
        return arg;
    sqlite3_busy_timeout(db, 5000);
    if (hf_lock(locks, "coupon/SPRING", &want, &lock, &fault) == HF_DONE) {
        int left = uses_left(db);
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL); /* asks the other services */
        if (left > 0 && write_left(db, left - 1, hf_lock_fence(lock)))
            n_redeemed++;
        else
            n_too_late++;
        if (hf_unlock(lock, &fault) != HF_DONE)
            fprintf(stderr, "%s\n", fault.msg);
    } else {
        fprintf(stderr, "%s\n", fault.msg);
    }
    sqlite3_close(db);
    return arg;
}

int main(int argc, char **argv)
{
    pthread_t customers[CUSTOMERS];
    struct hf_fault fault;
    sqlite3 *db;

    if (hf_open(argc > 1 ? argv[1] : "memory:", NULL, &locks, &fault) != HF_DONE) {
        fprintf(stderr, "%s\n", fault.msg);
        return 1;
    }
    (void)remove(database); /* each run has a new coupon, and on memory: fences that begin anew */
    if (sqlite3_open(database, &db) != SQLITE_OK ||
        sqlite3_exec(db, "CREATE TABLE coupon (left INTEGER); INSERT INTO coupon VALUES (3)", NULL,
                     NULL, NULL) != SQLITE_OK) {
        fprintf(stderr, "%s: %s\n", database, sqlite3_errmsg(db));
        return 1;
    }
    for (int i = 0; i < CUSTOMERS; i++)
        if (pthread_create(&customers[i], NULL, redeem, NULL) != 0)
            return 1;
    for (int i = 0; i < CUSTOMERS; i++)
        pthread_join(customers[i], NULL);
    printf("%d redeemed, %d too late, %d left\n", n_redeemed, n_too_late, uses_left(db));
    sqlite3_close(db);
    hf_close(locks);
    return n_redeemed == USES ? 0 : 1;
}
