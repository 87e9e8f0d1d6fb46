-- Fails on purpose: from here on the caller's transaction cannot commit (R4).
SELECT CAST('this transaction lost its lease and must not be committed' AS integer);
