package host

import (
	"errors"
	"io"
	"strings"
	"testing"
)

type counted struct {
	io.Reader
	closed *int
}

func (c counted) Close() error { *c.closed++; return nil }

// A command that is run again reads its input from the beginning, and whatever
// was opened is closed.
func TestInputIsReadAnew(t *testing.T) {
	opened, closed := 0, 0
	in := input{open: func() (io.ReadCloser, error) {
		opened++
		return counted{strings.NewReader("all of it"), &closed}, nil
	}}
	for range 2 {
		if n, err := in.Read(make([]byte, 3)); n != 3 || err != nil { // cut off
			t.Fatal(n, err)
		}
		in.close()
	}
	if b, err := io.ReadAll(&in); string(b) != "all of it" || err != nil {
		t.Errorf("read %q, %v", b, err)
	}
	in.close()
	in.close()
	if opened != 3 || closed != 3 {
		t.Errorf("opened %d times, closed %d times", opened, closed)
	}
	broken := input{open: func() (io.ReadCloser, error) { return nil, errors.New("no such file") }}
	if _, err := broken.Read(make([]byte, 1)); err == nil {
		t.Error("an input that cannot be opened is read")
	}
}
