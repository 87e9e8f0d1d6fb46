package net_test

import (
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// proxy is a toxiproxy in front of a database.
type proxy struct {
	t   testing.TB
	on  *toxiproxy.Proxy
	url string // of the database, through it

	mu   sync.Mutex
	down bool
}

// newProxy starts a proxy in front of the database at this URL.
func newProxy(t testing.TB, database string) *proxy {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	p := &proxy{t: t, on: toxiproxy.NewProxy(server, t.Name(), "127.0.0.1:0", u.Host)}
	if err := p.on.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.heal() // what a toxic holds back would outlive the connection
		p.on.Stop()
	})
	u.Host = p.on.Listen
	p.url = u.String()
	return p
}

// ill adds a toxic of this kind in one direction: "upstream" to the server, or "downstream".
func (p *proxy) ill(kind, direction string, attributes string) {
	p.t.Helper()
	json := fmt.Sprintf(`{"name": "%s %s", "type": %q, "stream": %q, "toxicity": 1, "attributes": {%s}}`,
		kind, direction, kind, direction, attributes)
	if _, err := p.on.Toxics.AddToxicJson(strings.NewReader(json)); err != nil {
		p.t.Errorf("toxic %s %s: %v", kind, direction, err)
	}
}

// heal takes all toxics away. Connections on which bytes were swallowed are closed.
func (p *proxy) heal() {
	p.up()
	p.on.Toxics.ResetToxics(p.t.Context())
}

// cut closes all connections, and refuses new ones until up.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.on.Stop()
	p.down = true
}

func (p *proxy) up() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.down {
		return
	}
	// The port was ours a moment ago; somebody's outgoing connection may have it just now.
	var err error
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if err = p.on.Start(); err == nil {
			p.down = false
			return
		}
	}
	p.t.Errorf("the proxy does not start again: %v", err)
}

// The faults of a connection. Each lasts until heal.
var plagues = map[string]func(*proxy){
	// cut: connections end, new ones are refused.
	"cut": func(p *proxy) { p.cut() },
	// delayed: each piece comes 40 to 80 ms late, in both directions.
	"delayed": func(p *proxy) {
		p.ill("latency", "upstream", `"latency": 60, "jitter": 20`)
		p.ill("latency", "downstream", `"latency": 60, "jitter": 20`)
	},
	// silent: half-open connections. Nothing is closed, nothing arrives; new ones are taken and
	// stay silent too (S041, S045).
	"silent": func(p *proxy) {
		p.ill("timeout", "upstream", `"timeout": 0`)
		p.ill("timeout", "downstream", `"timeout": 0`)
	},
	// halved: answers end in the middle of a message, and with them the connection. The limit
	// leaves room for a log-in, so that requests are sent and carried out.
	"halved": func(p *proxy) { p.ill("limit_data", "downstream", `"bytes": 500`) },
	// torn: requests end in the middle.
	"torn": func(p *proxy) { p.ill("limit_data", "upstream", `"bytes": 900`) },
	// crumbs: pieces of about 30 bytes, 50 µs apart, at 60 kB a second.
	"crumbs": func(p *proxy) {
		p.ill("slicer", "upstream", `"average_size": 30, "size_variation": 15, "delay": 50`)
		p.ill("slicer", "downstream", `"average_size": 30, "size_variation": 15, "delay": 50`)
		p.ill("bandwidth", "downstream", `"rate": 60`)
	},
}
