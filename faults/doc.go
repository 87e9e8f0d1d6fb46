// Package faults is the fault lab: what docs/lease.md claims, tried under killed and frozen
// processes, broken networks, lost servers and wrong clocks. Its tests are in the folders
// below; docs/faults.md tells what was tried, how often, and what is not promised.
//
// It is a module of its own, so that the product's go.mod stays free of what only the lab needs.
package faults
