package psp

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"strconv"

	"github.com/pacht-queue/pacht/internal/clock"
)

const maxBody = 64 << 10

// call is one call of a customer that is to move money.
type call struct {
	key, reference string
	scenario       Scenario
	fate           fate
}

// refusal is an answer that says no.
type refusal struct {
	status        int
	code, message string
}

func (r *refusal) Error() string { return r.code + ": " + r.message }

var errOtherBody = &refusal{http.StatusConflict, "key_conflict", "idempotency key already used with another body"}

// carryOut does what a call asks for, with all that its scenario and its fate have in store
// for it before and after.
func (s *Server) carryOut(w http.ResponseWriter, r *http.Request, c call, do func() (any, error)) {
	c.scenario, c.fate = s.scenario(c.reference), s.fates.of(c.key)
	if clock.Sleep(r.Context(), c.fate.before) != nil {
		return // the caller went away before anything was done
	}
	if c.fate.failBefore {
		refuse(w, http.StatusServiceUnavailable, "unavailable", "try again later; nothing was done")
		return
	}
	meets := c.scenario.meets(c.fate.nth)
	// Whether an internal error comes before or after the deed is what its caller cannot know.
	errorAfter := clock.Seeded(s.cfg.Seed, "error", c.key).Float64() < 0.5
	if meets && s.failsBefore(w, r, c, errorAfter) {
		return
	}
	said, err := do()
	took := c.fate.after
	if c.scenario.Name == Slow {
		took += c.scenario.After
	}
	if clock.Sleep(r.Context(), took) != nil || !s.gate.pass(r.Context().Done(), c.reference) {
		return // done, and nobody is there to hear it
	}
	var no *refusal
	switch {
	case err != nil && !errors.As(err, &no):
		refuse(w, http.StatusInternalServerError, "ledger", err.Error())
	case meets && c.scenario.silent():
		s.hang(r)
	case meets && c.scenario.Name == ServerError && errorAfter:
		refuse(w, http.StatusInternalServerError, "internal", "something went wrong")
	case c.fate.failAfter && c.fate.drop:
		panic(http.ErrAbortHandler) // cuts the connection: the answer is lost
	case c.fate.failAfter:
		refuse(w, http.StatusBadGateway, "bad_gateway", "the answer was lost on the way")
	case err != nil:
		refuse(w, no.status, no.code, no.message)
	default:
		answerJSON(w, http.StatusOK, said)
	}
}

// failsBefore answers calls that fail before anything is done.
func (s *Server) failsBefore(w http.ResponseWriter, r *http.Request, c call, errorAfter bool) bool {
	switch c.scenario.Name {
	case TooMany:
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(c.scenario.After.Seconds()))))
		refuse(w, http.StatusTooManyRequests, "too_many", "slow down; nothing was done")
	case TimeoutBefore:
		s.hang(r)
	case ServerError:
		if errorAfter {
			return false
		}
		refuse(w, http.StatusInternalServerError, "internal", "something went wrong")
	default:
		return false
	}
	return true
}

// hang says nothing until the caller goes away, or for long enough.
func (s *Server) hang(r *http.Request) {
	_ = clock.Sleep(r.Context(), s.cfg.Silence) // its end is the end of both
	panic(http.ErrAbortHandler)
}

func idempotencyKey(w http.ResponseWriter, r *http.Request) (string, bool) {
	key := r.Header.Get("Idempotency-Key")
	if key == "" || len(key) > 255 {
		refuse(w, http.StatusBadRequest, "idempotency_key", fmt.Sprintf("header Idempotency-Key: %d bytes are not allowed, want 1 to 255", len(key)))
		return "", false
	}
	return key, true
}

// decode reads one JSON document and nothing else.
func decode(w http.ResponseWriter, r *http.Request, into any) bool {
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		refuse(w, http.StatusBadRequest, "body", err.Error())
		return false
	}
	if _, err := dec.Token(); err != io.EOF {
		refuse(w, http.StatusBadRequest, "body", "more than one document")
		return false
	}
	return true
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	answerJSON(w, status, problem{Code: code, Message: message})
}

type problem struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func answerJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		slog.Debug("provider's answer did not reach its caller", "error", err)
	}
}
