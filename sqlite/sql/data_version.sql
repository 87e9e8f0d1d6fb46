-- Changes when another connection has committed: the sign that the file is shared.
PRAGMA data_version;
