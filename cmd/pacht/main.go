// Command pacht is the job queue on the command line: it migrates, enqueues, works, watches,
// shows and heals.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is the whole program but for its exit.
func run(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) int {
	started := false
	root := rootCommand(&started)
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errs)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	if !started {
		// Nothing of ours ran: the command line was not understood.
		err = &usageError{err}
	}
	if said := err.Error(); said != "" {
		fmt.Fprintf(errs, "pacht: %s\n", cleanLines(said))
	}
	code := exitCode(err)
	if code == exitUsage {
		fmt.Fprintf(errs, "See %q.\n", cmd.CommandPath()+" --help")
	}
	return code
}
