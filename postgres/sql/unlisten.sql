-- Leaves a session that turned out not to bring any notice, and may be somebody else's, as it
-- was.
UNLISTEN pacht_channel;
