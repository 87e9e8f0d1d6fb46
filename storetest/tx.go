package storetest

// book is the caller's own table, which a broken transaction must leave alone.
func (c *kase) book() {
	c.Helper()
	c.sql("CREATE TABLE IF NOT EXISTS {business} (note text)")
	c.sql("DELETE FROM {business}")
}

func (c *kase) begin() Txn {
	c.Helper()
	tx, err := c.Begin(c.ctx)
	c.must(err)
	return tx
}

// booked counts the business rows that are committed.
func (c *kase) booked() string {
	c.Helper()
	return c.query("SELECT count(*) FROM {business}")[0]
}

// brokenTx writes a business row, runs fn, which must fail, ignores that, writes again and
// commits: nothing of it may be kept (R4).
func (c *kase) brokenTx(fn func(tx Txn) error) {
	c.Helper()
	c.book()
	tx := c.begin()
	c.must(tx.Exec(c.ctx, c.named("INSERT INTO {business} VALUES ('before')")))
	if fn(tx) == nil {
		c.Error("accepted in the transaction")
	}
	// Both may fail and commit must; what counts is what is there afterwards.
	_ = tx.Exec(c.ctx, c.named("INSERT INTO {business} VALUES ('after')"))
	if err := tx.Commit(c.ctx); err == nil {
		c.Error("the broken transaction was committed without an error")
	}
	_ = tx.Rollback(c.ctx)
	c.same("business rows", c.booked(), "0")
}
