// Package psp simulates a payment provider: a real HTTP server with a durable ledger of its own.
// It honours idempotency keys, answers look-ups by the customer's own reference, lists what it
// has, gives money back and sends signed webhooks. And it does what providers do on bad days: a
// Scenario for each reference, and a seeded chance for each call. It is for demonstrations and
// tests, on the loopback only.
package psp
