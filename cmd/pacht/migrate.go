package main

import (
	"github.com/spf13/cobra"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/clock"
	"github.com/pacht-queue/pacht/internal/database"
)

// migrateCommand holds all that changes or shows the schema.
func migrateCommand(g *globals) *cobra.Command {
	return group("migrate", "Make or upgrade the tables, or show the SQL",
		"Make or upgrade the tables of pacht. Workers only look at the version and never migrate.",
		migrateUpCommand(g),
		migrateStatusCommand(g),
		migrateSQLCommand(g),
		migrateTextbookCommand(g),
	)
}

func migrateUpCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "up",
		Short: "Apply what is missing; safe to repeat, to run from several machines, and to kill",
		Long: `Apply the migrations that are missing, each in a transaction of its own, under a lock that
holds across processes. A SQLite file that is not there is made.

JSON: an array of {version, name, applied_at}, of what was applied now.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			db, err := database.Open(cmd.Context(), g.url())
			if err != nil {
				return err
			}
			defer db.Close()
			applied, err := db.MigrateUp(cmd.Context())
			if err != nil {
				return err
			}
			if g.json {
				return printJSON(cmd, list(applied))
			}
			for _, m := range applied {
				printf(cmd, "applied %04d %s\n", m.Version, clean(m.Name))
			}
			if len(applied) == 0 {
				printf(cmd, "up to date: nothing to apply to %s\n", clean(database.Describe(g.url())))
			}
			return nil
		},
	}
}

func migrateStatusCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show which migrations were applied, and when",
		Long: `Show which migrations this program knows, and when they were applied.
Exits with 4 if any is missing.

JSON: an array of {version, name, applied_at}; applied_at is left out if it is missing.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			db, err := database.OpenExisting(cmd.Context(), g.url())
			if err != nil {
				return g.located(err)
			}
			defer db.Close()
			known, err := db.Migrations(cmd.Context())
			if err != nil {
				return err
			}
			if err := printMigrations(cmd, g, known); err != nil {
				return err
			}
			return g.located(checkSchema(cmd.Context(), db))
		},
	}
}

func printMigrations(cmd *cobra.Command, g *globals, known []pacht.Migration) error {
	if g.json {
		return printJSON(cmd, list(known))
	}
	now := clock.Now().Time()
	t := newTable(cmd, "VERSION", "NAME", "APPLIED")
	for _, m := range known {
		when := "not yet"
		if !m.AppliedAt.IsZero() {
			when = stamp(m.AppliedAt, now)
		}
		t.row(m.Version, m.Name, when)
	}
	return t.end()
}

func migrateSQLCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "sql",
		Short: "Print the SQL of all migrations, without applying it",
		Long: `Print the SQL of all migrations for the database that --db names, with the schema's name or
prefix put in. The database is not touched and need not be there.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			sql, err := database.MigrationSQL(cmd.Context(), g.url())
			if err != nil {
				return err
			}
			if g.json {
				return printJSON(cmd, map[string]string{"sql": sql})
			}
			printf(cmd, "%s\n", cleanLines(sql))
			return nil
		},
	}
}
