package psp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// DefaultDelay is the time of a scenario that says nothing of it.
const DefaultDelay = time.Second

// Config says how the provider behaves. The zero value, with a Ledger, is a quick one that
// never fails.
type Config struct {
	Ledger  string        `json:"ledger"` // the file it keeps its ledger in
	Seed    uint64        `json:"seed"`
	Latency time.Duration `json:"latency_ns"` // of a call on average; half of it to one and a half
	// FailRate is the part of calls that fail before anything is done (503); LoseRate the part
	// that are done, and then answered with 502 or not at all; DeclineRate the part of keys
	// that are declined for good (402). Each 0 to 1.
	FailRate    float64 `json:"fail_rate"`
	LoseRate    float64 `json:"lose_rate"`
	DeclineRate float64 `json:"decline_rate"`
	// Mix draws a scenario for each reference by the seed: weights by name. Empty = Success.
	Mix map[string]int `json:"mix,omitempty"`
	// Delay is Scenario.After of those that say nothing of it; 0 = DefaultDelay.
	Delay time.Duration `json:"delay_ns"`
	// KeyLife is how long an idempotency key is remembered; 0 = for ever.
	KeyLife time.Duration `json:"key_life_ns"`
	Webhook Webhook       `json:"webhook"`
	// QuietAnswers sends no event of a charge or refund whose outcome its own answer tells.
	QuietAnswers bool `json:"quiet_answers"`
	// Silence is how long a call that gets no answer hangs before its connection is cut, if its
	// caller is more patient; 0 = 30s.
	Silence time.Duration `json:"silence_ns"`
	// HoldAnswers makes answers wait, look-ups too, once FreeAnswers references have had theirs,
	// until Client.Release is called.
	HoldAnswers bool `json:"hold_answers"`
	FreeAnswers int  `json:"free_answers"`
	// IgnoreKeys makes every call a new charge, and Blind lets look-ups find nothing: with both
	// it is a provider that nobody can make safe.
	IgnoreKeys bool `json:"ignore_keys"`
	Blind      bool `json:"blind"`
	// Listen is the address to serve on; "" = a free port of the loopback.
	Listen string `json:"listen,omitempty"`
}

func (c Config) check() error {
	for _, rate := range []struct {
		name  string
		value float64
	}{{"fail rate", c.FailRate}, {"lose rate", c.LoseRate}, {"decline rate", c.DeclineRate}} {
		if !(rate.value >= 0 && rate.value <= 1) {
			return fmt.Errorf("%s: %v is not allowed, want 0 to 1", rate.name, rate.value)
		}
	}
	if c.Latency < 0 || c.Delay < 0 || c.KeyLife < 0 || c.Silence < 0 {
		return fmt.Errorf("latency %s, delay %s, key life %s, silence %s: want 0 or more", c.Latency, c.Delay, c.KeyLife, c.Silence)
	}
	for name, weight := range c.Mix {
		if err := (Scenario{Name: name}).check(); err != nil {
			return err
		}
		if weight < 0 {
			return fmt.Errorf("weight of %s: %d is not allowed, want 0 or more", name, weight)
		}
	}
	return c.Webhook.check()
}

// Server is the provider. Made by Open; an http.Handler.
type Server struct {
	cfg    Config
	ledger *ledger
	fates  fates
	gate   *gate
	mux    *http.ServeMux
	hook   atomic.Pointer[Webhook]
	out    *http.Client // for webhooks

	ctx     context.Context // ends with Close
	stop    context.CancelFunc
	pending sync.WaitGroup // what happens later
	closing sync.RWMutex   // nothing is added to pending once ctx has ended
}

// Open reads the ledger, which may be there already or not, and goes on with what was to come.
// Close the server to end what it has started.
func Open(cfg Config) (*Server, error) {
	if cfg.Delay == 0 {
		cfg.Delay = DefaultDelay
	}
	if cfg.Silence == 0 {
		cfg.Silence = 30 * time.Second
	}
	if err := cfg.check(); err != nil {
		return nil, err
	}
	l, err := openLedger(cfg.Ledger)
	if err != nil {
		return nil, err
	}
	s := &Server{
		cfg: cfg, ledger: l, fates: fates{cfg: cfg, seen: map[string]int{}}, gate: newGate(cfg.FreeAnswers),
		mux: http.NewServeMux(), out: &http.Client{Transport: loopback(), Timeout: 5 * time.Second},
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.hook.Store(&cfg.Webhook)
	if !cfg.HoldAnswers {
		s.gate.release()
	}
	s.mux.HandleFunc("POST /v1/charges", s.charge)
	s.mux.HandleFunc("GET /v1/charges", s.list)
	s.mux.HandleFunc("POST /v1/refunds", s.refund)
	s.mux.HandleFunc("GET /v1/refunds", s.refunds)
	s.mux.HandleFunc("GET /v1/totals", s.totals)
	s.simulator()
	s.resume()
	return s, nil
}

// loopback is a transport without a proxy: everything here is on the loopback.
func loopback() *http.Transport {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy = nil
	transport.MaxIdleConnsPerHost = 64
	return transport
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Close ends what was to come, and writes out the ledger.
func (s *Server) Close() error {
	s.closing.Lock()
	s.stop()
	s.closing.Unlock()
	s.pending.Wait()
	s.out.CloseIdleConnections()
	return s.ledger.close()
}

// Serve listens until ctx ends, and tells ready its address.
func (s *Server) Serve(ctx context.Context, ready func(url string) error) error {
	address := s.cfg.Listen
	if address == "" {
		address = "127.0.0.1:0"
	}
	lis, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
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
