-- The requests that each token may still make on all servers together, see docs/decisions/0033. A bucket is described by
-- when it will be full, in seconds since 1970; a missing one is full. `token` is a part of the hash of the token. Not
-- logged: after a crash, all buckets are full.
CREATE UNLOGGED TABLE request_buckets (
    token   bytea            PRIMARY KEY,
    full_at double precision NOT NULL
) WITH (fillfactor = 50);

-- Takes requests from several buckets, as many as are wanted or as there are. `wait` is the time in seconds until there is
-- another one. Servers take in the order of the tokens, so that they never wait for each other in a circle.
CREATE FUNCTION take_requests(tokens bytea[], wanted bigint[], per_second double precision, burst bigint)
RETURNS TABLE (token bytea, granted bigint, wait double precision)
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
#variable_conflict use_column
DECLARE
    asked   record;
    seconds double precision;
    used    double precision;
BEGIN
    FOR asked IN SELECT each.token, each.requests FROM unnest(tokens, wanted) AS each (token, requests) ORDER BY 1 LOOP
        SELECT full_at INTO used FROM request_buckets WHERE token = asked.token FOR UPDATE;
        IF NOT FOUND THEN
            INSERT INTO request_buckets VALUES (asked.token, 0) ON CONFLICT DO NOTHING;
            SELECT full_at INTO used FROM request_buckets WHERE token = asked.token FOR UPDATE;
        END IF;
        -- The clock after the lock. `used` is how many requests are missing from the bucket.
        seconds := extract(epoch FROM clock_timestamp());
        used := greatest(coalesce(used, 0) - seconds, 0) * per_second;
        -- Rounded, because a difference of large numbers is not exact.
        granted := greatest(least(asked.requests, floor(burst - used + 0.001)), 0);
        UPDATE request_buckets SET full_at = seconds + (used + granted) / per_second WHERE token = asked.token;
        token := asked.token;
        wait := greatest(0, (used + granted + 1 - burst) / per_second);
        RETURN NEXT;
    END LOOP;
END
$$;

ALTER TABLE request_buckets ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY operator ON request_buckets USING (is_operator_connection() OR (SELECT viewer()) IS NULL);
