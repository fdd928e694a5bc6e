"""Data: connections to PostgreSQL and Redis, keys, windows, deliveries, events, ids and the task queue."""
