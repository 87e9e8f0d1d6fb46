package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/database"
)

// textbooker is the store that can take hand-written SQL: PostgreSQL's.
type textbooker interface {
	InstallTextbookIn(ctx context.Context, viewSchema string) (view string, err error)
	RemoveTextbook(ctx context.Context) error
	TextbookSQL(viewSchema string) (string, error)
}

func migrateTextbookCommand(g *globals) *cobra.Command {
	var viewSchema string
	var remove, sql bool
	c := &cobra.Command{
		Use:   "textbook",
		Short: "Put the view payment_jobs over the leases, for SQL written by hand (PostgreSQL)",
		Long: `Put the view payment_jobs(id, status, lease_owner, lease_until) over the leases, so that the
lease pattern's own UPDATE statements run as written, and the triggers that keep token,
attempt and ledger right when they do. It may be repeated. docs/textbook.md has the
statements.

The view stands in the schema of the tables. To write "UPDATE payment_jobs" without a schema's
name, put the view where your search_path finds it: --view-schema public.

JSON: {view, installed}; with --sql {sql}.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			db, err := g.open(cmd.Context())
			if err != nil {
				return err
			}
			defer db.Close()
			store, ok := db.(textbooker)
			if !ok {
				return &pacht.InvalidError{Field: "db", Value: clean(database.Describe(g.url())), Bound: "a postgres:// URL: the textbook view is for PostgreSQL"}
			}
			if sql {
				text, err := store.TextbookSQL(viewSchema)
				if err != nil {
					return err
				}
				if g.json {
					return printJSON(cmd, map[string]string{"sql": text})
				}
				printf(cmd, "%s\n", cleanLines(text))
				return nil
			}
			if remove {
				if err := store.RemoveTextbook(cmd.Context()); err != nil {
					return err
				}
				if g.json {
					return printJSON(cmd, map[string]any{"installed": false})
				}
				printf(cmd, "removed: payment_jobs and its triggers\n")
				return nil
			}
			view, err := store.InstallTextbookIn(cmd.Context(), viewSchema)
			if err != nil {
				return err
			}
			if g.json {
				return printJSON(cmd, map[string]any{"view": view, "installed": true})
			}
			printf(cmd, "installed: %s; its statements stand in docs/textbook.md\n", clean(view))
			return nil
		},
	}
	c.Flags().StringVar(&viewSchema, "view-schema", "", "schema to put the view into (default: the one of the tables)")
	c.Flags().BoolVar(&remove, "remove", false, "take the view and its triggers away again")
	c.Flags().BoolVar(&sql, "sql", false, "print the SQL without applying it")
	c.MarkFlagsMutuallyExclusive("remove", "sql")
	c.MarkFlagsMutuallyExclusive("remove", "view-schema")
	return c
}
