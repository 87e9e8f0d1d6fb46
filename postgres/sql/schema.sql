-- Makes the schema.
CREATE SCHEMA IF NOT EXISTS pacht;
