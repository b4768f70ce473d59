-- To count the changes of a batch by what they are. A batch of one change has no entry, so most writes pay nothing.
CREATE INDEX changes_by_batch ON changes (batch, kind, action, seq) WHERE batch <> seq;
