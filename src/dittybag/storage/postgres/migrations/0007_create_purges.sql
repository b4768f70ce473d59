-- Purges after which the tables were not rewritten yet, see docs/decisions/0015. In the change log, a purged state is
-- {"state":"purged",...}, which older versions of Dittybag cannot read.
CREATE TABLE pending_purges (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at     bigint NOT NULL,
    actor  text   COLLATE "C" NOT NULL
);

ALTER TABLE pending_purges ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY operator ON pending_purges USING (is_operator_connection() OR (SELECT viewer()) IS NULL);
