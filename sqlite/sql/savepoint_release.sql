-- Ends one part.
RELEASE pacht_part;
