-- Writes out what was filled in, so that the checkpoint for it does not come in the middle.
CHECKPOINT;
