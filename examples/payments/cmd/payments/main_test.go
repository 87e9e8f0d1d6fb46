package main

import (
	"errors"
	"flag"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestBadCommandLineIsRefusedWithTheReason(t *testing.T) {
	for line, want := range map[[2]string]string{
		{"-provider", "notaurl"}:  "want a URL like",
		{"-seed=1x", ""}:          "seed",
		{"-listen=:0", "surplus"}: `unexpected argument "surplus"`,
	} {
		args := strings.Fields(strings.Join(line[:], " "))
		var told strings.Builder
		if _, err := parse(args, "", &told); err == nil || errors.Is(err, flag.ErrHelp) || !strings.Contains(told.String(), want) {
			t.Errorf("%q: %v, told %s", line, err, told.String())
		}
	}
}

func TestHelpNamesTheSecret(t *testing.T) {
	var told strings.Builder
	args := []string{"-h"}
	if _, err := parse(args, "", &told); !errors.Is(err, flag.ErrHelp) || !strings.Contains(told.String(), "PSP_SECRET") {
		t.Errorf("%v: %s", err, told.String())
	}
}
