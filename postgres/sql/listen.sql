-- Hears the notices of this schema, on a connection that does nothing else. The channel's name
-- is put in by the program: no parameter may stand here.
LISTEN pacht_channel;
