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
		s.refuse(w, http.StatusInternalServerError, "it may or may not have been done: send it again, with the same Idempotency-Key")
	}
}

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
