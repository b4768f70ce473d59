"""The official clients, run against the everything server and Dittybag."""
