package lab

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pacht-queue/pacht"
)

// record is what the recorder's process keeps.
type record struct {
	unfenced bool

	mu      sync.Mutex
	out     *bufio.Writer
	highest map[pacht.ID]pacht.Token
	counts  map[string]int
	failed  error // of the file: from then on nothing is answered
}

// runRecorder is the role "recorder".
func runRecorder(ctx context.Context, task []byte, ready func(any) error) error {
	var order recorderTask
	if err := json.Unmarshal(task, &order); err != nil {
		return err
	}
	file, err := os.Create(order.File)
	if err != nil {
		return err
	}
	lis, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = lis.Close() }) // ends Accept
	defer stop()
	if err := ready(recorderSaid{Addr: lis.Addr().String()}); err != nil {
		return err
	}
	r := &record{unfenced: order.Unfenced, out: bufio.NewWriterSize(file, 1<<20), highest: map[pacht.ID]pacht.Token{}, counts: map[string]int{}}
	for {
		conn, err := lis.Accept()
		if err != nil {
			return errors.Join(r.flush(), file.Close())
		}
		go r.serve(conn) // until its peer closes it, or this process ends
	}
}

// serve answers each line of a connection with a line.
func (r *record) serve(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return // a half line of a killed process was never said
		}
		answer, err := r.take(strings.TrimSuffix(line, "\n"))
		if err != nil {
			fmt.Fprintf(os.Stderr, "%q: %v\n", line, err)
			return
		}
		if _, err := conn.Write([]byte(answer + "\n")); err != nil {
			return
		}
	}
}

// take does what one line asks for. What is answered is written: this process is never killed.
func (r *record) take(line string) (string, error) {
	what, rest, _ := strings.Cut(line, " ")
	switch what {
	case "flush":
		return "ok", r.flush()
	case "count":
		r.mu.Lock()
		defer r.mu.Unlock()
		return strconv.Itoa(r.counts[rest]), nil
	}
	parts := strings.SplitN(rest, " ", 4)
	if len(parts) != 4 {
		return "", errors.New("want: what job token word owner")
	}
	job, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil {
		return "", err
	}
	token, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil {
		return "", err
	}
	e := Event{What: what, Ref: pacht.Ref{Job: pacht.ID(job), Token: pacht.Token(token)}, Word: parts[2], Owner: parts[3]}
	r.mu.Lock()
	defer r.mu.Unlock()
	highest := r.highest[e.Ref.Job]
	e.Stale = e.Ref.Token < highest && !r.unfenced
	r.highest[e.Ref.Job] = max(highest, e.Ref.Token)
	e.At = time.Now()
	if _, err := r.out.WriteString(e.line()); err != nil {
		r.failed = errors.Join(r.failed, err)
	}
	if r.failed != nil {
		return "", r.failed
	}
	if e.What != Effect || !e.Stale {
		r.counts[e.What]++
	}
	if e.Stale {
		return "stale", nil
	}
	return "ok", nil
}

func (r *record) flush() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.Join(r.failed, r.out.Flush())
}
