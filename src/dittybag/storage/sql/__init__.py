"""Tables and transactions in SQL that both databases run."""
