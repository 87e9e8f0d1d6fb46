package child

import (
	"encoding/binary"
	"fmt"
	"os"
)

// Counts says of each job, by its number, how often it ran: one byte each.
type Counts []uint8

// Times says of each job, by its number, when something happened: nanoseconds of the wall
// clock, which all processes of a machine share; 0 = never. In a file, little endian.
type Times []int64

func (c Counts) write(name string) error { return os.WriteFile(name, c, 0o644) }

func (t Times) write(name string) error {
	b := make([]byte, 0, 8*len(t))
	for _, at := range t {
		b = binary.LittleEndian.AppendUint64(b, uint64(at))
	}
	return os.WriteFile(name, b, 0o644)
}

// ReadCounts reads what a worker wrote about n jobs.
func ReadCounts(name string, n int) (Counts, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	if len(b) != n {
		return nil, fmt.Errorf("%d counts, want %d", len(b), n)
	}
	return b, nil
}

// ReadTimes reads n times.
func ReadTimes(name string, n int) (Times, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	if len(b) != 8*n {
		return nil, fmt.Errorf("%d bytes of times, want %d", len(b), 8*n)
	}
	t := make(Times, n)
	for i := range t {
		t[i] = int64(binary.LittleEndian.Uint64(b[8*i:]))
	}
	return t, nil
}
