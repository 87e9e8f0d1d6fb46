package sqlite

import (
	"context"
	"database/sql"
	"sync"
)

// pool is connections that read, with their statements prepared once on each. There are only
// as many texts as files in sql/.
type pool struct {
	*sql.DB
	mu       sync.Mutex
	prepared map[string]*sql.Stmt
}

func newPool(db *sql.DB, size int) *pool {
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	return &pool{DB: db, prepared: map[string]*sql.Stmt{}}
}

// QueryContext runs a prepared statement on any of the connections.
func (p *pool) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	st, err := p.prepare(ctx, query)
	if err != nil {
		return nil, err
	}
	return st.QueryContext(ctx, args...)
}

// prepare does not hold the lock while the database prepares: of two that do, one is closed.
func (p *pool) prepare(ctx context.Context, query string) (*sql.Stmt, error) {
	p.mu.Lock()
	st := p.prepared[query]
	p.mu.Unlock()
	if st != nil {
		return st, nil
	}
	st, err := p.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if first := p.prepared[query]; first != nil {
		return first, st.Close()
	}
	p.prepared[query] = st
	return st, nil
}
