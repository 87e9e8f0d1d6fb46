// Package payments is an example of a payments system on the queue. A payment and the job that
// charges it are created in one transaction. What the provider says of it later, in its answer,
// by a webhook, on the return page, to the reconciler or to an operator, goes through one
// idempotent transition (apply.go, by the table in decide.go), in one transaction with the
// ledger's entries, the follow-up jobs and the end of whatever job brought the news.
//
// To read: payment.go and decide.go are the domain, charge.go is a handler that is safe, webhook.go
// takes events in any order, sides.go is what the reconciler sees.
package payments
