package psp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/pacht-queue/pacht/internal/clock"
)

// Config says how the provider behaves. The zero value, with a Ledger, is a quick one that
// never fails.
type Config struct {
	Ledger  string        `json:"ledger"` // the file it keeps its ledger in
	Seed    uint64        `json:"seed"`
	Latency time.Duration `json:"latency_ns"` // of a call on average; half of it to one and a half
	// FailRate is the part of calls that fail before anything is charged (503); LoseRate the
	// part that are charged, and then answered with 502 or not at all; DeclineRate the part of
	// keys that are declined for good (402). Each 0 to 1.
	FailRate    float64 `json:"fail_rate"`
	LoseRate    float64 `json:"lose_rate"`
	DeclineRate float64 `json:"decline_rate"`
	// HoldAnswers makes answers wait, once FreeAnswers references have had theirs, until
	// Client.Release is called.
	HoldAnswers bool `json:"hold_answers"`
	FreeAnswers int  `json:"free_answers"`
	// IgnoreKeys makes every call a new charge: a provider that no queue can make safe.
	IgnoreKeys bool `json:"ignore_keys"`
}

// Server is the provider. Made by Open; an http.Handler.
type Server struct {
	cfg    Config
	ledger *ledger
	fates  fates
	gate   *gate
	mux    *http.ServeMux
}

// Open reads the ledger, which may be there already or not.
func Open(cfg Config) (*Server, error) {
	for _, rate := range []struct {
		name  string
		value float64
	}{{"fail rate", cfg.FailRate}, {"lose rate", cfg.LoseRate}, {"decline rate", cfg.DeclineRate}} {
		if !(rate.value >= 0 && rate.value <= 1) {
			return nil, fmt.Errorf("%s: %v is not allowed, want 0 to 1", rate.name, rate.value)
		}
	}
	if cfg.Latency < 0 {
		return nil, fmt.Errorf("latency: %s is not allowed, want 0 or more", cfg.Latency)
	}
	l, err := openLedger(cfg.Ledger)
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, ledger: l, fates: fates{cfg: cfg, seen: map[string]int{}}, gate: newGate(cfg.FreeAnswers), mux: http.NewServeMux()}
	if !cfg.HoldAnswers {
		s.gate.release()
	}
	s.mux.HandleFunc("POST /v1/charges", s.charge)
	s.mux.HandleFunc("GET /v1/charges", s.list)
	s.mux.HandleFunc("GET /v1/totals", s.totals)
	s.mux.HandleFunc("POST /simulator/release", s.release)
	return s, nil
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Close writes out the ledger.
func (s *Server) Close() error { return s.ledger.close() }

// Serve listens on a free port of the loopback until ctx ends, and tells ready its address.
func (s *Server) Serve(ctx context.Context, ready func(url string) error) error {
	lis, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("provider: %w", err)
	}
	srv := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(slog.Default().Handler(), slog.LevelWarn)}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(lis) }()
	err = ready("http://" + lis.Addr().String())
	if err == nil {
		select {
		case <-ctx.Done():
		case err = <-ended:
			return fmt.Errorf("provider: %w", err)
		}
	}
	// Calls that are on their way are cut: the provider's customers must bear that.
	closing := srv.Close()
	if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return errors.Join(err, closing)
}

const maxBody = 64 << 10

func (s *Server) charge(w http.ResponseWriter, r *http.Request) {
	key := r.Header.Get("Idempotency-Key")
	if key == "" || len(key) > 255 {
		refuse(w, http.StatusBadRequest, "idempotency_key", fmt.Sprintf("header Idempotency-Key: %d bytes are not allowed, want 1 to 255", len(key)))
		return
	}
	var c Charge
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&c); err != nil {
		refuse(w, http.StatusBadRequest, "body", err.Error())
		return
	}
	if _, err := dec.Token(); err != io.EOF {
		refuse(w, http.StatusBadRequest, "body", "more than one document")
		return
	}
	if err := c.check(); err != nil {
		refuse(w, http.StatusUnprocessableEntity, "charge", err.Error())
		return
	}

	will := s.fates.of(key)
	if clock.Sleep(r.Context(), will.before) != nil {
		return // the caller went away before anything was charged
	}
	if will.failBefore {
		refuse(w, http.StatusServiceUnavailable, "unavailable", "try again later; nothing was charged")
		return
	}
	entry, err := s.ledger.answer(key, c, will.decline, s.cfg.IgnoreKeys)
	switch {
	case errors.Is(err, errOtherBody):
		refuse(w, http.StatusConflict, "key_conflict", err.Error())
		return
	case err != nil:
		refuse(w, http.StatusInternalServerError, "ledger", err.Error())
		return
	}
	if clock.Sleep(r.Context(), will.after) != nil {
		return // charged, and nobody is there to hear it
	}
	if !s.gate.pass(r.Context().Done(), c.Reference) {
		return
	}
	switch {
	case will.failAfter && will.drop:
		panic(http.ErrAbortHandler) // cuts the connection: the answer is lost
	case will.failAfter:
		refuse(w, http.StatusBadGateway, "bad_gateway", "the answer was lost on the way")
	case entry.What == Declined:
		refuse(w, http.StatusPaymentRequired, "card_declined", "the card was declined")
	default:
		answerJSON(w, http.StatusOK, entry)
	}
}

// list answers the charges of ?reference=, or all of them: what a customer looks up who does
// not know what became of a call.
func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	answerJSON(w, http.StatusOK, struct {
		Charges []Entry `json:"charges"`
	}{s.ledger.charges(r.URL.Query().Get("reference"))})
}

func (s *Server) totals(w http.ResponseWriter, _ *http.Request) {
	answerJSON(w, http.StatusOK, s.ledger.sum())
}

func (s *Server) release(w http.ResponseWriter, _ *http.Request) {
	s.gate.release()
	w.WriteHeader(http.StatusNoContent)
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
