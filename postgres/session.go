package postgres

import (
	"context"
	"database/sql"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// scanner reads the columns of one row.
type scanner func(dest ...any) error

// session runs statements on some connection: a pool's, or the one of a caller's transaction.
type session interface {
	// query runs one statement and calls each for every row; nil if none is of interest.
	query(ctx context.Context, sql string, args []any, each func(scanner) error) error
}

// pgxQuerier is a pool, a connection or a transaction of pgx.
type pgxQuerier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

type pgxSession struct {
	on    pgxQuerier
	mode  pgx.QueryExecMode
	bound time.Duration // of each statement; 0 = none
}

func (s pgxSession) query(ctx context.Context, sql string, args []any, each func(scanner) error) error {
	if s.bound > 0 {
		bounded, cancel := context.WithTimeout(ctx, s.bound)
		defer cancel()
		ctx = bounded
	}
	rows, err := s.on.Query(ctx, sql, append([]any{s.mode}, args...)...)
	if err != nil {
		return err
	}
	return readRows(rows, each)
}

// readRows reads to the end. Only rows.Err says whether the end was reached.
func readRows(rows pgx.Rows, each func(scanner) error) error {
	defer rows.Close()
	scan := rows.Scan // made once: a method value for each row would be garbage
	for rows.Next() {
		if each == nil {
			continue
		}
		if err := each(scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// sqlSession is a transaction of database/sql, by any driver that takes $1.
type sqlSession struct{ tx *sql.Tx }

func (s sqlSession) query(ctx context.Context, sql string, args []any, each func(scanner) error) error {
	plain, err := plainArgs(args)
	if err != nil {
		return err
	}
	rows, err := s.tx.QueryContext(ctx, sql, plain...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if each == nil {
			continue
		}
		if err := each(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// plainArgs spells arrays as text, which every driver can pass and the statements cast.
func plainArgs(args []any) ([]any, error) {
	types := pgtype.NewMap()
	plain := make([]any, len(args))
	for i, arg := range args {
		var oid uint32
		switch arg.(type) {
		case []string:
			oid = pgtype.TextArrayOID
		case []int64:
			oid = pgtype.Int8ArrayOID
		case []int32:
			oid = pgtype.Int4ArrayOID
		case []int16:
			oid = pgtype.Int2ArrayOID
		case []bool:
			oid = pgtype.BoolArrayOID
		default:
			plain[i] = arg
			continue
		}
		text, err := types.Encode(oid, pgtype.TextFormatCode, arg, nil)
		if err != nil {
			return nil, err
		}
		plain[i] = string(text)
	}
	return plain, nil
}
