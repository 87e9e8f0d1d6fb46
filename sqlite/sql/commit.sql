-- Makes the group durable: synchronous=FULL writes the log through before this returns.
COMMIT;
