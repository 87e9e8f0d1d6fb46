package main

import (
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/lmittmann/tint"
	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"github.com/pacht-queue/pacht"
)

// logFlag adds --log-level.
func logFlag(c *cobra.Command, level *string) {
	c.Flags().StringVar(level, "log-level", "info", "debug, info, warn or error")
	completeWith(c, "log-level", "debug", "info", "warn", "error")
}

// newLogger writes to standard error: for people on a terminal, JSON lines elsewhere.
func newLogger(w io.Writer, level string) (*slog.Logger, error) {
	var l slog.Level
	switch strings.ToLower(level) {
	case "debug", "info", "warn", "error":
		if err := l.UnmarshalText([]byte(level)); err != nil {
			return nil, err
		}
	default:
		return nil, &pacht.InvalidError{Field: "log-level", Value: strconv.Quote(cut(level, 40)), Bound: "debug, info, warn or error"}
	}
	if f, ok := w.(*os.File); ok && isatty.IsTerminal(f.Fd()) {
		return slog.New(tint.NewTextHandler(w, &tint.Options{Level: l, TimeFormat: time.TimeOnly})), nil
	}
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: l})), nil
}
