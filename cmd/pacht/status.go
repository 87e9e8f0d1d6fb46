package main

import (
	"strings"

	"github.com/pacht-queue/pacht"
)

// statusNamed is the status that a user named, in any case. What is none comes back as it is,
// for the refusal.
func statusNamed(s string) pacht.Status {
	for _, known := range pacht.Statuses {
		if strings.EqualFold(s, string(known)) {
			return known
		}
	}
	return pacht.Status(s)
}

// policyNamed is the crash policy that a user named, in any case.
func policyNamed(s string) pacht.CrashPolicy { return pacht.CrashPolicy(strings.ToLower(s)) }
