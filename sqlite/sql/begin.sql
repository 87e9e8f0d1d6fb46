-- Takes the file's write lock at once, so that no later statement of the transaction can
-- find the file busy or its snapshot old.
BEGIN IMMEDIATE;
