package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/internal/database"
)

const defaultDB = "sqlite:pacht.db"

// globals are the flags that every command has.
type globals struct {
	db   string
	json bool
}

// given is the database that the user named by flag or environment, or "".
func (g *globals) given() string {
	if g.db != "" {
		return g.db
	}
	return os.Getenv("PACHT_DB")
}

// dbValue is the value of --db. An empty one is a variable of a script that was not set: the default
// database is not what was meant.
type dbValue string

func (v *dbValue) Type() string   { return "string" }
func (v *dbValue) String() string { return string(*v) }

func (v *dbValue) Set(s string) error {
	if s == "" {
		return &pacht.InvalidError{Field: "db", Value: `""`, Bound: "not empty; leave the flag out for the default"}
	}
	*v = dbValue(s)
	return nil
}

// url is the database to use.
func (g *globals) url() string {
	if u := g.given(); u != "" {
		return u
	}
	return defaultDB
}

// open opens a database that must be there and have the tables this program knows. Only
// "migrate up" makes a new one: a mistyped name must not leave an empty file behind.
func (g *globals) open(ctx context.Context) (database.Database, error) {
	db, err := database.OpenExisting(ctx, g.url())
	if err != nil {
		return nil, g.located(err)
	}
	if err := checkSchema(ctx, db); err != nil {
		_ = db.Close() // the first error is the one to tell
		return nil, g.located(err)
	}
	return db, nil
}

// located says of tables that do not fit, or that are not for this role, which they are: a forgotten
// PACHT_DB or a mistyped schema looks like a fresh database.
func (g *globals) located(err error) error {
	at, unknown := database.Locate(g.url())
	var state interface{ SQLState() string }
	switch {
	case errors.As(err, &state) && state.SQLState() == "42501": // insufficient_privilege
		return fmt.Errorf("%w (%s; what a role needs: docs/databases.md, Roles)", err, database.Describe(g.url()))
	case !errors.Is(err, pacht.ErrSchema) || unknown != nil:
		return err
	case g.given() == "":
		return fmt.Errorf("%w (the default database, %s: neither --db nor PACHT_DB names one)", err, defaultDB)
	case at.File != "":
		return fmt.Errorf("%w (%s, tables %s...)", err, database.Describe(g.url()), at.Prefix)
	}
	return fmt.Errorf("%w (%s, schema %s)", err, database.Describe(g.url()), at.Schema)
}

func checkSchema(ctx context.Context, db pacht.Checker) error {
	found, wanted, err := db.Schema(ctx)
	if err == nil && found != wanted {
		err = &pacht.SchemaError{Found: found, Wanted: wanted}
	}
	return err
}

func rootCommand(started *bool) *cobra.Command {
	g := &globals{}
	root := group("pacht", "A job queue in your database, whose jobs are leased, not locked",
		`Pacht is a job queue in the database you have, PostgreSQL or SQLite. A worker leases a
job: it is the only owner until the lease ends, and a crashed worker's job is free again by
itself.

Start with "pacht migrate up", then "pacht enqueue" and "pacht work".

`+exitHelp,
		demoCommand(g),
		migrateCommand(g),
		enqueueCommand(g),
		workCommand(g),
		watchCommand(g),
		jobsCommand(g),
		stuckCommand(g),
		breaksCommand(g),
		queuesCommand(g),
		workersCommand(g),
		doctorCommand(g),
		benchCommand(g),
	)
	root.Version = version()
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetVersionTemplate("pacht {{.Version}}\n")
	root.SetFlagErrorFunc(flagError)
	root.PersistentFlags().Var((*dbValue)(&g.db), "db",
		"database: "+database.Forms+" (env PACHT_DB, default "+defaultDB+")")
	root.PersistentFlags().BoolVar(&g.json, "json", false, "print data as JSON, one object or array")
	wrap(root, started)
	return root
}

// flagError names flag, value and bound.
func flagError(_ *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		f := invalid.GetFlag()
		bound := f.Value.Type() + ": " + f.Usage
		if own := new(pacht.InvalidError); errors.As(err, &own) { // the value's own words say more
			bound = own.Bound + ": " + f.Usage
		}
		return &pacht.InvalidError{Field: "--" + f.Name, Value: strconv.Quote(cut(invalid.GetValue(), 40)), Bound: bound}
	}
	return err
}

// wrap notes when a command's own code starts: errors before are errors of usage.
func wrap(c *cobra.Command, started *bool) {
	if inner := c.RunE; inner != nil {
		c.RunE = func(cmd *cobra.Command, args []string) error {
			*started = true
			return inner(cmd, args)
		}
	}
	for _, sub := range c.Commands() {
		wrap(sub, started)
	}
}

// group is a command that only holds others. A misspelt one is an error, not a page of help.
func group(use, short, long string, subs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use:   use,
		Short: short,
		Long:  long,
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			said := fmt.Sprintf("unknown command %q for %q", args[0], cmd.CommandPath())
			if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
				said += "; did you mean " + strings.Join(near, " or ") + "?"
			}
			return &usageError{fmt.Errorf("%s", said)}
		},
		SuggestionsMinimumDistance: 2,
	}
	c.AddCommand(subs...)
	return c
}

// exactly demands these arguments, and names them if there are others.
func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == len(names) {
			return nil
		}
		got := "none"
		if len(args) > 0 {
			got = strconv.Itoa(len(args)) + ":"
			for _, arg := range args {
				got += " " + strconv.Quote(cut(arg, 40))
			}
		}
		return fmt.Errorf("%s wants the arguments %s; got %s", cmd.CommandPath(), strings.Join(names, " "), got)
	}
}

// version says what was built: the module's version, else the commit.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	if v == "" || v == "(devel)" {
		v = "devel"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && !strings.Contains(v, s.Value[:min(12, len(s.Value))]) {
			v += " " + s.Value[:min(12, len(s.Value))]
		}
	}
	return v + " " + info.GoVersion
}
