package api

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"

	"github.com/pacht-queue/pacht"
	"github.com/pacht-queue/pacht/examples/payments"
	"github.com/pacht-queue/pacht/money"
)

// problem is an error as RFC 9457 wants it.
type problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
}

func (s *server) refuse(w http.ResponseWriter, status int, detail string) {
	s.write(w, status, "application/problem+json", problem{Title: http.StatusText(status), Status: status, Detail: detail})
}

// fail answers an error: what the caller did wrong is told, what went wrong here is logged.
func (s *server) fail(w http.ResponseWriter, r *http.Request, err error) {
	var invalid *pacht.InvalidError
	switch {
	case errors.Is(err, pacht.ErrKeyConflict):
		s.refuse(w, http.StatusConflict, "this Idempotency-Key was used for another request")
	case errors.Is(err, pacht.ErrNotFound):
		s.refuse(w, http.StatusNotFound, "there is no such payment")
	case errors.Is(err, payments.ErrRefund), errors.As(err, &invalid), errors.Is(err, money.ErrCurrency), errors.Is(err, money.ErrAmount):
		s.refuse(w, http.StatusUnprocessableEntity, err.Error())
	default:
		s.log.Error("request failed", "method", r.Method, "path", r.URL.Path, "error", err)
		s.refuse(w, http.StatusInternalServerError, again(r))
	}
}

// again is what a caller is to do about a failure of ours.
func again(r *http.Request) string {
	switch {
	case r.Method != http.MethodPost:
		return "it failed on our side: ask again"
	case r.Header.Get("Idempotency-Key") == "":
		return "it was not kept, or nobody knows whether it was: send it again"
	}
	return "it may or may not have been done: send it again, with the same Idempotency-Key"
}

// problems answers what no route takes as a problem too.
func (s *server) problems(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, route := mux.Handler(r); route != "" {
			mux.ServeHTTP(w, r)
			return
		}
		said := refusal{header: http.Header{}}
		mux.ServeHTTP(&said, r)
		for _, name := range []string{"Allow", "Location"} {
			if v := said.header.Get(name); v != "" {
				w.Header().Set(name, v)
			}
		}
		detail := "there is nothing at this address"
		if allowed := said.header.Get("Allow"); allowed != "" {
			detail = "the method " + pacht.SafeText(r.Method, 20) + " is not for this address: it takes " + allowed
		}
		s.refuse(w, said.status, detail)
	})
}

// refusal takes in what the router answers, which is text.
type refusal struct {
	header http.Header
	status int
}

func (f *refusal) Header() http.Header         { return f.header }
func (f *refusal) Write(b []byte) (int, error) { return len(b), nil }
func (f *refusal) WriteHeader(status int)      { f.status = status }

func (s *server) answer(w http.ResponseWriter, status int, body any) {
	s.write(w, status, "application/json", body)
}

func (s *server) write(w http.ResponseWriter, status int, kind string, body any) {
	raw, err := json.Marshal(body)
	if err != nil {
		s.log.Error("encode an answer", "error", err)
		http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
		return
	}
	s.send(w, status, kind, raw)
}

func (s *server) send(w http.ResponseWriter, status int, kind string, raw []byte) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	if _, err := w.Write(raw); err != nil {
		s.log.Debug("an answer did not reach its caller", slog.Any("error", err))
	}
}
