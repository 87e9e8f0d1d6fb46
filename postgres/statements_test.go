package postgres

import (
	"reflect"
	"strings"
	"testing"
)

func TestEveryStatementIsUnderstoodByTheServer(t *testing.T) {
	s, pool := newStore(t)
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	v := reflect.ValueOf(s.sql)
	for i := range v.NumField() {
		name, sql := v.Type().Field(i).Name, v.Field(i).String()
		if name == "Break" || name == "Schema" || name == "SchemaTable" ||
			name == "CopyJobs" || name == "CopyLeases" {
			continue // what must fail, what is made once, and what cannot be prepared
		}
		if strings.Contains(sql, "pacht.") && !strings.Contains(sql, `"pacht".`) {
			t.Errorf("%s does not quote the schema", name)
		}
		if strings.Contains(sql, "*,") || strings.Contains(sql, "SELECT *") || strings.Contains(sql, "RETURNING *") {
			t.Errorf("%s does not list its columns", name)
		}
		if _, err := conn.Conn().Prepare(t.Context(), name, sql); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, sql := range map[string]string{"settle_tx": s.settleTx, "resolve_tx": s.resolveTx} {
		if _, err := conn.Conn().Prepare(t.Context(), name, sql); err != nil {
			t.Error(err)
		}
		if strings.Contains(sql, "SKIP LOCKED") || !strings.Contains(sql, "FOR UPDATE") {
			t.Errorf("%s does not wait for the row", name)
		}
	}
}
