-- Holdfast's fence guard for PostgreSQL (9.5 or newer).  Install once, in the schema of your choice:
--
--     psql -d DATABASE -f fence.sql
--
-- and call it in every transaction that a lock protects, before or after the writes:
--
--     BEGIN;
--     SELECT holdfast_fence('accounts', 417);   -- the fence of the lock, $HOLDFAST_FENCE
--     UPDATE accounts SET ...;
--     COMMIT;
--
-- A token that is the largest so far passes and is stored.  An equal one passes, since one holder may
-- write many times.  A lower one raises SQLSTATE SF001 (stale fence), which rolls the transaction
-- back.  The resource's row stays locked until the transaction ends, so writers of one resource run
-- one after another and each token is compared with what was committed.  Under REPEATABLE READ and
-- SERIALIZABLE two concurrent writers get 40001 as usual: try again.

CREATE TABLE IF NOT EXISTS holdfast_fences (
    resource text PRIMARY KEY CHECK (octet_length(resource) BETWEEN 1 AND 255),
    fence bigint NOT NULL CHECK (fence > 0)
);

CREATE OR REPLACE FUNCTION holdfast_fence(resource text, token bigint) RETURNS void
LANGUAGE plpgsql
SET search_path FROM CURRENT  -- uses the table beside it, whatever the caller's path
AS $$
#variable_conflict use_column
BEGIN
    -- The row is locked even if the condition is false.
    INSERT INTO holdfast_fences AS known (resource, fence) VALUES ($1, $2)
    ON CONFLICT (resource) DO UPDATE SET fence = excluded.fence
    WHERE excluded.fence >= known.fence;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'fence % is stale: a larger one has written to %', $2, $1
            USING ERRCODE = 'SF001', HINT = 'The lock has passed to another holder: give up.';
    END IF;
END
$$;
