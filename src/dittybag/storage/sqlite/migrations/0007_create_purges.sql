-- Purges after which the file was not scrubbed yet, see docs/decisions/0015. In the change log, a purged state is
-- {"state":"purged",...}, which older versions of Dittybag cannot read.
CREATE TABLE pending_purges (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    at     INTEGER NOT NULL,
    actor  TEXT    NOT NULL
) STRICT;
