package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/pacht-queue/pacht"
)

// channelOf is the channel of a schema's notices: two schemas in one database must not wake
// each other, and PostgreSQL takes 63 bytes at most.
func channelOf(schema string) string {
	sum := sha256.Sum256([]byte(schema))
	return "pacht_" + hex.EncodeToString(sum[:16])
}

// Sleep implements pacht.Waker.
func (s *Store) Sleep(ctx context.Context, owner string, queues []string, life time.Duration) error {
	if err := pacht.ValidSleep(owner, queues, life); err != nil {
		return err
	}
	return s.write(ctx, "sleep of "+owner, s.sql.Sleep, []any{owner, queues, s.channel, life.Milliseconds()})
}

// Rise implements pacht.Waker.
func (s *Store) Rise(ctx context.Context, owner string, queues []string) error {
	if err := pacht.ValidSleep(owner, queues, pacht.MaxSleep); err != nil {
		return err
	}
	return s.write(ctx, "rise of "+owner, s.sql.Rise, []any{owner, queues})
}

// Due implements pacht.Waker.
func (s *Store) Due(ctx context.Context, queues, kinds []string) (pacht.Due, error) {
	due, err := listOn(ctx, s, s.own, "look for due jobs", s.sql.Due, []any{append([]string{}, queues...), append([]string{}, kinds...)},
		func(d *pacht.Due, scan scanner) error {
			var took int64
			err := scan(&d.Queues, &took)
			d.Took = time.Duration(took) * time.Microsecond
			return err
		})
	if err != nil {
		return pacht.Due{}, err
	}
	return due[0], nil
}
