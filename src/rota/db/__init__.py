"""How to speak SQL to SQLite and PostgreSQL alike; knows no table."""
