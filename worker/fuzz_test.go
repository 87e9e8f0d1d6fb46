package worker

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/pacht-queue/pacht"
)

// order is args with what decoders get wrong: large numbers, times, bytes, ids, raw JSON.
type order struct {
	ID     pacht.ID          `json:"id"`
	Amount int64             `json:"amount"`
	Big    json.Number       `json:"big"`
	Rate   float64           `json:"rate"`
	At     time.Time         `json:"at"`
	Blob   []byte            `json:"blob"`
	Raw    json.RawMessage   `json:"raw"`
	Tags   map[string]string `json:"tags"`
	Next   *order            `json:"next"`
}

// S084: args that do not fit are an error that names job and kind, and never more than that; what
// fits is decoded as it was written, so that encoding it again gives the same.
func FuzzArgs(f *testing.F) {
	for _, s := range []string{
		`{}`, `null`, `[]`, `"x"`, `{"amount":9007199254740993}`, `{"amount":1.0}`, `{"amount":"1"}`, `{"amount":9223372036854775808}`, `{"id":"7"}`, `{"id":7}`, `{"id":null}`, `{"at":"2026-01-02T15:04:05Z"}`, `{"at":"now"}`,
		`{"blob":"AAE="}`, `{"blob":"?"}`, `{"raw":{"a": [1,2 ]}}`, `{"big":123456789012345678901234567890}`, `{"tags":{"a":"b"},"next":{"next":{}}}`, `{"rate":1e400}`, `{"amount":1} {}`, ``, `{"Amount":1}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if (pacht.Limits{}).ValidJSON("args", raw) != nil {
			return // no enqueue stores it
		}
		job := pacht.JobInfo{ID: 42, Kind: "order", Args: raw}
		var o order
		if err := decode(job, &o); err != nil {
			text := err.Error()
			if !strings.Contains(text, "job 42") || !strings.Contains(text, `"order"`) || len(text) > 500 {
				t.Errorf("%q: %v", raw, err)
			}
			// It is a failure, which is retried, and its text can be stored.
			s := pacht.SettlementOf(job, err, nil, 0)
			if s.Outcome != pacht.OutcomeFailed || s.Permanent || s.Validate() != nil {
				t.Errorf("%q is settled as %+v", raw, s)
			}
			return
		}
		again, err := json.Marshal(o)
		if err != nil {
			if errors.As(err, new(*json.MarshalerError)) && o.At.Year() > 9999 {
				return
			}
			t.Fatalf("%q became %+v: %v", raw, o, err)
		}
		var back order
		if err := decode(pacht.JobInfo{Args: again}, &back); err != nil {
			t.Fatalf("%q is written again as %q: %v", raw, again, err)
		}
		if twice, err := json.Marshal(back); err != nil || !bytes.Equal(twice, again) {
			t.Errorf("%q became %q, and that %q, %v", raw, again, twice, err)
		}
		if !reflect.DeepEqual(o.Tags, back.Tags) || o.Amount != back.Amount || o.ID != back.ID || o.Big != "" && o.Big != back.Big {
			t.Errorf("%q became %+v, and that %+v", raw, o, back)
		}
	})
}
