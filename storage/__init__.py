"""The data ground: connections to PostgreSQL and Redis, keys, windows, deliveries, events, ids, and the queue."""
