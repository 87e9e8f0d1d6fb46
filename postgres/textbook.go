package postgres

import (
	"cmp"
	"context"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/clock"
	"github.com/pacht-queue/pacht/internal/sqltext"
)

//go:embed textbook
var textbookFiles embed.FS

// InstallTextbook puts the view payment_jobs(id, status, lease_owner, lease_until) over the
// leases, in the store's own schema, and the triggers that keep the ledger whole when people
// write to it by hand: see docs/textbook.md. It may be repeated. It waits for transactions
// that have written to the leases, and gives up with ErrBusy after some seconds.
func (s *Store) InstallTextbook(ctx context.Context) error {
	_, err := s.InstallTextbookIn(ctx, s.schema)
	return err
}

// InstallTextbookIn is InstallTextbook with the view in another schema, for instance "public",
// where SQL finds it without a schema's name; "" is the store's own. It returns the view's
// full name as SQL spells it. It refuses a schema that has a payment_jobs of its own.
func (s *Store) InstallTextbookIn(ctx context.Context, viewSchema string) (view string, err error) {
	found, wanted, err := s.Schema(ctx)
	if err != nil {
		return "", err
	}
	if found != wanted {
		return "", &pacht.SchemaError{Found: found, Wanted: wanted}
	}
	viewSchema = cmp.Or(viewSchema, s.schema)
	statements, err := textbookSQL("install", s.schema, viewSchema)
	if err != nil {
		return "", err
	}
	view = pgx.Identifier{viewSchema, "payment_jobs"}.Sanitize()
	return view, s.textbook(ctx, "install the textbook view", func(tx pgx.Tx) error {
		ours, err := s.textbookViews(ctx, tx)
		if err != nil {
			return err
		}
		var taken bool
		if err := tx.QueryRow(ctx, textbookFind("taken"), s.mode, viewSchema).Scan(&taken); err != nil {
			return err
		}
		if taken && !slices.Contains(ours, viewSchema) {
			return &pacht.InvalidError{Field: "view schema", Value: fmt.Sprintf("%q", viewSchema), Bound: "a schema without a payment_jobs of its own"}
		}
		return execAll(ctx, tx, statements)
	})
}

// RemoveTextbook takes away what InstallTextbook made, in whichever schema. Jobs, leases and
// the ledger stay as they are. It may be repeated.
func (s *Store) RemoveTextbook(ctx context.Context) error {
	return s.textbook(ctx, "remove the textbook view", func(tx pgx.Tx) error {
		views, err := s.textbookViews(ctx, tx)
		if err != nil {
			return err
		}
		// The views first: the trigger of each needs one of the functions.
		for _, viewSchema := range views {
			statements, err := textbookSQL("remove", s.schema, viewSchema)
			if err != nil {
				return err
			}
			if err := execAll(ctx, tx, statements[:1]); err != nil {
				return err
			}
		}
		statements, err := textbookSQL("remove", s.schema, s.schema)
		if err != nil {
			return err
		}
		return execAll(ctx, tx, statements[1:])
	})
}

// TextbookSQL is the SQL that InstallTextbookIn runs, to read or to apply by other means.
func (s *Store) TextbookSQL(viewSchema string) (string, error) {
	statements, err := textbookSQL("install", s.schema, cmp.Or(viewSchema, s.schema))
	return strings.Join(statements, "\n"), err
}

// textbook runs fn in a transaction that waits only shortly for the table, and tries again:
// whoever waits for a table's triggers makes all others wait behind it.
func (s *Store) textbook(ctx context.Context, verb string, fn func(pgx.Tx) error) error {
	const tries = 10
	for try := 1; ; try++ {
		err := pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, textbookFind("wait")); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, s.sql.BoundIdle, s.mode, s.idle().Milliseconds()); err != nil {
				return err // who stops in the middle holds the table no longer
			}
			if _, err := tx.Exec(ctx, textbookFind("lock"), s.mode, s.schema); err != nil {
				return err
			}
			return fn(tx)
		})
		busy := code(err) == "55P03" || serialization(err)
		switch {
		case err == nil:
			return nil
		case !busy:
			return fmt.Errorf("%s in schema %q: %w", verb, s.schema, err)
		case try == tries:
			return fmt.Errorf("%s in schema %q, tried %d times: %w: %w", verb, s.schema, tries, pacht.ErrBusy, err)
		}
		if err := clock.Sleep(ctx, clock.Jitter(300*time.Millisecond)); err != nil {
			return fmt.Errorf("%s in schema %q: %w", verb, s.schema, err)
		}
	}
}

// textbookViews lists the schemas in which the view stands.
func (s *Store) textbookViews(ctx context.Context, tx pgx.Tx) ([]string, error) {
	rows, err := tx.Query(ctx, textbookFind("views"), s.mode, s.schema)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// textbookFind is one of the statements that look around before they change anything.
func textbookFind(name string) string {
	text, err := textbookFiles.ReadFile("textbook/find/" + name + ".sql")
	if err != nil {
		panic(err) // embedded: a test runs each of them
	}
	return sqltext.Strip(string(text))
}

// textbookSQL reads a folder's statements in order, with the names of both schemas put in.
// Comments stay: who looks at a function in the database finds them there.
func textbookSQL(folder, schema, viewSchema string) ([]string, error) {
	for _, name := range []string{schema, viewSchema} {
		if name == "" || len(name) > 63 || strings.Contains(name, "$textbook$") || strings.ContainsRune(name, 0) {
			return nil, &pacht.InvalidError{Field: "schema", Value: fmt.Sprintf("%.70q", name), Bound: "1 to 63 bytes without NUL and without $textbook$"}
		}
	}
	dir := path.Join("textbook", folder)
	entries, err := fs.ReadDir(textbookFiles, dir)
	if err != nil {
		return nil, err
	}
	names := strings.NewReplacer(
		"pacht.payment_jobs", pgx.Identifier{viewSchema, "payment_jobs"}.Sanitize(),
		"pacht.", pgx.Identifier{schema}.Sanitize()+".",
	)
	statements := make([]string, len(entries))
	for i, e := range entries {
		text, err := fs.ReadFile(textbookFiles, path.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		statements[i] = names.Replace(string(text))
	}
	return statements, nil
}

func execAll(ctx context.Context, tx pgx.Tx, statements []string) error {
	for _, sql := range statements {
		if _, err := tx.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}
